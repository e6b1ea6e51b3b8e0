package diagnose

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/tensor"
)

// narrow is a type of fewer bits than the one in which the numbers are kept.
type narrow struct {
	name     string
	bits     int // of the significand, the leading one included
	least    int // exponent of the smallest normal number
	limit    float64
	saturate bool
}

var narrows = []narrow{
	{"bfloat16", 8, -126, math.MaxFloat32, false},
	{"float16", 11, -14, 65504, false},
	{"float8_e4m3", 4, -6, 448, true},
	{"float8_e5m2", 3, -14, 57344, true},
	{"tf32", 11, -126, math.MaxFloat32, false},
}

// round rounds to the type, to nearest and ties to even.
func (n narrow) round(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	_, e := math.Frexp(x)
	unit := math.Ldexp(1, max(e-1, n.least)-(n.bits-1))
	y := math.RoundToEven(x/unit) * unit
	if n.saturate {
		return math.Max(-n.limit, math.Min(n.limit, y))
	}
	return y
}

// epsilon is the largest relative error of rounding.
func (n narrow) epsilon() float64 { return math.Ldexp(1, -n.bits) }

// holds reports whether every number is one of the type.
func (n narrow) holds(x []float64) bool {
	for _, v := range x {
		if n.round(v) != v {
			return false
		}
	}
	return true
}

// Downcast tries numbers that went through a type of fewer bits. Two things prove it: every number of the candidate is one of that type and those
// of the reference are not; or the layer's product with rounded operands fits, where the weights are given.
var Downcast = Func(func(s *Scene) []Prediction {
	p := s.pair()
	if p == nil || !finite(p.actual.Data) || p.golden.Width() == 0 {
		return nil
	}
	t := s.Target
	var out []Prediction
	for _, n := range narrows {
		if n.epsilon() < 8*t.Actual.DType().Epsilon() || n.epsilon() < 8*t.Golden.DType().Epsilon() {
			continue // the candidate, or the reference, has no more bits by itself
		}
		out = append(out, p.says("dtype/downcast", p.golden.Map(n.round), 0, 1, "the result is rounded to %s", n.name))
		if v := heldBy(n, p); v != nil {
			out = append(out, p.says("dtype/downcast", v, 0, 0, "every number is a %s, of %d bits of significand, and the error is of that size", n.name, n.bits))
		}
		out = append(out, s.roundedProduct(p, n)...)
	}
	if guess, ok := noiseLike(p, t); ok {
		out = append(out, guess)
	}
	return out
})

// heldBy gives the candidate's numbers if all are of the type, the reference's are not, and each lies within the rounding of the type from
// the reference's: a few units of the element, or of the tensor where sums cancel.
func heldBy(n narrow, p *pair) *Array {
	a := p.actual.Data
	different := 0
	for i, x := range a {
		if i > 0 && x != a[0] {
			different++
		}
	}
	if different < perParam || n.holds(p.golden.Data) || !n.holds(a) {
		return nil
	}
	// A product of rounded operands errs by some roundings of the largest terms: of the RMS for those that cancel.
	reach := 8 * n.epsilon()
	rms := rootMeanSquare(p.golden.Data)
	for i, x := range a {
		if math.Abs(x-p.golden.Data[i]) > reach*(math.Abs(p.golden.Data[i])+rms) {
			return nil
		}
	}
	if relative(a, p.golden.Data) > 4*n.epsilon() {
		return nil
	}
	return p.actual
}

