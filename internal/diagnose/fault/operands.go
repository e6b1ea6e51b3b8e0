package fault

import (
	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose/op"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
)

// rounding is what a linear layer rounds to a type of fewer bits.
type rounding struct {
	text                       string
	input, weight, bias, after bool // after: the bias is added to the rounded product
	result                     bool
}

var roundings = []rounding{
	{text: "input and weight are rounded to %s", input: true, weight: true},
	{text: "input, weight and result are rounded to %s", input: true, weight: true, result: true},
	{text: "the weight is rounded to %s", weight: true},
	{text: "the input is rounded to %s", input: true},
	{text: "input, weight, bias and result are rounded to %s", input: true, weight: true, bias: true, result: true},
	{text: "it is computed in %s, the bias added after the product was rounded",
		input: true, weight: true, bias: true, after: true, result: true},
}

// Operands is a linear layer whose operands are rounded to a type of fewer bits.
func Operands(o *rebuild.Linear) (out List) {
	if o.Key == "" || o.Conv || !o.Out.IsTarget() || o.W.Len() > roundedWeight {
		return nil
	}
	var weight *op.Matrix // of the type that is being tried
	var of string
	for _, n := range op.NarrowerThan(o.Scene().Target.Golden.DType(), o.Scene().Target.Actual.DType()) {
		for _, r := range roundings {
			if r.bias && o.B == nil {
				continue
			}
			out.add(func(e *rebuild.Evaluation, rows []int) []float64 {
				x := e.Get(o.In, rows)
				if x == nil || !o.Graph().Spend(o.Work(len(rows))) {
					return nil
				}
				if of != n.Name {
					of, weight = n.Name, op.MatrixOf(op.Map(op.ReadAll(o.W.Tensor), n.Round), o.Out.Width, o.In.Width)
				}
				return r.of(o.Linear, n, x, weight)
			}, 2, r.text, n.Name)
		}
	}
	return out
}

func (r rounding) of(l op.Linear, n op.Narrow, x []float64, weight *op.Matrix) []float64 {
	if r.input {
		x = op.Map(x, n.Round)
	}
	if r.weight {
		l.W = weight
	}
	if r.bias {
		l.B = op.Map(l.B, n.Round)
	}
	bias := l.B
	if r.after {
		l.B = nil
	}
	y := l.Of(x)
	if r.result {
		y = op.Map(y, n.Round)
	}
	if r.after {
		for i := 0; i < len(y); i += len(bias) {
			floats.Add(y[i:i+len(bias)], bias)
		}
		y = op.Map(y, n.Round)
	}
	return y
}
