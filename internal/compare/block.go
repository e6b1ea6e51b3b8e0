package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// tally has the metrics of one block of pairs.
type tally struct {
	dd, gg, aa, ab       float64 // Σd², Σg², Σa², Σa·g
	abs, rel             float64 // largest |d| and |d|/max(|g|, relFloor), see rule.narrow; −1 if no pair is finite
	mismatches           int
	finite, badNonFinite int // pairs of finite values; mismatches among the others
	nan, inf             [2]int
}

// nothing is the tally of no pairs.
var nothing = tally{abs: -1, rel: -1}

// rowSums are the sums of a row, or of its piece in a block. The kernels in assembly write it.
type rowSums struct {
	dd, gg float64 // Σd², Σg²
}

// addRows adds the sums of rows.
func (f *tally) addRows(rows []rowSums) {
	for i := range rows {
		f.dd += rows[i].dd
		f.gg += rows[i].gg
	}
}

// rule says which pairs of a block are mismatches.
type rule struct {
	tol    Tolerance // zero for integers: any difference is a mismatch
	narrow bool      // both types are exact in float32, in which the maxima of blocks are compared
}

// rowsOf adds up a block of rows, which are not empty. It is the readable reference for the kernels in
// assembly: their counters and maxima must equal its own exactly, their sums up to rounding.
func rowsOf[T float32 | float64](rows []rowSums, g, a []T, cols int, ru *rule) tally {
	f := nothing
	for i := range rows {
		rows[i] = rowOf(&f, g[i*cols:][:cols], a[i*cols:][:cols], ru)
	}
	f.addRows(rows)
	return f
}

// rowOf adds a row. The fast loop assumes that all values are finite. If one is not, or a square
// overflows, Σd² is not finite, and anyRow reads the row again.
func rowOf[T float32 | float64](f *tally, g, a []T, ru *rule) rowSums {
	atol, rtol := ru.tol.Atol, ru.tol.Rtol
	var most uint64 // bits of the largest |d|; they order like the numbers, and need no branch
	a = a[:len(g)]
	rel, bound := f.rel, -1.0
	if rel >= 0 {
		bound = rel * (1 - 0x1p-22) // |d| ≤ bound·|g| ⇒ |d|/max(|g|, relFloor) ≤ rel, however it is rounded
	}
	var dd, gg, aa, ab float64 // locals stay in registers
	mismatches := 0
	for i, x := range g {
		y := a[i]
		gv, av := float64(x), float64(y)
		d := av - gv
		// The conversions keep compilers from fusing multiply and add: sums are the same on every
		// machine.
		dd += float64(d * d)
		gg += float64(gv * gv)
		aa += float64(av * av)
		ab += float64(av * gv)
		ag, size := math.Abs(gv), math.Abs(float64(y-x))
		most = max(most, math.Float64bits(size))
		if size > bound*ag { // rare; the division decides
			if r := ratio(T(size), T(ag)); r > rel {
				rel = r
				bound = rel * (1 - 0x1p-22)
			}
		}
		bad := 1
		if math.Abs(d) <= atol+float64(rtol*ag) {
			bad = 0
		}
		mismatches += bad
	}
	if dd-dd != 0 {
		return anyRow(f, g, a, nil, ru)
	}
	f.aa += aa
	f.ab += ab
	f.finite += len(g)
	f.mismatches += mismatches
	f.abs, f.rel = max(f.abs, math.Float64frombits(most)), max(rel, 0)
	return rowSums{dd, gg}
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

// anyRow is rowOf for any values; more is what their differences have more than that in float64, nil for nothing.
func anyRow[T float32 | float64](f *tally, g, a []T, more []float64, ru *rule) (r rowSums) {
	for i, x := range g {
		gv, av := float64(x), float64(a[i])
		if !finite(gv) || !finite(av) {
			f.odd(gv, av, ru)
			continue
		}
		d := av - gv
		if more != nil {
			d += more[i]
		}
		f.pair(&r, gv, av, d, ru)
	}
	return r
}

// odd counts a pair that is not finite.
func (f *tally) odd(gv, av float64, ru *rule) {
	for side, v := range [2]float64{gv, av} {
		if math.IsNaN(v) {
			f.nan[side]++
		} else if math.IsInf(v, 0) {
			f.inf[side]++
		}
	}
	if !ru.tol.matches(gv, av) {
		f.badNonFinite++
		f.mismatches++
	}
}

// pair adds one pair of finite values. d is their difference.
func (f *tally) pair(r *rowSums, gv, av, d float64, ru *rule) {
	f.finite++
	r.dd += float64(d * d)
	r.gg += float64(gv * gv)
	f.aa += float64(av * av)
	f.ab += float64(av * gv)
	d, ag := math.Abs(d), math.Abs(gv)
	if ru.narrow {
		x := math.Abs(float64(float32(av) - float32(gv)))
		f.abs, f.rel = max(f.abs, x), max(f.rel, ratio(float32(x), float32(ag)))
	} else {
		f.abs, f.rel = max(f.abs, d), max(f.rel, ratio(d, ag))
	}
	if !ru.tol.within(d, ag) {
		f.mismatches++
	}
}

// within is the rule for finite values with distance d and |g| = ag.
func (t Tolerance) within(d, ag float64) bool { return d <= t.Atol+float64(t.Rtol*ag) }

// matches is the rule for two values of which one is not finite: an infinity matches only itself.
func (t Tolerance) matches(g, a float64) bool {
	return g == a || t.EqualNaN && math.IsNaN(g) && math.IsNaN(a)
}

// narrow reports whether all values of a type are exact in float32.
func narrow(d tensor.DType) bool { return d.Size() <= 2 || d == tensor.F32 }

func finite(x float64) bool { return x-x == 0 }
