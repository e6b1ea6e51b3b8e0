package diagnose

import (
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// noise is the relative error that a right op may have on the golden tensors: they were rounded on their way.
func (v *value) noise() float64 {
	floor := 0.0
	for _, p := range v.ports {
		floor = max(floor, p.Floor.RelL2)
	}
	switch v.golden.DType() {
	case tensor.F64:
		return max(floor, 1e-9)
	case tensor.F32:
		return max(floor, 2e-5)
	case tensor.F16:
		return max(floor, 4e-3)
	}
	return max(floor, 3e-2)
}

// control is how far an op misses the golden value.
func (g *graph) control(v *value, o op) float64 {
	rows := spread(v.rows, probeRows)
	return relative(o.eval(g.golden(), rows), read(v.golden, v.width, rows))
}

// explain finds out how the reference made a value.
func (g *graph) explain(v *value) {
	if v.tried {
		return
	}
	v.tried = true
	best := v.noise()
	finders := []func(*graph, *value) []op{findLeaf, findAlias, findSum, findProduct, findModulation, findAddedTable, findUnary, findRow, findAttention}
	if p := v.ports[0]; localise.RoleOf(p.Port) != localise.Input && g.leaves[p.Layer] {
		finders = finders[:1]
	}
	for _, find := range finders {
		for _, o := range find(g, v) {
			if miss := g.control(v, o); miss <= best {
				best, v.op = miss/2, o // a later one must be clearly better
			}
		}
		if v.op != nil || g.work <= 0 {
			return
		}
	}
	if layer, port := v.made(); port != nil && g.leaves[layer] {
		v.op = &given{v: v, layer: layer, input: g.inputOf(layer)}
	}
}

// inputOf is the value that a layer took, nil if it was not recorded.
func (g *graph) inputOf(layer string) *value {
	if p := g.s.Input(layer); p != nil {
		return g.find(layer, p.Port)
	}
	return nil
}

// cone explains the target and what the candidate did not record on the way to it.
func (g *graph) cone() []*value {
	const limit = 48
	var out []*value
	seen := map[*value]bool{}
	var visit func(v *value)
	visit = func(v *value) {
		if seen[v] || len(out) == limit || g.work <= 0 {
			return
		}
		seen[v] = true
		if g.explain(v); v.op == nil {
			return
		}
		out = append(out, v)
		for _, in := range v.op.inputs() {
			if in.actual == nil {
				visit(in)
			}
		}
	}
	visit(g.target)
	return out
}
