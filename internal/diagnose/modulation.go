package diagnose

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// modulation is out = x·(1 + scale) + shift, or out = x + gate·y: scale, shift and gate are parts of the output of an adaLN projection.
type modulation struct {
	out, x, y, m       *value // y is nil without a gate
	parts              int    // of m
	scale, shift, gate int    // the numbers of the parts
}

func (o *modulation) inputs() []*value {
	if o.y != nil {
		return []*value{o.x, o.y, o.m}
	}
	return []*value{o.x, o.m}
}

func (o *modulation) eval(e *evaluation, rows []int) []float64 {
	if o.y != nil {
		return o.with(e, rows, func(x, y float64, m []float64) float64 { return x + m[o.gate]*y })
	}
	return o.with(e, rows, func(x, _ float64, m []float64) float64 { return x*(1+m[o.scale]) + m[o.shift] })
}

// with gives f of each element: x, y, and the parts of the modulation at its column.
func (o *modulation) with(e *evaluation, rows []int, f func(x, y float64, m []float64) float64) []float64 {
	w := o.out.width
	x, m := e.matching(o.x, o.out, rows), e.matching(o.m, o.out, rows)
	var y []float64
	if o.y != nil {
		if y = e.matching(o.y, o.out, rows); len(y) != len(x) {
			return nil
		}
	}
	if len(x) != len(rows)*w || len(m) != len(rows)*w*o.parts {
		return nil
	}
	out := make([]float64, len(x))
	part := make([]float64, o.parts)
	for r := range rows {
		for c := range w {
			for p := range part {
				part[p] = m[r*w*o.parts+p*w+c]
			}
			i := r*w + c
			yi := 0.0
			if y != nil {
				yi = y[i]
			}
			out[i] = f(x[i], yi, part)
		}
	}
	return out
}

