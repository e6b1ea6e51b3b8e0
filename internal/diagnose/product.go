package diagnose

import "gonum.org/v1/gonum/floats"

// multiplied is out = a·b, element by element: the gate of an MLP.
type multiplied struct {
	out, a, b *value
}

func (o *multiplied) inputs() []*value { return []*value{o.a, o.b} }

func (o *multiplied) eval(e *evaluation, rows []int) []float64 {
	return times(e.matching(o.a, o.out, rows), e.matching(o.b, o.out, rows))
}

func times(x, y []float64) []float64 {
	if len(x) == 0 || len(x) != len(y) {
		return nil
	}
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] * y[i]
	}
	return out
}

// gated is out = f(gate)·up, where the reference did not record f(gate).
type gated struct {
	out, gate, up *value
	kind          unaryKind
}

func (o *gated) inputs() []*value { return []*value{o.gate, o.up} }

func (o *gated) eval(e *evaluation, rows []int) []float64 {
	return times(mapped(e.get(o.gate, rows), o.kind.f), e.get(o.up, rows))
}

func findProduct(g *graph, v *value) []op {
	t, cols := columns(g, v, g.before(v))
	n := float64(len(cols))
	if !g.spend(n * n * float64(len(t)) * 2) {
		return nil
	}
	size := floats.Norm(t, 2)
	least := v.noise()
	var best op
	for i, a := range cols {
		for _, b := range cols[:i] {
			if miss := floats.Distance(times(a.x, b.x), t, 2) / size; miss < least {
				least, best = miss/2, &multiplied{v, a.v, b.v}
			}
		}
	}
	if best == nil && len(cols) <= 40 {
		for _, a := range cols {
			for _, k := range unaryKinds {
				fa := mapped(a.x, k.f)
				for _, b := range cols {
					if miss := floats.Distance(times(fa, b.x), t, 2) / size; a.v != b.v && miss < least {
						least, best = miss/2, &gated{v, a.v, b.v, k}
					}
				}
			}
		}
	}
	if best == nil {
		return nil
	}
	return []op{best}
}

func (o *multiplied) faults(g *graph, _ *value) []fault {
	gate, up := o.a, o.b
	g.explain(gate)
	u, ok := gate.op.(*unary)
	if !ok {
		gate, up = o.b, o.a
		g.explain(gate)
		u, ok = gate.op.(*unary)
	}
	if ok {
		return gateFaults(o.out, u.in, up, gate, u.kind)
	}
	return []fault{
		{id: "linear/gate-up", text: o.a.text() + " is not multiplied", rank: 1, eval: func(e *evaluation, rows []int) []float64 { return e.matching(o.b, o.out, rows) }},
		{id: "linear/gate-up", text: o.b.text() + " is not multiplied", rank: 1, eval: func(e *evaluation, rows []int) []float64 { return e.matching(o.a, o.out, rows) }},
	}
}

func (o *gated) faults(*graph, *value) []fault { return gateFaults(o.out, o.gate, o.up, nil, o.kind) }

// gateFaults are the mistakes of f(gate)·up. act is f(gate), nil if it was not recorded.
func gateFaults(out, gate, up, act *value, kind unaryKind) []fault {
	both := func(f func(g, u []float64) []float64) func(e *evaluation, rows []int) []float64 {
		return func(e *evaluation, rows []int) []float64 { return f(e.get(gate, rows), e.get(up, rows)) }
	}
	id := func(x []float64) []float64 { return x }
	activated := func(x []float64) []float64 { return mapped(x, kind.f) }
	if out.width != gate.width || out.width != up.width {
		return nil
	}
	faults := []fault{
		{id: "linear/gate-up", text: kind.name + " is applied to up and not to gate", eval: both(func(g, u []float64) []float64 { return times(activated(u), g) })},
		{id: "activation/missing", text: "gate·up, without " + kind.name, eval: both(func(g, u []float64) []float64 { return times(id(g), u) })},
		{id: "linear/gate-up", text: kind.name + " is applied to the product of gate and up", rank: 1,
			eval: both(func(g, u []float64) []float64 { return activated(times(g, u)) })},
		{id: "linear/gate-up", text: "up is not multiplied", rank: 1, eval: both(func(g, _ []float64) []float64 { return activated(g) })},
		{id: "linear/gate-up", text: "gate is not multiplied", rank: 1, eval: both(func(_, u []float64) []float64 { return u })},
		{id: "linear/gate-up", text: kind.name + " of gate is multiplied by gate", rank: 1, eval: both(func(g, _ []float64) []float64 { return times(activated(g), g) })},
		{id: "linear/gate-up", text: kind.name + " of up is multiplied by up", rank: 1, eval: both(func(_, u []float64) []float64 { return times(activated(u), u) })},
	}
	if act == nil || act.actual == nil {
		for _, k := range unaryKinds {
			if k.name != kind.name {
				faults = append(faults, fault{id: "activation/" + k.name, text: k.name + ", " + k.formula + ", in place of " + kind.name,
					eval: both(func(g, u []float64) []float64 { return times(mapped(g, k.f), u) })})
			}
		}
	}
	return faults
}
