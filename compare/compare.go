package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// Extreme is the largest of some figure and where it is. Of equal ones the first counts.
type Extreme struct {
	Value          float64
	Index          int // row-major element number, −1 if no pair is finite
	Golden, Actual float64
}

// Row is the worst row: the one with the largest relative L2, ‖a−g‖ / max(‖g‖, f·RMS), where RMS = √(Σ‖g_row‖²/rows) and f is 0.1, or 1
// for rows of less than 64 elements. Pairs that are not finite are left out.
type Row struct {
	Index  int // number of the row, −1 in an empty tensor
	RelL2  float64
	MaxAbs float64 // largest |a−g| in this row
	// MaxAbsRow is the row of the largest |a−g| of the tensor, which may be another one; −1 if no pair is finite.
	MaxAbsRow int
}

// Result is the figures of one pair. "Finite" pairs are those of two finite values; norms, sums and maxima are over these. No
// figure is NaN; those that overflow float64 are +Inf. All are zero for empty tensors, and indices −1.
type Result struct {
	N              int // elements
	Finite         int // finite pairs
	Rows, RowLen   int
	Mismatches     int     // pairs outside the tolerance
	FirstMismatch  int     // row-major element number, −1 if there is none
	BadNonFinite   int     // mismatches among the pairs that are not finite
	MaxAbs         Extreme // |a−g|
	MaxRel         Extreme // |a−g| / max(|g|, 1e-10)
	MSE            float64 // Σ(a−g)² / Finite
	RelL2          float64 // ‖a−g‖ / ‖g‖; 0 if both are zero, +Inf if only g is
	CosineDistance float64 // 1 − a·g/(‖a‖‖g‖), without cancellation; 0 if both are zero, 1 if one is
	SNR            float64 // 20·log10(‖g‖/‖a−g‖) dB; +Inf if equal, −Inf if only g is zero
	WorstRow       Row
	NormGolden     float64
	NormActual     float64
	NormDiff       float64
	NaNGolden      int
	NaNActual      int
	InfGolden      int
	InfActual      int
}

// Cosine is 1 − CosineDistance.
func (r Result) Cosine() float64 { return 1 - r.CosineDistance }

// Tensors compares two tensors of one shape; dtypes, byte orders and strides may differ. Memory is O(1) beside the tensors, but
// for rows that are sorted by their error.
//
// Integers of 64 bits are compared and subtracted as integers where both sides are integers, and rounded to float64 against floats.
//
// Errors: [*ShapeError], [*MisuseError] for a bad tolerance, [*FaultError] if a file is truncated meanwhile.
func Tensors(golden, actual *tensor.Tensor, tol Tolerance) (r Result, err error) {
	if err := tol.Validate(); err != nil {
		return Result{}, err
	}
	if err := check(golden, actual); err != nil {
		return Result{}, err
	}
	err = guard(func() error {
		r = tensors(golden, actual, tol)
		return nil
	}, golden, actual)
	return r, err
}

func tensors(golden, actual *tensor.Tensor, tol Tolerance) Result {
	if golden.Len() == 0 {
		none := Extreme{Index: -1}
		return Result{RowLen: golden.RowLen(), FirstMismatch: -1, MaxAbs: none, MaxRel: none, WorstRow: Row{Index: -1, MaxAbsRow: -1}}
	}
	t := newTotals(golden, actual, tol)
	t.run(golden, actual)
	if (golden.DType() == tensor.F64 || actual.DType() == tensor.F64) && !t.squarable() {
		if s := largest(golden, actual, t.st.abs); !s.zero() {
			t = newTotals(golden, actual, tol)
			t.st.scale = s
			t.run(golden, actual)
		}
	}
	return t.result(golden, actual)
}

// totals collects the figures of all segments.
type totals struct {
	st                   state
	rowLen               int
	n, mismatches        int
	finite, badNonFinite int
	nan, inf             [2]int
	absAt, relAt         int
	dd, gg, aa, ab       sum
	rows                 worstRow
	row                  rowTotals
}

// rowTotals is the row that is being read.
type rowTotals struct {
	index, left int
	dd, gg      sum
	abs         float64
}

func newTotals(golden, actual *tensor.Tensor, tol Tolerance) *totals {
	t := &totals{rowLen: golden.RowLen(), absAt: -1, relAt: -1}
	t.row.left = t.rowLen
	t.st = state{tol: tol, exact: exact(golden, actual), abs: -1, rel: -1, first: -1,
		unsigned: [2]bool{golden.DType() == tensor.U64, actual.DType() == tensor.U64}}
	return t
}

func (t *totals) run(golden, actual *tensor.Tensor) {
	n := golden.Len()
	if t.st.exact && (is64(golden.DType()) || is64(actual.DType())) {
		blocks(n, golden.Int64s, actual.Int64s, func(g, a []int64) { feed(t, g, a, blockInt) })
		return
	}
	blocks(n, golden.Float64s, actual.Float64s, func(g, a []float64) { feed(t, g, a, block) })
}

// blocks decodes two tensors block by block, in order.
func blocks[T any](n int, golden, actual func(dst []T, start int) int, f func(g, a []T)) {
	g, a := make([]T, min(n, blockLen)), make([]T, min(n, blockLen))
	for start := 0; start < n; start += blockLen {
		m := golden(g, start)
		actual(a, start)
		f(g[:m], a[:m])
	}
}

