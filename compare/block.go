package compare

import "math"

// tally has the figures of one block of pairs.
type tally struct {
	dd, gg, aa, ab       float64 // Σd², Σg², Σa², Σa·g, scaled
	abs, rel             float64 // largest |d| and |d|/max(|g|, relFloor); −1 if none is known, see kernel
	wide                 wide    // the largest distance of 64-bit integers, exact
	mismatches           int
	finite, badNonFinite int // pairs of finite values; mismatches among the others
	nan, inf             [2]int
}

// rowFigures is the part of a block that belongs to one row. The kernels in assembly write it.
type rowFigures struct {
	dd, gg float64 // Σd², Σg², scaled
}

// addRows adds the sums of rows.
func (f *tally) addRows(rows []rowFigures) {
	for i := range rows {
		f.dd += rows[i].dd
		f.gg += rows[i].gg
	}
}

// rule says which pairs of a block are mismatches.
type rule struct {
	tol      Tolerance
	exact    bool // integers on both sides: any difference is a mismatch
	scale    scale
	unsigned [2]bool // golden, actual are uint64
}

// rowOf adds a piece of one row, which is not empty, to the figures of its block. It is the
// readable reference for the other kernels: their counters and maxima must equal its own exactly,
// their sums up to rounding.
//
// The fast loop assumes that all values are finite. If one is not, or a square overflows, Σd² is
// not finite, and careful reads the piece again.
func (f *tally) rowOf(g, a []float64, ru *rule) rowFigures {
	if !ru.scale.zero() {
		return f.careful(g, a, ru)
	}
	atol, rtol := ru.tol.Atol, ru.tol.Rtol
	var most uint64 // bits of the largest |d|; they order like the numbers, and need no branch
	a = a[:len(g)]
	rel := f.rel
	if rel < 0 {
		rel = math.Abs(a[0]-g[0]) / max(math.Abs(g[0]), relFloor)
	}
	bound := rel * (1 - 1e-15) // |d| ≤ bound·|g| ⇒ |d|/max(|g|, relFloor) ≤ rel, however it is rounded
	var dd, gg, aa, ab float64 // locals stay in registers
	mismatches := 0
	for i, gv := range g {
		av := a[i]
		d := av - gv
		// The conversions keep compilers from fusing multiply and add: sums are the same on every
		// machine.
		dd += float64(d * d)
		gg += float64(gv * gv)
		aa += float64(av * av)
		ab += float64(av * gv)
		d, ag := math.Abs(d), math.Abs(gv)
		most = max(most, math.Float64bits(d))
		if d > bound*ag { // rare; the division decides
			if r := d / max(ag, relFloor); r > rel {
				rel = r
				bound = rel * (1 - 1e-15)
			}
		}
		bad := 1
		if d <= atol+float64(rtol*ag) {
			bad = 0
		}
		mismatches += bad
	}
	if dd-dd != 0 {
		return f.careful(g, a, ru)
	}
	f.aa += aa
	f.ab += ab
	f.finite += len(g)
	f.mismatches += mismatches
	f.abs, f.rel = max(f.abs, math.Float64frombits(most)), rel
	return rowFigures{dd, gg}
}

// careful is rowOf for any values.
func (f *tally) careful(g, a []float64, ru *rule) (r rowFigures) {
	for i, gv := range g {
		if av := a[i]; finite(gv) && finite(av) {
			f.pair(&r, gv, av, av-gv, ru)
		}
	}
	f.nonFinite(g, a, ru)
	return r
}

// nonFinite counts the pairs that are not finite.
func (f *tally) nonFinite(g, a []float64, ru *rule) {
	for i, gv := range g {
		av := a[i]
		if finite(gv) && finite(av) {
			continue
		}
		f.count(0, gv)
		f.count(1, av)
		if !ru.tol.matches(gv, av) {
			f.badNonFinite++
			f.mismatches++
		}
	}
}

// pair adds one pair of finite values. d is their difference.
func (f *tally) pair(r *rowFigures, gv, av, d float64, ru *rule) {
	f.finite++
	sd, sg, sa := d, gv, av
	if !ru.scale.zero() {
		sd, sg, sa = math.Ldexp(d, -ru.scale.d), math.Ldexp(gv, -ru.scale.g), math.Ldexp(av, -ru.scale.a)
		if math.IsInf(d, 0) {
			sd = math.Ldexp(av/2-gv/2, 1-ru.scale.d)
		}
	}
	r.dd += float64(sd * sd)
	r.gg += float64(sg * sg)
	f.aa += float64(sa * sa)
	f.ab += float64(sa * sg)
	d, ag := math.Abs(d), math.Abs(gv)
	f.abs = max(f.abs, d)
	f.rel = max(f.rel, d/max(ag, relFloor))
	if ru.exact && d != 0 || !ru.exact && !ru.tol.within(d, ag) {
		f.mismatches++
	}
}

func (f *tally) count(side int, v float64) {
	if math.IsNaN(v) {
		f.nan[side]++
	} else if math.IsInf(v, 0) {
		f.inf[side]++
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
