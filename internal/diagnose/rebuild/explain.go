package rebuild

import "github.com/goparity/goparity/internal/diagnose/op"

// finders look for the ops that may make a value, in the order in which they are tried.
var finders = []func(*Graph, *Value) []Op{
	findLeaf, findAlias, findSum, findProduct, findModulation, findAddedTable, findUnary, findRow, findAttention,
}

// Explain finds out how the reference made a value.
func (g *Graph) Explain(v *Value) Op {
	if v.tried {
		return v.Op
	}
	v.tried = true
	best, find := v.Noise(), finders
	if p := v.ports[0]; !p.IsInput() && g.IsLeaf(p.Layer) {
		find = find[:1]
	}
	for _, f := range find {
		for _, o := range f(g, v) {
			if miss := g.control(v, o); miss <= best {
				best, v.Op = miss/better, o
			}
		}
		if v.Op != nil || g.work <= 0 {
			return v.Op
		}
	}
	if layer := v.Layer(); g.IsLeaf(layer) {
		v.Op = &Given{From{Made{v}, g.InputOf(layer), layer}}
	}
	return v.Op
}

// control is how far an op misses the golden value.
func (g *Graph) control(v *Value, o Op) float64 {
	rows := op.Spread(v.Rows, ProbeRows)
	return op.Relative(o.Eval(g.goldenly(), rows), v.Golden(rows))
}

// cone explains the target and what the candidate did not record on the way to it.
func (g *Graph) cone() []*Value {
	var out []*Value
	seen := map[*Value]bool{}
	var visit func(v *Value)
	visit = func(v *Value) {
		if seen[v] || len(out) == coneSize || g.work <= 0 {
			return
		}
		seen[v] = true
		if g.Explain(v) == nil {
			return
		}
		out = append(out, v)
		for _, in := range v.Op.Inputs() {
			if in.actual == nil {
				visit(in)
			}
		}
	}
	visit(g.Target)
	return out
}

// Right returns rows of the target as the reference's op makes them of the candidate's inputs; nil if
// the op is not known or takes too long.
func (g *Graph) Right(rows []int) []float64 {
	switch o := g.Explain(g.Target).(type) {
	case nil, *Given:
		return nil
	case *Linear:
		if o.Work(len(rows)) > rightWork {
			return nil
		}
	}
	return g.With(g.Target, g.Target.Op.Eval).Get(g.Target, rows)
}
