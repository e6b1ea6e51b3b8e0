package diagnose

import (
	"fmt"
	"math"
)

// finalCap is the key of the cap of the logits.
const finalCap = "final_logit_softcapping"

// capped is out = c·tanh(in/c): logits with a soft cap.
type capped struct {
	in *value
	c  float64
}

func (o *capped) inputs() []*value { return []*value{o.in} }

func (o *capped) eval(e *evaluation, rows []int) []float64 {
	return mapped(e.get(o.in, rows), func(x float64) float64 { return o.c * math.Tanh(x/o.c) })
}

func (o *capped) faults(*graph, *value) []fault {
	return []fault{
		{id: "config/" + finalCap, text: fmt.Sprintf("the soft cap of the logits, %g, is missing", o.c),
			eval: func(e *evaluation, rows []int) []float64 { return e.get(o.in, rows) }},
		{id: "config/" + finalCap, text: fmt.Sprintf("the logits are cut at %g, and not bent", o.c), rank: 1, eval: func(e *evaluation, rows []int) []float64 {
			return mapped(e.get(o.in, rows), func(x float64) float64 { return max(-o.c, min(o.c, x)) })
		}},
		{id: "config/" + finalCap, text: fmt.Sprintf("tanh(x/%g) is not multiplied by %g again", o.c, o.c), rank: 1, eval: func(e *evaluation, rows []int) []float64 {
			return mapped(e.get(o.in, rows), func(x float64) float64 { return math.Tanh(x / o.c) })
		}},
	}
}
