package rebuild

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/op"
)

// Sum is out = Σ Factorsᵢ·Termsᵢ: a multiple (one term), a residual connection (two), or embeddings
// of words, positions and types (three).
type Sum struct {
	Made
	Terms   []*Value
	Factors []float64
}

func (o *Sum) Inputs() []*Value { return o.Terms }

func (o *Sum) Eval(e *Evaluation, rows []int) []float64 {
	out := make([]float64, len(rows)*o.Out.Width)
	for t, x := range o.Terms {
		got := e.Beside(x, o.Out, rows)
		if len(got) != len(out) {
			return nil
		}
		floats.AddScaled(out, o.Factors[t], got)
	}
	return out
}

// Product is out = F(A)·B, the gate of an MLP. F is the identity if the reference recorded A with
// its activation.
type Product struct {
	Made
	A, B *Value
	F    op.Activation
}

func (o *Product) Inputs() []*Value { return []*Value{o.A, o.B} }

func (o *Product) Eval(e *Evaluation, rows []int) []float64 {
	return op.Times(o.F.Of(e.Beside(o.A, o.Out, rows)), e.Beside(o.B, o.Out, rows))
}

// term is some elements of a value that may be part of another.
type term struct {
	v *Value
	x []float64
}

// terms samples v, and all earlier values of its width whose rows go together with its own.
func terms(g *Graph, v *Value) (target []float64, out []term) {
	rows, columns := op.Spread(v.Rows, termRows), op.Spread(v.Width, termColumns)
	e := g.goldenly()
	for _, x := range g.before(v) {
		if x.Width == v.Width {
			if got := e.Beside(x, v, rows); got != nil {
				out = append(out, term{x, op.Select(got, v.Width, columns)})
			}
		}
	}
	return op.Select(v.Golden(rows), v.Width, columns), out
}

// nearest keeps the op whose result is nearest to a target.
type nearest struct {
	target      []float64
	size, least float64 // least is relative to size; a later op must be clearly better
	op          Op
}

func nearestTo(target []float64, v *Value) *nearest {
	return &nearest{target: target, size: floats.Norm(target, 2), least: v.Noise()}
}

func (n *nearest) try(got []float64, of func() Op) { n.at(floats.Distance(got, n.target, 2), of) }

func (n *nearest) at(distance float64, of func() Op) {
	if miss := distance / n.size; miss < n.least {
		n.least, n.op = miss/better, of()
	}
}

func (n *nearest) ops() []Op {
	if n.op == nil {
		return nil
	}
	return []Op{n.op}
}

// findSum looks for two values that add up to v, for three (embeddings, attention and MLP beside each
// other), and for two with a constant factor at one of them (a residual multiplier).
func findSum(g *Graph, v *Value) []Op {
	t, terms := terms(g, v)
	n := float64(len(terms))
	if !g.Spend(n * n * float64(len(t))) {
		return nil
	}
	best := nearestTo(t, v)
	sum := func(factor float64, values ...*Value) func() Op {
		return func() Op {
			factors := slices.Repeat([]float64{1}, len(values))
			factors[len(values)-1] = factor
			return &Sum{Made{v}, values, factors}
		}
	}
	both := make([]float64, len(t))
	for i, a := range terms {
		for _, b := range terms[:i] {
			best.try(floats.AddTo(both, a.x, b.x), sum(1, a.v, b.v))
		}
	}
	if best.op == nil && (isFront(v) || len(terms) <= threeTerms) && g.Spend(n*n*n*float64(len(t))/6) {
		all := make([]float64, len(t))
		for i, a := range terms {
			for j, b := range terms[:i] {
				floats.AddTo(both, a.x, b.x)
				for _, c := range terms[:j] {
					best.try(floats.AddTo(all, both, c.x), sum(1, a.v, b.v, c.v))
				}
			}
		}
	}
	if best.op != nil {
		return best.ops()
	}
	rest := make([]float64, len(t))
	for _, a := range terms {
		floats.SubTo(rest, t, a.x)
		for _, b := range terms {
			f := floats.Dot(rest, b.x) / floats.Dot(b.x, b.x)
			if a.v != b.v && math.Abs(f) > noFactor {
				miss := floats.Distance(floats.AddScaledTo(both, a.x, f, b.x), t, 2)
				best.at(freely*miss, sum(f, a.v, b.v))
			}
		}
	}
	return best.ops()
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