// findModulation tries the parts of each value that is a whole number of times as wide.
func findModulation(g *graph, v *value) []op {
	const nRows = 6
	rows := spread(v.rows, nRows)
	e := g.golden()
	t := read(v.golden, v.width, rows)
	size := floats.Norm(t, 2)
	type term struct {
		v *value
		x []float64
	}
	var terms []term
	for _, x := range g.alikes(v) {
		terms = append(terms, term{x, e.get(x, rows)})
	}
	var best *modulation
	least := v.noise()
	for _, m := range g.before(v) {
		k := m.width / v.width
		if k < 2 || k > 12 || m.width%v.width != 0 {
			continue
		}
		ms := e.matching(m, &value{rows: v.rows, shape: v.shape}, rows)
		if ms == nil || !g.spend(float64(len(t)*len(terms)*(k*k+len(terms)*k))) {
			continue
		}
		part := func(p, i int) float64 { return ms[i/v.width*m.width+p*v.width+i%v.width] }
		for _, x := range terms {
			for a := range k {
				for b := range k {
					if a == b {
						continue
					}
					d := 0.0
					for i, ti := range t {
						r := ti - x.x[i]*(1+part(a, i)) - part(b, i)
						if d += r * r; d > least*least*size*size {
							break
						}
					}
					if d < least*least*size*size {
						least, best = math.Sqrt(d)/size/2, &modulation{out: v, x: x.v, m: m, parts: k, scale: a, shift: b}
					}
				}
			}
			for _, y := range terms {
				if x.v == y.v {
					continue
				}
				for a := range k {
					d := 0.0
					for i, ti := range t {
						r := ti - x.x[i] - part(a, i)*y.x[i]
						if d += r * r; d > least*least*size*size {
							break
						}
					}
					if d < least*least*size*size {
						least, best = math.Sqrt(d)/size/2, &modulation{out: v, x: x.v, y: y.v, m: m, parts: k, gate: a}
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

func (o *modulation) faults(g *graph, v *value) []fault {
	var out []fault
	add := func(id, text string, f func(x, y float64, m []float64) float64) {
		out = append(out, fault{id: id, text: text, eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, f) }})
	}
	if o.y != nil {
		add("modulation/missing", "the gate is missing", func(x, y float64, _ []float64) float64 { return x + y })
		add("modulation/missing", "the gate is 1 + gate", func(x, y float64, m []float64) float64 { return x + (1+m[o.gate])*y })
		add("residual/missing", "x, to which gate·y is added, is missing", func(_, y float64, m []float64) float64 { return m[o.gate] * y })
		add("residual/missing", "gate·y is not added", func(x, _ float64, _ []float64) float64 { return x })
		add("modulation/order", "the gate multiplies x + y", func(x, y float64, m []float64) float64 { return m[o.gate] * (x + y) })
		add("modulation/order", "the gate multiplies x and not y", func(x, y float64, m []float64) float64 { return m[o.gate]*x + y })
		for p := range o.parts {
			if p != o.gate {
				add("modulation/order", fmt.Sprintf("part %d of the modulation is the gate, and not part %d", p, o.gate),
					func(x, y float64, m []float64) float64 { return x + m[p]*y })
			}
		}
		for _, other := range g.alikes(v) {
			if other == o.x || other == o.y {
				continue
			}
			stream, branch := *o, *o
			stream.x, branch.y = other, other
			out = append(out, fault{id: "residual/source", rank: 1, text: fmt.Sprintf("gate·y is added to %s and not to %s", other.text(), o.x.text()), eval: stream.eval},
				fault{id: "residual/source", rank: 2, text: fmt.Sprintf("the gate multiplies %s and not %s", other.text(), o.y.text()), eval: branch.eval})
		}
		return out
	}
	if layer, _ := o.x.made(); layer != "" && g.leaves[layer] && isNormName(lastPart(layer)) {
		if in := g.inputOf(layer); in != nil && in.width == o.x.width && in.rows == o.x.rows {
			raw := *o
			raw.x = in
			out = append(out, fault{id: "norm/order", text: "what is modulated is the input of " + layer + " and not its output", eval: raw.eval})
			if g.explain(o.x); o.x.op != nil {
				if n, ok := o.x.op.(*normed); ok && n.w == nil {
					out = append(out, fault{id: "modulation/order", text: layer + " comes after the modulation and not before it", eval: func(e *evaluation, rows []int) []float64 {
						return n.of(raw.eval(e, rows))
					}})
				}
			}
		}
	}
	add("modulation/missing", "1 + is missing: x·scale + shift", func(x, _ float64, m []float64) float64 { return x*m[o.scale] + m[o.shift] })
	add("modulation/missing", "the shift is missing", func(x, _ float64, m []float64) float64 { return x * (1 + m[o.scale]) })
	add("modulation/missing", "the scale is missing", func(x, _ float64, m []float64) float64 { return x + m[o.shift] })
	add("modulation/missing", "scale and shift are missing", func(x, _ float64, _ []float64) float64 { return x })
	add("modulation/order", "the shift is added before the scale: (x + shift)·(1 + scale)", func(x, _ float64, m []float64) float64 { return (x + m[o.shift]) * (1 + m[o.scale]) })
	add("modulation/missing", "1 + is missing, and scale and shift are exchanged", func(x, _ float64, m []float64) float64 { return x*m[o.shift] + m[o.scale] })
	add("modulation/order", "the scale is subtracted: x·(1 − scale) + shift", func(x, _ float64, m []float64) float64 { return x*(1-m[o.scale]) + m[o.shift] })
	for a := range o.parts {
		for b := range o.parts {
			if a != b && (a != o.scale || b != o.shift) {
				add("modulation/order", fmt.Sprintf("scale and shift are parts %d and %d of the modulation, and not %d and %d", a, b, o.scale, o.shift),
					func(x, _ float64, m []float64) float64 { return x*(1+m[a]) + m[b] })
			}
		}
	}
	return out
}
