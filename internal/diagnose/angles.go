package diagnose

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/localise"
)

// angles is out = cos or sin of position·frequency: what a rotary embedding puts out.
type angles struct {
	positions, out *value
	freqs          []float64
	sine           bool
	pairs          bool      // each angle twice in a row, and not all angles twice
	double         bool      // each angle twice
	plain          []float64 // the frequencies without the config's scaling; nil if there is none
}

// findAngles tries cosines and sines of the integers that a layer took.
func findAngles(g *graph, v *value, layer string) []op {
	var positions *value
	for _, x := range g.values {
		if !x.golden.DType().IsFloat() && x.golden.Len() == v.rows && slices.ContainsFunc(x.ports, func(p *Port) bool {
			return p.Layer == layer && localise.RoleOf(p.Port) == localise.Input
		}) {
			positions = x
		}
	}
	if positions == nil || v.width < 2 {
		return nil
	}
	for _, x := range read(v.golden, v.width, spread(v.rows, probeRows)) {
		if !(math.Abs(x) <= 1.01) {
			return nil
		}
	}
	all := thetas
	if t, ok := g.s.Config.Float("rope_theta", "rotary_emb_base"); ok && t > 0 {
		all = append([]float64{t}, thetas...)
	}
	var ops []op
	add := func(of func(dim int) []float64, plain float64) {
		for _, sine := range []bool{false, true} {
			for _, double := range []bool{true, false} {
				dim := 2 * v.width
				if double {
					dim = v.width
				}
				o := angles{positions: positions, out: v, freqs: of(dim), sine: sine, double: double}
				if o.freqs == nil || double && dim%2 != 0 {
					continue
				}
				if plain > 0 {
					o.plain = frequencies(plain, dim)
				}
				ops = append(ops, &o)
				if double {
					paired := o
					paired.pairs = true
					ops = append(ops, &paired)
				}
			}
		}
	}
	if t, ok := g.s.Config.Float("rope_theta", "rotary_emb_base"); ok && t > 0 {
		add(func(dim int) []float64 { return g.s.Config.scaledFrequencies(t, dim) }, t)
	}
	for _, theta := range all {
		add(func(dim int) []float64 { return frequencies(theta, dim) }, 0)
	}
	return ops
}

func (o *angles) inputs() []*value { return []*value{o.positions} }

func (o *angles) eval(e *evaluation, rows []int) []float64 { return o.with(e, rows, 0, 1) }

func (o *angles) with(e *evaluation, rows []int, offset, step float64) []float64 {
	ids := e.ids(o.positions)
	out := make([]float64, 0, len(rows)*o.out.width)
	for _, r := range rows {
		for c := range o.out.width {
			i := c
			switch {
			case o.double && o.pairs:
				i = c / 2
			case o.double:
				i = c % len(o.freqs)
			}
			a := (ids[r]*step + offset) * o.freqs[i]
			if o.sine {
				out = append(out, math.Sin(a))
			} else {
				out = append(out, math.Cos(a))
			}
		}
	}
	return out
}

func (o *angles) faults(g *graph, v *value) []fault {
	var out []fault
	add := func(id, text string, change func(n *angles)) {
		n := *o
		change(&n)
		out = append(out, fault{id: id, text: text, eval: n.eval})
	}
	dim := 2 * len(o.freqs)
	if o.plain != nil {
		add("config/rope_scaling", "the scaling of the frequencies is missing", func(n *angles) { n.freqs = o.plain })
		out[0].rank = -1 // the theta is right
	}
	for _, t := range thetas {
		add("rope/theta", fmt.Sprintf("theta is %g", t), func(n *angles) { n.freqs = frequencies(t, dim) })
	}
	if o.double {
		add("rope/layout", "the angles stand the other way: in pairs, or in halves", func(n *angles) { n.pairs = !n.pairs })
	}
	add("rope/layout", "cosine and sine are exchanged", func(n *angles) { n.sine = !n.sine })
	for _, by := range []float64{1, -1, 2, -2} {
		out = append(out, fault{id: "rope/offset", text: fmt.Sprintf("the positions are %+g", by),
			eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, by, 1) }})
	}
	for _, f := range []float64{-1, 0.5, 0.25, 0.125, 2, 4, 8} {
		out = append(out, fault{id: "rope/theta", rank: 1, text: fmt.Sprintf("the positions are multiplied by %g", f),
			eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, 0, f) }})
	}
	return append(out, g.fitted(v, "rope/theta", "theta is another number", math.Log(10), math.Log(1e9), 0, math.Exp, func(x float64) func(*evaluation, []int) []float64 {
		n := *o
		n.freqs = frequencies(math.Exp(x), dim)
		return n.eval
	}))
}
