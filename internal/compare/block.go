package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// tally has the figures of one block of pairs.
type tally struct {
	dd, gg, aa, ab       float64 // Σd², Σg², Σa², Σa·g, scaled
	abs, rel             float64 // largest |d| and |d|/max(|g|, relFloor), see rule.narrow; −1 if no pair is finite
	mismatches           int
	finite, badNonFinite int // pairs of finite values; mismatches among the others
	nan, inf             [2]int
}

// rowSums are the sums of a row, or of its piece in a block. The kernels in assembly write it.
type rowSums struct {
	dd, gg float64 // Σd², Σg², scaled
}

// rule says which pairs of a block are mismatches.
type rule struct {
	tol    Tolerance
	exact  bool // integers on a side: any difference is a mismatch
	narrow bool // both types are exact in float32, in which the maxima of blocks are compared
	scale  scale
}

// narrow reports whether all values of a type are exact in float32.
func narrow(d tensor.DType) bool { return d.Size() <= 2 || d == tensor.F32 }

// kernel returns the figures of a block, and writes those of its rows. rel need only be right if it
// is above the one that is known.
type kernel func(p *pass, s *scratch, b span, rows []rowSums, known float64) tally

// loop is the kernel for values of at most 53 bits. It is the readable reference for those in
// assembly: their counters and maxima must equal its own exactly, their sums up to rounding.
func loop(p *pass, s *scratch, b span, rows []rowSums, _ float64) tally {
	if p.narrow {
		g, a := grow(&s.floats[0], b.len()), grow(&s.floats[1], b.len())
		s.sides[0].Float32s(g, b.start-s.base[0])
		s.sides[1].Float32s(a, b.start-s.base[1])
		return addRows(rows, g, a, b.cols, p.tol)
	}
	g, a := grow(&s.g, b.len()), grow(&s.a, b.len())
	s.sides[0].Float64s(g, b.start-s.base[0])
	s.sides[1].Float64s(a, b.start-s.base[1])
	return addRows(rows, g, a, b.cols, p.tol)
}

// addRows adds up rows. A square that overflows makes a sum infinite.
func addRows[T float32 | float64](rows []rowSums, golden, actual []T, cols int, tol Tolerance) tally {
	f := tally{finite: len(golden)}
	atol, rtol := tol.Atol, tol.Rtol
	var most uint64         // bits of the largest |d|; they order like the numbers, and need no branch
	rel, bound := -1., -1.0 // |d| ≤ bound·|g| ⇒ |d|/max(|g|, relFloor) ≤ rel, however it is rounded
	for i := range rows {
		g := golden[i*cols:][:cols]
		a := actual[i*cols:][:len(g)]
		var dd, gg, aa, ab float64 // locals stay in registers
		mismatches := 0
		for j, x := range g {
			y := a[j]
			gv, av := float64(x), float64(y)
			d := av - gv
			if d-d != 0 && !(finite(gv) && finite(av)) {
				f.finite--
				f.notFinite(gv, av, tol)
				continue
			}
			// The conversions keep compilers from fusing multiply and add: sums are the same on every
			// machine.
			dd += float64(d * d)
			gg += float64(gv * gv)
			aa += float64(av * av)
			ab += float64(av * gv)
			ag, size := math.Abs(gv), math.Abs(float64(y-x))
			most = max(most, math.Float64bits(size))
			if size > bound*ag { // rare; the division decides
				rel = max(rel, ratio(T(size), T(ag)))
				bound = rel * (1 - 0x1p-22)
			}
			bad := 1
			if math.Abs(d) <= atol+float64(rtol*ag) {
				bad = 0
			}
			mismatches += bad
		}
		rows[i] = rowSums{dd, gg}
		f.dd, f.gg, f.aa, f.ab = f.dd+dd, f.gg+gg, f.aa+aa, f.ab+ab
		f.mismatches += mismatches
	}
	if f.abs, f.rel = -1, -1; f.finite > 0 {
		f.abs, f.rel = math.Float64frombits(most), max(rel, 0)
	}
	return f
}

// ratio is |d| of |g|; in float32 rounded up, so that known·|g| ≥ |d| says that it is not above the
// known one.
func ratio[T float32 | float64](d, g T) float64 {
	g = max(g, relFloor)
	r := d / g
	if r32, ok := any(r).(float32); ok && float64(r32)*float64(g) < float64(d) {
		return float64(math.Nextafter32(r32, math.MaxFloat32))
	}
	return float64(r)
}

// anyRows is the kernel for any values, with a scale and of 64 bits, too.
func anyRows(p *pass, s *scratch, b span, rows []rowSums, _ float64) tally {
	f := tally{abs: -1, rel: -1}
	s.read(p.golden, p.actual, b.start, b.len())
	for i := range rows {
		rows[i] = rowSums{}
		for j := i * b.cols; j < (i+1)*b.cols; j++ {
			if g, a := s.g[j], s.a[j]; finite(g) && finite(a) {
				f.pair(&rows[i], g, a, s.d[j], &p.rule)
			} else {
				f.notFinite(g, a, p.tol)
			}
		}
		f.dd += rows[i].dd
		f.gg += rows[i].gg
	}
	return f
}

// pair adds one pair of finite values. d is their difference.
func (f *tally) pair(r *rowSums, gv, av, d float64, ru *rule) {
	f.finite++
	sd, sg, sa := d, gv, av
	if !ru.scale.zero() {
		sd, sg, sa = math.Ldexp(d, -ru.scale.d), math.Ldexp(gv, -ru.scale.g), math.Ldexp(av, -ru.scale.a)
		if math.IsInf(d, 0) {
			sd = math.Ldexp(float64(av/2)-float64(gv/2), 1-ru.scale.d)
		}
	}
	r.dd += float64(sd * sd)
	r.gg += float64(sg * sg)
	f.aa += float64(sa * sa)
	f.ab += float64(sa * sg)
	d, ag := math.Abs(d), math.Abs(gv)
	if ru.narrow {
		x := math.Abs(float64(float32(av) - float32(gv)))
		f.abs, f.rel = max(f.abs, x), max(f.rel, ratio(float32(x), float32(ag)))
	} else {
		f.abs, f.rel = max(f.abs, d), max(f.rel, ratio(d, ag))
	}
	if ru.exact && d != 0 || !ru.exact && !ru.tol.within(d, ag) {
		f.mismatches++
	}
}

// notFinite counts a pair with a value that is not finite.
func (f *tally) notFinite(g, a float64, tol Tolerance) {
	for side, v := range [2]float64{g, a} {
		if math.IsNaN(v) {
			f.nan[side]++
		} else if math.IsInf(v, 0) {
			f.inf[side]++
		}
	}
	if !tol.matches(g, a) {
		f.badNonFinite++
		f.mismatches++
	}
}

// within is the rule for finite values with distance d and |g| = ag.
func (t Tolerance) within(d, ag float64) bool { return d <= t.Atol+float64(t.Rtol*ag) }

// matches is the rule for any two values of which at least one is a float.
func (t Tolerance) matches(g, a float64) bool {
	switch {
	case finite(g) && finite(a):
		return t.within(math.Abs(a-g), math.Abs(g))
	case math.IsNaN(g) || math.IsNaN(a):
		return t.EqualNaN && math.IsNaN(g) && math.IsNaN(a)
	default:
		return g == a // an infinity matches only itself
	}
}

func finite(x float64) bool { return x-x == 0 }
