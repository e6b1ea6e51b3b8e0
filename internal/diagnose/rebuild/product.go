package rebuild

import (
	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/op"
)

// finalCap is the key of the soft cap of the logits.
const finalCap = "final_logit_softcapping"

// Unary is out = F(in), element by element.
type Unary struct {
	From
	op.Activation
}

// Eval applies the activation.
func (o *Unary) Eval(e *Evaluation, rows []int) []float64 { return o.Of(e.Get(o.In, rows)) }

// Capped is out = Limit·tanh(in / Limit): logits with a soft cap.
type Capped struct {
	From
	Limit float64
}

// Eval bends the logits.
func (o *Capped) Eval(e *Evaluation, rows []int) []float64 {
	return op.Map(e.Get(o.In, rows), func(x float64) float64 { return op.SoftCap(x, o.Limit) })
}

// Product is out = F(A)·B, the gate of an MLP. F is the identity if the reference recorded A with
// its activation.
type Product struct {
	Made
	A, B *Value
	F    op.Activation
}

// Inputs are the two factors.
func (o *Product) Inputs() []*Value { return []*Value{o.A, o.B} }

// Eval multiplies them.
func (o *Product) Eval(e *Evaluation, rows []int) []float64 {
	return op.Times(o.F.Of(e.Beside(o.A, o.Out, rows)), e.Beside(o.B, o.Out, rows))
}

func unaries(from From) (ops []Op) {
	for _, a := range op.Activations {
		ops = append(ops, &Unary{from, a})
	}
	return ops
}

// findUnary tries activations and multiples of earlier values: those between children, without a
// module of their own.
func findUnary(g *Graph, v *Value) []Op {
	var ops []Op
	for _, x := range g.Alikes(v) {
		from := From{Made{v}, x, ""}
		ops = append(ops, unaries(from)...)
		some := op.Spread(v.Rows, ProbeRows)
		in := x.Golden(some)
		ops = append(ops, &Sum{from.Made, []*Value{x}, []float64{floats.Dot(in, v.Golden(some)) / floats.Dot(in, in)}})
		if c, ok := g.Scene.Config.Float(finalCap); ok && c > 0 {
			ops = append(ops, &Capped{from, c})
		}
	}
	return ops
}

func findProduct(g *Graph, v *Value) []Op {
	t, terms := terms(g, v)
	n := float64(len(terms))
	if !g.Spend(n * n * float64(len(t)) * 2) {
		return nil
	}
	best := nearestTo(t, v)
	for i, a := range terms {
		for _, b := range terms[:i] {
			best.try(op.Times(a.x, b.x), func() Op { return &Product{Made{v}, a.v, b.v, op.Identity} })
		}
	}
	if best.op == nil && len(terms) <= gatedMost {
		for _, a := range terms {
			for _, f := range op.Activations {
				fa := f.Of(a.x)
				for _, b := range terms {
					if a.v != b.v {
						best.try(op.Times(fa, b.x), func() Op { return &Product{Made{v}, a.v, b.v, f} })
					}
				}
			}
		}
	}
	return best.ops()
}