// feed cuts a block into pieces of rows and adds their figures.
func feed[T any](t *totals, g, a []T, kernel func(g, a []T, st *state) segment) {
	var dd, gg, aa, ab float64 // of this block
	for len(g) > 0 {
		k := min(t.row.left, len(g))
		s := kernel(g[:k], a[:k], &t.st)
		g, a = g[k:], a[k:]
		dd, gg, aa, ab = dd+s.dd, gg+s.gg, aa+s.aa, ab+s.ab
		t.count(&s)
		t.n += k
		r := &t.row
		r.dd.add(s.dd)
		r.gg.add(s.gg)
		r.abs = max(r.abs, s.abs)
		if r.left -= k; r.left == 0 {
			t.rows.add(r.index, r.dd.value(), r.gg.value(), r.abs)
			*r = rowTotals{index: r.index + 1, left: t.rowLen}
		}
	}
	t.dd.add(dd)
	t.gg.add(gg)
	t.aa.add(aa)
	t.ab.add(ab)
}

// count takes counters and maxima of a segment that starts at element t.n.
func (t *totals) count(s *segment) {
	t.finite += s.finite
	t.mismatches += s.mismatches
	t.badNonFinite += s.badNonFinite
	for side := range 2 {
		t.nan[side] += s.nan[side]
		t.inf[side] += s.inf[side]
	}
	if s.absAt >= 0 {
		t.st.abs, t.absAt = s.abs, t.n+s.absAt
	}
	if s.relAt >= 0 {
		t.st.rel, t.relAt = s.rel, t.n+s.relAt
	}
	if s.first >= 0 {
		t.st.first = t.n + s.first
	}
}

// squarable reports whether the sums of squares are right.
func (t *totals) squarable() bool {
	return (t.st.abs <= 0 || squarable(t.dd.value())) && squarable(t.gg.value()) && squarable(t.aa.value())
}

// largest gives the exponents of the largest finite values; abs is the largest |d|.
func largest(golden, actual *tensor.Tensor, abs float64) scale {
	var g, a float64
	blocks(golden.Len(), golden.Float64s, actual.Float64s, func(gs, as []float64) {
		for i := range gs {
			if finite(gs[i]) && finite(as[i]) {
				g, a = max(g, math.Abs(gs[i])), max(a, math.Abs(as[i]))
			}
		}
	})
	return scale{d: exponent(max(abs, 0)), g: exponent(g), a: exponent(a)}
}

func (t *totals) result(golden, actual *tensor.Tensor) Result {
	dd, gg, aa := t.dd.value(), t.gg.value(), t.aa.value()
	e := t.st.scale
	r := Result{
		N: t.n, Finite: t.finite, Rows: t.row.index, RowLen: t.rowLen,
		Mismatches: t.mismatches, FirstMismatch: t.st.first, BadNonFinite: t.badNonFinite,
		MaxAbs:         extreme(t.st.abs, t.absAt, golden, actual),
		MaxRel:         extreme(t.st.rel, t.relAt, golden, actual),
		MSE:            math.Ldexp(dd/float64(max(t.finite, 1)), 2*e.d),
		RelL2:          ratioL2(dd, gg, e.d-e.g),
		CosineDistance: cosineDistance(dd, gg, aa, t.ab.value(), e),
		SNR:            snr(dd, gg, e),
		NormGolden:     math.Ldexp(math.Sqrt(gg), e.g),
		NormActual:     math.Ldexp(math.Sqrt(aa), e.a),
		NormDiff:       math.Ldexp(math.Sqrt(dd), e.d),
		NaNGolden:      t.nan[0], NaNActual: t.nan[1], InfGolden: t.inf[0], InfActual: t.inf[1],
	}
	f := rowFloor(t.rowLen)
	worst, square := t.rows.result(f * f * gg / float64(r.Rows))
	r.WorstRow = Row{Index: worst.row, RelL2: math.Ldexp(math.Sqrt(square), e.d-e.g), MaxAbs: max(worst.abs, 0), MaxAbsRow: -1}
	if r.MaxAbs.Index >= 0 {
		r.WorstRow.MaxAbsRow = r.MaxAbs.Index / t.rowLen
	}
	return r
}

func extreme(v float64, i int, golden, actual *tensor.Tensor) Extreme {
	if i < 0 {
		return Extreme{Index: -1}
	}
	return Extreme{Value: v, Index: i, Golden: golden.At(i), Actual: actual.At(i)}
}

func snr(dd, gg float64, e scale) float64 {
	switch {
	case dd == 0:
		return math.Inf(1)
	case gg == 0:
		return math.Inf(-1)
	}
	return 10*(math.Log10(gg)-math.Log10(dd)) + 20*(math.Ln2/math.Ln10)*float64(e.g-e.d)
}

// cosineDistance is 1 − cos of two vectors from their sums. 1 − ab/(na·nb) would lose all digits of a small distance; the distance
// of the vectors less the difference of their norms does not. That in turn cancels for vectors of very different length.
func cosineDistance(dd, gg, aa, ab float64, e scale) float64 {
	ng, na := math.Sqrt(gg), math.Sqrt(aa)
	switch {
	case gg == 0 && aa == 0:
		return 0
	case gg == 0 || aa == 0:
		return 1
	}
	c := 1 - ab/(na*ng)
	common := max(e.g, e.a)
	dd, sg, sa := math.Ldexp(dd, 2*(e.d-common)), math.Ldexp(ng, e.g-common), math.Ldexp(na, e.a-common)
	if dd <= sg*sa {
		norms := (sa*sa - sg*sg) / (sa + sg)
		if e.zero() {
			norms = (aa - gg) / (na + ng)
		}
		c = (dd - norms*norms) / (2 * sg * sa)
	}
	return min(max(c, 0), 2)
}
