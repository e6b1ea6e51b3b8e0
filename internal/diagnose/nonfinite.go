package diagnose

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/tensor"
)

// limits are the largest finite numbers of types that models overflow.
var typeLimits = []struct {
	name  string
	limit float64
}{
	{"float16", 65504}, {"float8_e4m3", 448}, {"float8_e4m3fnuz", 240}, {"float8_e5m2", 57344},
}

// Overflow tries numbers that were too large for a type: infinite or cut at its largest number.
var Overflow = Func(func(s *Scene) []Prediction {
	p := s.pair()
	if p == nil {
		return nil
	}
	g, a := p.golden, p.actual
	largest := 0.0
	for _, x := range a.Data {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			largest = max(largest, math.Abs(x))
		}
	}
	var out []Prediction
	for _, t := range typeLimits {
		if n := count(g.Data, func(x float64) bool { return math.Abs(x) > t.limit }); n > 0 {
			out = append(out,
				p.says("dtype/overflow", g.Map(func(x float64) float64 { return math.Max(-t.limit, math.Min(t.limit, x)) }), 0, -1,
					"%d elements are beyond %g, the largest number of %s, and cut there", n, t.limit, t.name),
				p.says("dtype/overflow", g.Map(func(x float64) float64 {
					if math.Abs(x) > t.limit {
						return math.Inf(int(math.Copysign(1, x)))
					}
					return x
				}), 0, -1, "%d elements are beyond %g, the largest number of %s, and became infinite", n, t.limit, t.name))
		}
	}
	out = append(out, s.overflowingNorm(p)...)
	// Cut at a number that no type explains.
	if at := count(a.Data, func(x float64) bool { return math.Abs(x) == largest }); at > 1 && largest > 0 {
		if n := count(g.Data, func(x float64) bool { return math.Abs(x) > largest }); n > 0 {
			out = append(out, p.says("value/clipped", g.Map(func(x float64) float64 { return math.Max(-largest, math.Min(largest, x)) }), 1, 0,
				"%d elements are beyond ±%.6g and cut there", n, largest))
		}
	}
	if inf := count(a.Data, func(x float64) bool { return math.IsInf(x, 0) }); inf > 0 && count(g.Data, func(x float64) bool { return math.IsInf(x, 0) }) == 0 {
		out = append(out, Prediction{ID: "dtype/overflow", Rank: -2, Text: fmt.Sprintf("%d of %d elements are infinite, and none in the reference, whose largest is %.4g",
			inf, len(a.Data), maxAbs(g.Data))})
	}
	return out
})

// overflowingNorm: the squares of a row are too large for float16, their sum becomes infinite, and the row divided by it zero.
func (s *Scene) overflowingNorm(p *pair) (out []Prediction) {
	in := s.Input(s.Target.Layer)
	if in == nil || !s.isOutput() || !isNormName(lastPart(s.Target.Layer)) {
		return nil
	}
	x := p.of(s, in, false)
	if x == nil || len(x.Data) != len(p.golden.Data) {
		return nil
	}
	for _, way := range []struct {
		text string
		of   func(row []float64) float64
	}{
		{"a square", func(row []float64) float64 { return maxAbs(row) * maxAbs(row) }},
		{"the sum of the squares", func(row []float64) float64 { f := rootMeanSquare(row); return f * f * float64(len(row)) }},
		{"the mean of the squares", func(row []float64) float64 { f := rootMeanSquare(row); return f * f }},
	} {
		for _, rounded := range []bool{false, true} {
			n := 0
			v := p.golden.MapRows(func(i int, dst, src []float64) {
				if way.of(x.Row(i)) >= 65520 { // from here on float16 rounds to infinity
					n++
					return
				}
				f := 1.0
				if rounded {
					f = roundedSquares(x.Row(i))
				}
				for c, y := range src {
					dst[c] = f * y
				}
			})
			if n > 0 {
				out = append(out, p.says("dtype/overflow", v, 0, -3, "%s overflows float16 in %d of %d rows, which become zero", way.text, n, v.Rows()))
			}
		}
	}
	return out
}

// roundedSquares is by what factor an RMS norm of a row is off if the squares are kept in float16.
func roundedSquares(row []float64) float64 {
	half := narrow{bits: 11, least: -14, limit: 65504}
	exact, kept := 0.0, 0.0
	for _, x := range row {
		exact += x * x
		kept += half.round(x * x)
	}
	if kept == 0 {
		return 1
	}
	return math.Sqrt(exact / kept)
}

// NaN tells where the first NaN came from.
var NaN = Func(func(s *Scene) []Prediction {
	t := s.Target
	p := s.pair()
	if p == nil {
		return nil
	}
	g, a := p.golden, p.actual
	isNaN := func(x float64) bool { return math.IsNaN(x) }
	n := count(a.Data, isNaN)
	if n == 0 || count(g.Data, isNaN) > 0 {
		return nil
	}
	first := 0
	for !isNaN(a.Data[first]) {
		first++
	}
	w := a.Width()
	where := p.index[first/w]*w + first%w
	text := fmt.Sprintf("%d of %d elements are NaN, the first at %s; the inputs hold none", n, len(a.Data), tensor.FormatShape(t.Golden.Index(where)))
	out := []Prediction{{ID: "nan/first", Text: text, Rank: -3}}
	// What overflows becomes infinite, and the difference of two infinities is NaN: then the NaN is not the cause.
	if s.largest() < 1e4 && n < len(a.Data) {
		value := NewArray(g.Shape...)
		copy(value.Data, g.Data)
		for i, x := range a.Data {
			if isNaN(x) {
				value.Data[i] = x
			}
		}
		out = append(out, p.says("nan/first", value, 0, 1, "%s; all others are right", text))
	}
	return out
})

// largest is the largest number of the reference in the target and in what its layer was given.
func (s *Scene) largest() float64 {
	m := 0.0
	for _, p := range s.Ports {
		if p.Case == s.Case && p.Step == s.Step && p.Layer == s.Target.Layer && p.Golden.DType().IsFloat() {
			m = max(m, maxAbs(s.Part(p.Golden).Data))
		}
	}
	return m
}

func maxAbs(x []float64) float64 {
	m := 0.0
	for _, v := range x {
		if a := math.Abs(v); a > m && !math.IsInf(a, 0) {
			m = a
		}
	}
	return m
}

func count(x []float64, is func(float64) bool) (n int) {
	for _, v := range x {
		if is(v) {
			n++
		}
	}
	return n
}
