package structure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

type element struct {
	at   int
	g, a float64
}

// blockLen is the number of elements that are decoded at once.
const blockLen = 2048

// spikes compares where the two sides have theirs: at most maxSpikes elements that are spikeRatio
// times as large as the median |x|, the massive activations of some channels and tokens that many
// models have.
func spikes(golden, actual *tensor.Tensor) []Finding {
	n := golden.Len()
	step := (n + spikeSample - 1) / spikeSample
	var sample [2][]float64
	var top [2][]element
	var least [2]float64 // the least size that enters top
	gs, as := make([]float64, min(n, blockLen)), make([]float64, min(n, blockLen))
	err := mapfile.Guard(func() error {
		for start := 0; start < n; start += blockLen {
			m := golden.Float64s(gs, start)
			actual.Float64s(as, start)
			for j, g := range gs[:m] {
				i, a := start+j, as[j]
				if i%step == i/step%step { // another column each time
					sample[0], sample[1] = append(sample[0], magnitude(g)), append(sample[1], magnitude(a))
				}
				if magnitude(g) > least[0] {
					top[0], least[0] = keepLargest(top[0], element{i, g, a}, 0)
				}
				if magnitude(a) > least[1] {
					top[1], least[1] = keepLargest(top[1], element{i, g, a}, 1)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	missing := strange(spikesOf(top[0], 0, median(sample[0])))
	added := strange(spikesOf(top[1], 1, median(sample[1])))
	where := func(e element) string { return tensor.FormatShape(golden.Index(e.at)) }
	switch {
	case len(missing) > 0 && len(added) > 0:
		m, x := missing[0], added[0]
		return []Finding{{Kind: SpikeMoved, From: m.at, To: x.at,
			Text: fmt.Sprintf("spikes: the golden has %.4g at %s (actual %.4g), the candidate %.4g at %s (golden %.4g)",
				m.g, where(m), m.a, x.a, where(x), x.g)}}
	case len(missing) > 0:
		m := missing[0]
		return []Finding{{Kind: SpikeMissing, From: m.at, To: m.at,
			Text: fmt.Sprintf("spikes: the golden has %.4g at %s, the candidate only %.4g", m.g, where(m), m.a)}}
	case len(added) > 0:
		x := added[0]
		return []Finding{{Kind: SpikeNew, From: x.at, To: x.at,
			Text: fmt.Sprintf("spikes: the candidate has %.4g at %s, the golden only %.4g", x.a, where(x), x.g)}}
	}
	return nil
}

// magnitude returns |x|, and 0 for what is not finite, which is counted elsewhere.
func magnitude(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return math.Abs(x)
}

func (e element) size(side int) float64 { return magnitude([2]float64{e.g, e.a}[side]) }

// keepLargest keeps one more than may be spikes, largest first, and returns the size under which no
// further one is kept.
func keepLargest(top []element, e element, side int) (kept []element, least float64) {
	size := e.size(side)
	at, _ := slices.BinarySearchFunc(top, size, func(x element, s float64) int {
		if x.size(side) >= s {
			return -1
		}
		return 1
	})
	top = slices.Insert(top, at, e)
	if len(top) <= maxSpikes {
		return top, 0
	}
	return top[:maxSpikes+1], top[maxSpikes].size(side)
}

// spikesOf returns the spikes of a side; none if there are so many that the tensor is just like
// that.
func spikesOf(top []element, side int, median float64) []element {
	n := 0
	for n < len(top) && median > 0 && top[n].size(side) >= spikeRatio*median {
		n++
	}
	if n > maxSpikes {
		return nil
	}
	return top[:n]
}

// strange keeps the elements that one side has much smaller than the other.
func strange(all []element) []element {
	return slices.DeleteFunc(slices.Clone(all), func(e element) bool {
		g, a := magnitude(e.g), magnitude(e.a)
		return sameSpike*min(g, a) >= max(g, a)
	})
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[len(x)/2]
}

// cosines tells the direction of the rows and, where there are enough rows for one, of the columns.
// It says nothing where every row keeps its direction.
func cosines(rows, columns []compare.Line) []Finding {
	of := func(all []compare.Line, noun string) (string, int) {
		sorted := slices.SortedFunc(slices.Values(all), func(x, y compare.Line) int {
			return cmp.Or(cmp.Compare(x.Cosine, y.Cosine), cmp.Compare(x.Index, y.Index))
		})
		return fmt.Sprintf("%.4g at least (%s %d), %.4g in the median", sorted[0].Cosine, noun, sorted[0].Index,
			sorted[len(sorted)/2].Cosine), sorted[0].Index
	}
	if len(rows) < 2 {
		return nil
	}
	text, worst := of(rows, "row")
	if rows[worst].Cosine >= turned {
		return nil
	}
	f := Finding{Kind: Cosine, From: worst, To: worst, Text: "cosine by row: " + text}
	if len(rows) >= cosineRows && len(columns) > 0 {
		text, _ = of(columns, "column")
		f.Text += "; by column: " + text
	}
	return []Finding{f}
}
