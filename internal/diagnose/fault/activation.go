package fault

import (
	"fmt"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
)

// Activation is another activation, none, or that of another layer's output.
func Activation(o *rebuild.Unary) (out List) {
	from := o.In.Layer()
	exchanged(o.Made, o.In, from, func(id string, x *rebuild.Value) {
		out.add(rebuild.Same(x).Then(o.Of), 0, "%s is applied to %s and not to %s",
			o.Name, label.Last(x.Layer()), label.Last(from)).ID = id
	})
	out.otherActivations(o.Activation, func(a op.Activation) rebuild.Eval { return rebuild.Same(o.In).Then(a.Of) })
	out.add(rebuild.Same(o.In), 0, "the activation is missing")
	return out
}

func (l *List) otherActivations(own op.Activation, of func(op.Activation) rebuild.Eval) {
	for _, a := range op.Activations {
		if a.Name != own.Name {
			l.add(of(a), 0, "%s, %s, in place of %s", a.Name, a.Formula, own.Name).ID = "activation/" + a.Name
		}
	}
}

// Gating is f(gate)·up done wrong: the activation of another factor, another activation, a factor
// left out.
func Gating(o *rebuild.Product) (out List) {
	gate, up, f := o.A, o.B, o.F
	recorded := false // the candidate's f(gate)
	if f.Name == op.Identity.Name {
		u, ok := o.Graph().Explain(o.A).(*rebuild.Unary)
		act := o.A
		if !ok {
			u, ok = o.Graph().Explain(o.B).(*rebuild.Unary)
			act, up = o.B, o.A
		}
		if !ok {
			beside := func(v *rebuild.Value) rebuild.Eval {
				return func(e *rebuild.Evaluation, rows []int) []float64 { return e.Beside(v, o.Out, rows) }
			}
			out.add(beside(o.B), 1, "%s is not multiplied", o.A).ID = "linear/gate-up"
			out.add(beside(o.A), 1, "%s is not multiplied", o.B).ID = "linear/gate-up"
			return out
		}
		gate, f, recorded = u.In, u.Activation, act.IsRecorded()
	}
	if !gate.IsLike(o.Out) || !up.IsLike(o.Out) {
		return nil
	}
	add := func(id string, rank int, text string, of func(g, u []float64) []float64) {
		out.add(func(e *rebuild.Evaluation, rows []int) []float64 {
			return of(e.Get(gate, rows), e.Get(up, rows))
		}, rank, "%s", text).ID = id
	}
	const order = "linear/gate-up"
	add(order, 0, f.Name+" is applied to up and not to gate",
		func(g, u []float64) []float64 { return op.Times(f.Of(u), g) })
	add("activation/missing", 0, "gate·up, without "+f.Name, op.Times)
	add(order, 1, f.Name+" is applied to the product of gate and up",
		func(g, u []float64) []float64 { return f.Of(op.Times(g, u)) })
	add(order, 1, "up is not multiplied", func(g, _ []float64) []float64 { return f.Of(g) })
	add(order, 1, "gate is not multiplied", func(_, u []float64) []float64 { return u })
	add(order, 1, f.Name+" of gate is multiplied by gate", func(g, _ []float64) []float64 { return op.Times(f.Of(g), g) })
	add(order, 1, f.Name+" of up is multiplied by up", func(_, u []float64) []float64 { return op.Times(f.Of(u), u) })
	if !recorded {
		out.otherActivations(f, func(a op.Activation) rebuild.Eval {
			return (&rebuild.Product{Made: o.Made, A: gate, B: up, F: a}).Eval
		})
	}
	return out
}

// SoftCap is the soft cap of the logits left out or done otherwise.
func SoftCap(o *rebuild.Capped) (out List) {
	in := rebuild.Same(o.In)
	each := func(f func(float64) float64) rebuild.Eval {
		return in.Then(func(x []float64) []float64 { return op.Map(x, f) })
	}
	c := o.Limit
	other := func(x float64) rebuild.Eval { return each(func(v float64) float64 { return op.SoftCap(v, x) }) }
	for _, f := range []float64{2, 0.5} {
		out.add(other(f*c), 1, "the soft cap of the logits is %g and not %g", f*c, c)
	}
	out = append(out, o.Out.Searched(fmt.Sprintf("the soft cap of the logits is another number than %g", c), c/scaleReach, c*scaleReach, nil, other))
	out.add(in, 0, "the soft cap of the logits, %g, is missing", c)
	out.add(each(func(x float64) float64 { return op.Clip(x, c) }), 1, "the logits are cut at %g, and not bent", c)
	out.add(rebuild.Eval(o.Eval).Times(1/c), 1, "tanh(x/%g) is not multiplied by %g again", c, c)
	return out
}