// roundedProduct is the layer's own product with operands of the type, where its weights are given.
func (s *Scene) roundedProduct(p *pair, n narrow) []Prediction {
	l := s.Target.Layer
	in := s.Input(l)
	if in == nil || !s.isOutput() || !s.isLeaf(l) {
		return nil
	}
	w, b := s.Weight(l, "weight"), s.Weight(l, "bias")
	x := p.of(s, in, false)
	gx := p.of(s, in, true)
	if w == nil || x == nil || gx == nil || len(w.Shape) != 2 || len(w.Data) == 0 || w.Shape[0] != p.golden.Width() || w.Shape[1] != x.Width() {
		return nil
	}
	// Some rows tell as well as all.
	rows := spread(x.Rows(), max(1, min(x.Rows(), int(2e8/float64(max(len(w.Data), 1))))))
	if len(rows) < x.Rows()/2 && len(rows) < 32 {
		return nil
	}
	keep := make([]bool, s.Target.Golden.Len()/max(s.Target.Golden.RowLen(), 1))
	gather := func(a *Array) *Array {
		out := NewArray(len(rows), a.Width())
		for i, r := range rows {
			copy(out.Row(i), a.Row(r))
		}
		return out
	}
	for _, r := range rows {
		keep[p.index[r]] = true
	}
	golden := gather(p.golden)
	if relative(affine(gather(gx), w, b).Data, golden.Data) > max(s.Target.Floor.RelL2, 2e-5) {
		return nil // the control: it is not this product
	}
	xr, wr := gather(x).Map(n.round), w.Map(n.round)
	var br *Array
	if b != nil {
		br = b.Map(n.round)
	}
	var out []Prediction
	add := func(v *Array, text string) {
		out = append(out, Prediction{ID: "dtype/downcast", Rank: 1, Rows: keep, Value: v, Text: fmt.Sprintf(text, n.name)})
	}
	both := affine(xr, wr, b)
	add(both, "input and weight are rounded to %s")
	add(both.Map(n.round), "input, weight and result are rounded to %s")
	add(affine(gather(x), wr, b), "the weight is rounded to %s")
	add(affine(xr, w, b), "the input is rounded to %s")
	if br != nil {
		add(affine(xr, wr, br).Map(n.round), "input, weight, bias and result are rounded to %s")
		add(affine(xr, wr, nil).Map(n.round).MapRows(func(_ int, dst, src []float64) {
			for c, v := range src {
				dst[c] = n.round(v + br.Data[c])
			}
		}), "it is computed in %s, the bias added after the product was rounded")
	}
	return out
}

// affine is x·wᵀ + b; b may be nil.
func affine(x, w, b *Array) *Array {
	out := &Array{Shape: []int{x.Rows(), w.Rows()}, Data: matmul(x.Data, x.Width(), w.Data)}
	if b == nil {
		return out
	}
	return out.MapRows(func(_ int, dst, src []float64) {
		copy(dst, src)
		for j, v := range b.Data[:min(len(b.Data), len(dst))] {
			dst[j] += v
		}
	})
}

// noiseLike guesses: an error of the size of a narrow type's rounding that has nothing to do with the values, in all rows alike.
func noiseLike(p *pair, t *Port) (Prediction, bool) {
	g, e := p.golden, minus(p.actual, p.golden)
	rel := relative(p.actual.Data, g.Data)
	if len(e.Data) < 64 || !t.Actual.DType().IsFloat() || t.Actual.DType() != tensor.F32 {
		return Prediction{}, false
	}
	name := ""
	switch {
	case rel > 1e-3 && rel < 1.2e-2:
		name = "bfloat16"
	case rel > 6e-5 && rel < 1e-3:
		name = "float16 or tf32"
	case rel > 1.2e-2 && rel < 0.12:
		name = "float8"
	default:
		return Prediction{}, false
	}
	dot, mean := 0.0, 0.0
	for i, x := range e.Data {
		dot += x * g.Data[i]
		mean += x
	}
	en, gn := math.Sqrt(float64(len(e.Data)))*rootMeanSquare(e.Data), math.Sqrt(float64(len(g.Data)))*rootMeanSquare(g.Data)
	n := math.Sqrt(float64(len(e.Data)))
	// Four standard deviations of what chance gives.
	if math.Abs(dot)/(en*gn) > 4/n+0.02 || math.Abs(mean)/(en*n) > 4/n+0.02 {
		return Prediction{}, false
	}
	// A rounding error strikes every row alike.
	least, most := math.Inf(1), 0.0
	for r := range e.Rows() {
		f := rootMeanSquare(e.Row(r)) / max(rootMeanSquare(g.Row(r)), 1e-30)
		least, most = min(least, f), max(most, f)
	}
	if most > 8*least {
		return Prediction{}, false
	}
	return Prediction{ID: "dtype/downcast", Rank: -1,
		Text: fmt.Sprintf("the error is noise of relative L2 %.1e, the size of %s, and the same in every row", rel, name)}, true
}
