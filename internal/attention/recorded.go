package attention

import (
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// named reports whether a port may hold attention weights by its name.
func named(layer, port string) bool {
	return module.InAttention(layer) || strings.Contains(strings.ToLower(port), "attention") && !strings.Contains(port, "mask")
}

// Recorded reports whether a tensor holds the weights of attention: numbers from 0 to 1, and those of
// most queries sum to 1, of the others to less.
func Recorded(w *tensor.Tensor) (is bool) {
	l, ok := layoutOf(w)
	if !ok || l.keys < 2 {
		return false
	}
	row := make([]float64, l.keys)
	whole, rows := 0, l.batch*l.heads*l.queries
	err := mapfile.Guard(func() error {
		for r := range rows {
			w.Float64s(row, r*l.keys)
			sum, ok := total(row)
			if !ok && floats.Norm(row, 1) != 0 || sum > 1+sumError {
				return nil
			}
			if math.Abs(sum-1) <= sumError {
				whole++
			}
		}
		is = float64(whole) >= wholeRows*float64(rows)
		return nil
	})
	return is && err == nil
}

// OfFirst has the heads of each attention of which a run has recorded the weights in its first step.
func OfFirst(run *dump.Run) map[string][]Head {
	out := map[string][]Head{}
	for _, e := range run.Entries {
		if e.Step != run.Entries[0].Step || e.Tensor == nil || len(e.Tensor.Shape()) != 4 || out[e.Layer] != nil {
			continue
		}
		if named(e.Layer, e.Port) && Recorded(e.Tensor) {
			out[e.Layer] = Of(e.Tensor)
		}
	}
	return out
}
