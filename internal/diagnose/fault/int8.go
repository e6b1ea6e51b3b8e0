package fault

import (
	"math"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
)

// Int8Inputs is a linear layer that rounds its input to int8, with a scale max|x|/127 for each block of
// a row, as engines do whose products have quantised weights.
func Int8Inputs(o *rebuild.Linear) (out List) {
	if o.Conv || !o.Out.IsTarget() || o.W.Len() > roundedWeight {
		return nil
	}
	for _, block := range []int{256, 32, o.In.Width} {
		if block > o.In.Width || o.In.Width%block != 0 {
			continue
		}
		text := "the input is rounded to int8 in blocks of %d: engines with quantised weights do so, and references: " +
			"{variant: dequantised, activations: int8/%[1]d} does as well"
		if block != 256 && block != 32 {
			text = "the input is rounded to int8, with a scale for each row of %d"
		}
		out.add(func(e *rebuild.Evaluation, rows []int) []float64 {
			x := e.Get(o.In, rows)
			if x == nil || !o.Graph().Spend(o.Work(len(rows))) {
				return nil
			}
			return o.Of(int8s(x, block))
		}, 1, text, block)
	}
	return out
}

// int8s rounds numbers to int8 in blocks.
func int8s(x []float64, block int) []float64 {
	out := make([]float64, len(x))
	for from := 0; from < len(x); from += block {
		most := 0.0
		for _, v := range x[from : from+block] {
			most = max(most, math.Abs(v))
		}
		for i := from; i < from+block && most > 0; i++ {
			out[i] = math.RoundToEven(x[i]*127/most) * most / 127
		}
	}
	return out
}
