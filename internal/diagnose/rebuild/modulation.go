package rebuild

import (
	"math"

	"github.com/goparity/goparity/internal/op"
)

// Modulation is the op of that name. m is a part of the output of an adaLN projection; z is another
// part, or a value.
type Modulation struct {
	Made
	op.Modulation
	X, Z *Value // Z is nil for a shift, which is part Shift of M
	M    *Value
	// Parts of M, of the width of X each.
	Parts, Part, Shift int
}

func (o *Modulation) Inputs() []*Value { return []*Value{o.X, o.Z, o.M} }

func (o *Modulation) Eval(e *Evaluation, rows []int) []float64 {
	w := o.Out.Width
	x, all := e.Beside(o.X, o.Out, rows), e.Beside(o.M, o.Out, rows)
	if len(x) != len(rows)*w || len(all) != len(rows)*w*o.Parts {
		return nil
	}
	m, z := part(all, o.Parts*w, o.Part*w, w), part(all, o.Parts*w, o.Shift*w, w)
	if o.Z != nil {
		if z = e.Beside(o.Z, o.Out, rows); len(z) != len(x) {
			return nil
		}
	}
	out := make([]float64, len(x))
	for i := range out {
		out[i] = o.Of(x[i], z[i], m[i])
	}
	return out
}

// findModulation tries the parts of each value that is a whole number of times as wide.
func findModulation(g *Graph, v *Value) []Op {
	rows := op.Spread(v.Rows, modulationRows)
	e := g.goldenly()
	best := nearestTo(v.Golden(rows), v)
	var terms []term
	for _, x := range g.Alikes(v) {
		terms = append(terms, term{x, e.Get(x, rows)})
	}
	n := len(terms)
	for _, m := range g.before(v) {
		k := m.Width / v.Width
		if k < partsLeast || k > partsMost || m.Width%v.Width != 0 {
			continue
		}
		all := e.Beside(m, v, rows)
		if all == nil || !g.Spend(float64(len(best.target)*n*(k*k+n*k))) {
			continue
		}
		parts := make([][]float64, k)
		for p := range parts {
			parts[p] = part(all, m.Width, p*v.Width, v.Width)
		}
		for _, x := range terms {
			for a := range k {
				modulated := Modulation{Made: Made{v}, X: x.v, M: m, Parts: k, Part: a}
				for b := range k {
					if a != b {
						o := modulated
						o.Modulation, o.Shift = op.ScaleShift, b
						best.modulation(&o, x.x, parts[b], parts[a])
					}
				}
				for _, y := range terms {
					if x.v != y.v {
						o := modulated
						o.Modulation, o.Z = op.Gate, y.v
						best.modulation(&o, x.x, y.x, parts[a])
					}
				}
			}
		}
	}
	return best.ops()
}

// modulation is try, which ends as soon as the op is too far.
func (n *nearest) modulation(o *Modulation, x, z, m []float64) {
	limit := n.least * n.size
	d := 0.0
	for i, t := range n.target {
		miss := o.Of(x[i], z[i], m[i]) - t
		if d += miss * miss; d > limit*limit {
			return
		}
	}
	n.at(math.Sqrt(d), func() Op { return o })
}
