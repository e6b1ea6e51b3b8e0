package report

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
)

// Cost is what a layer of the candidate took in one forward pass of its own, where its engine measures that.
type Cost struct {
	Case      string    `json:"case"`
	Layer     string    `json:"layer"` // the candidate's own label
	Seconds   Float     `json:"seconds"`
	PeakBytes int64     `json:"peak_bytes"`        // beyond what was held before it ran, the most in any of its calls
	Entropy   []Entropy `json:"entropy,omitempty"` // of an attention whose weights were recorded, by head
}

// Entropy says how far the attention of a head is spread: package attention.
type Entropy struct {
	Nats    Float `json:"nats"` // mean over the queries; NaN where none counts
	Part    Float `json:"part"` // of the entropy of equal weights, 0 to 1
	Uniform bool  `json:"uniform,omitempty"`
}

// CostsOf lists what the layers of a run took, where its engine has measured it, in the order in which
// they ran, with the entropy of attention where the weights were recorded in its first forward pass.
func CostsOf(caseName string, run *dump.Run) (list []Cost) {
	if len(run.Info.Costs) == 0 {
		return nil
	}
	entropy := diagnose.FirstHeads(run)
	seen := map[string]bool{}
	for _, e := range run.Entries {
		cost, measured := run.Info.Costs[e.Layer]
		if !measured || seen[e.Layer] {
			continue
		}
		seen[e.Layer] = true
		row := Cost{Case: caseName, Layer: e.Layer, Seconds: Float(cost.Seconds), PeakBytes: cost.Bytes}
		for _, h := range entropy[e.Layer] {
			row.Entropy = append(row.Entropy, Entropy{Nats: Float(h.Entropy), Part: Float(h.Part), Uniform: h.Uniform()})
		}
		list = append(list, row)
	}
	return list
}

// String is "3 MiB, 0.25 s, 2.1 nats, 0.96 of ln n, 2 of 4 heads uniform".
func (c Cost) String() string {
	memory := fmt.Sprintf("%.3g MiB", float64(c.PeakBytes)/(1<<20))
	if c.PeakBytes < 1<<20 {
		memory = fmt.Sprintf("%.3g KiB", float64(c.PeakBytes)/(1<<10))
	}
	text := fmt.Sprintf("%s, %.2g s", memory, float64(c.Seconds))
	nats, part, uniform, n := 0.0, 0.0, 0, 0
	for _, e := range c.Entropy {
		if math.IsNaN(float64(e.Nats)) {
			continue
		}
		nats, part, n = nats+float64(e.Nats), part+float64(e.Part), n+1
		if e.Uniform {
			uniform++
		}
	}
	if n > 0 {
		text += fmt.Sprintf(", %.3g nats, %.2f of ln n", nats/float64(n), part/float64(n))
	}
	if uniform > 0 {
		text += fmt.Sprintf(", %d of %s uniform", uniform, count(len(c.Entropy), "head"))
	}
	return text
}
