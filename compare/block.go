package compare

import "math"

// blockLen is the number of elements that are decoded at once: two buffers of 16 KiB stay in the first-level cache.
const blockLen = 2048

// relFloor is the least denominator of a relative difference.
const relFloor = 1e-10

// state is what a kernel must know of the blocks before: only what beats it needs an index.
type state struct {
	tol      Tolerance
	exact    bool // integers on both sides
	scale    scale
	unsigned [2]bool // golden, actual are uint64
	abs, rel float64 // largest so far, −1 before the first
	wide     wide    // the largest distance of 64-bit integers, exact
	first    int     // first mismatch so far, −1
}

// segment is the figures of a piece of one row. Indices count from its start and are −1 where nothing beats the state.
type segment struct {
	dd, gg, aa, ab       float64 // Σd², Σg², Σa², Σa·g, scaled
	abs, rel             float64 // largest |d| (−1 if no pair is finite); the largest |d|/max(|g|, relFloor) if relAt ≥ 0
	absAt, relAt         int
	mismatches, first    int
	finite, badNonFinite int // pairs of finite values; mismatches among the others
	nan, inf             [2]int
}

// block gives the figures of a piece of one row, which is not empty. This is the place of a faster kernel: the one here is the
// readable reference, which any other must equal: counters, maxima and indices exactly, sums to rounding.
//
// The fast loop takes all values for finite. If they are not, or a square overflows, Σd² is not finite, and the piece is done
// again by careful.
func block(g, a []float64, st *state) segment {
	if !st.scale.zero() {
		return careful(g, a, st)
	}
	s := segment{absAt: -1, relAt: -1, first: -1, finite: len(g)}
	atol, rtol := st.tol.Atol, st.tol.Rtol
	if st.exact {
		atol, rtol = 0, 0
	}
	var most uint64 // bits of the largest |d|: they order like the numbers, and need no branch
	a = a[:len(g)]
	rel := st.rel
	if rel < 0 {
		rel, s.relAt = math.Abs(a[0]-g[0])/max(math.Abs(g[0]), relFloor), 0
	}
	bound := rel * (1 - 1e-15) // |d| ≤ bound·|g| means that |d|/max(|g|, relFloor) is not above rel, for all roundings
	var dd, gg, aa, ab float64 // locals stay in registers
	mismatches := 0
	for i, gv := range g {
		av := a[i]
		d := av - gv
		// The conversions keep compilers from fusing: the same sums on every machine.
		dd += float64(d * d)
		gg += float64(gv * gv)
		aa += float64(av * av)
		ab += float64(av * gv)
		d, ag := math.Abs(d), math.Abs(gv)
		most = max(most, math.Float64bits(d))
		if d > bound*ag { // rarely; the division decides
			if r := d / max(ag, relFloor); r > rel {
				rel, s.relAt = r, i
				bound = rel * (1 - 1e-15)
			}
		}
		bad := 1
		if d <= atol+float64(rtol*ag) {
			bad = 0
		}
		mismatches += bad
	}
	s.dd, s.gg, s.aa, s.ab, s.mismatches = dd, gg, aa, ab, mismatches
	if s.dd-s.dd != 0 {
		return careful(g, a, st)
	}
	s.abs, s.rel = math.Float64frombits(most), rel
	if s.abs > st.abs {
		for i := range g {
			if math.Abs(a[i]-g[i]) == s.abs {
				s.absAt = i
				break
			}
		}
	}
	if st.first < 0 && s.mismatches > 0 {
		for i := range g {
			if !(math.Abs(a[i]-g[i]) <= atol+float64(rtol*math.Abs(g[i]))) {
				s.first = i
				break
			}
		}
	}
	return s
}

// careful is block for any values.
func careful(g, a []float64, st *state) segment {
	s := segment{abs: -1, rel: st.rel, absAt: -1, relAt: -1, first: -1}
	for i, gv := range g {
		av := a[i]
		if !finite(gv) || !finite(av) {
			s.count(0, gv)
			s.count(1, av)
			if !st.tol.matches(gv, av) {
				s.badNonFinite++
				s.mismatch(i, st)
			}
			continue
		}
		s.pair(i, gv, av, av-gv, st)
	}
	return s
}

// pair adds one pair of finite values; d is their difference.
func (s *segment) pair(i int, gv, av, d float64, st *state) {
	s.finite++
	sd, sg, sa := d, gv, av
	if !st.scale.zero() {
		sd, sg, sa = math.Ldexp(d, -st.scale.d), math.Ldexp(gv, -st.scale.g), math.Ldexp(av, -st.scale.a)
		if math.IsInf(d, 0) {
			sd = math.Ldexp(av/2-gv/2, 1-st.scale.d)
		}
	}
	s.dd += float64(sd * sd)
	s.gg += float64(sg * sg)
	s.aa += float64(sa * sa)
	s.ab += float64(sa * sg)
	d, ag := math.Abs(d), math.Abs(gv)
	if d > s.abs {
		s.abs = d
		if d > st.abs {
			s.absAt = i
		}
	}
	if r := d / max(ag, relFloor); r > s.rel {
		s.rel, s.relAt = r, i
	}
	if st.exact && d != 0 || !st.exact && !st.tol.within(d, ag) {
		s.mismatch(i, st)
	}
}

func (s *segment) mismatch(i int, st *state) {
	s.mismatches++
	if st.first < 0 && s.first < 0 {
		s.first = i
	}
}

func (s *segment) count(side int, v float64) {
	if math.IsNaN(v) {
		s.nan[side]++
	} else if math.IsInf(v, 0) {
		s.inf[side]++
	}
}

// within is the rule for finite values with distance d and |g| = ag.
func (t Tolerance) within(d, ag float64) bool { return d <= t.Atol+float64(t.Rtol*ag) }

// matches is the rule for any two values of which one is a float.
func (t Tolerance) matches(g, a float64) bool {
	switch {
	case finite(g) && finite(a):
		return t.within(math.Abs(a-g), math.Abs(g))
	case math.IsNaN(g) || math.IsNaN(a):
		return t.EqualNaN && math.IsNaN(g) && math.IsNaN(a)
	default:
		return g == a // an infinity is only itself
	}
}

func finite(x float64) bool { return x-x == 0 }
