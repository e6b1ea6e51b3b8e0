// Package compare turns one pair of tensors, golden g and actual a, into metrics and a verdict.
//
// [Tensors] computes all metrics in one pass. The rule is that of numpy and torch, in float64:
//
//	mismatch ⇔ not (|a − g| ≤ atol + rtol·|g|)
//
// NaN matches nothing (with EqualNaN, NaN matches NaN), and an infinity matches only itself. If
// a side has integers or bools, the elements must be equal, whatever the tolerance. Maxima and sums
// are over the pairs of two finite values; the other pairs are counted, and the rule decides about
// them.
//
// [Criteria] has limits for more than elements (relative L2, cosine, ULP, KL …) and judges a pair.
// [Table] lists the criteria, [Default] has limits by element type. [Explain] reads a failed pair
// again, and says where it differs and which tolerance would pass.
package compare

import (
	"cmp"
	"math"

	"github.com/goparity/goparity/tensor"
)

// Extreme is the largest value of a metric over the finite pairs, and where it is. Of equal ones it
// is the first. Unless a side has float64 or wide integers, elements are told apart in float32: the
// largest may be larger by 1e-7 of it.
type Extreme struct {
	Value          float64
	Index          int // row-major element number, −1 if no pair is finite
	Golden, Actual float64
}

// Row is the worst row, the one with the largest relative L2 (of equal ones the first):
//
//	‖a−g‖ / max(‖g‖, f·RMS)    RMS = √(Σ‖g_row‖²/rows)
//
// f is 0.1, or 1 for rows of fewer than 64 elements, whose values can all be near zero by chance.
// Pairs that are not finite are left out.
type Row struct {
	Index  int // number of the row, −1 in an empty tensor
	RelL2  float64
	MaxAbs float64 // largest |a−g| in this row
	// MaxAbsRow is the row of the largest |a−g| of the tensor, which may be another row. It is −1
	// if no pair is finite.
	MaxAbsRow int
}

// Result has the metrics of one pair of tensors. A finite pair is a pair of two finite values;
// norms, sums and maxima are over the finite pairs. No metric is NaN; one that overflows float64 is
// +Inf. In an empty tensor all metrics are zero, and all indices −1.
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
	Cost           *Costs // where [Cost] judged; nil elsewhere
}

// Cosine returns 1 − CosineDistance, from −1 to 1.
func (r Result) Cosine() float64 { return 1 - r.CosineDistance }

// Tensors compares two tensors of the same shape; types, byte orders and strides may differ. It
// needs O(1) memory, unless the rows are sorted by their error, or squares of float64 leave its range.
//
// Integers of 64 bits are compared as what they are, against floats too: no uint64 equals the float64
// to which it would be rounded. Distances, and the sums of squares and products, are of float64.
//
// The error is a [*ShapeError], a [*MisuseError] for a tolerance that makes no sense, or a
// [*FaultError] if a file is truncated meanwhile.
func Tensors(golden, actual *tensor.Tensor, tol Tolerance) (Result, error) {
	if err := cmp.Or(tol.Validate(), check(golden, actual)); err != nil {
		return Result{}, err
	}
	return guard(func() (Result, error) { return tensors(golden, actual, tol) }, golden, actual)
}

func tensors(golden, actual *tensor.Tensor, tol Tolerance) (Result, error) {
	if golden.Len() == 0 {
		none := Extreme{Index: -1}
		return Result{RowLen: golden.RowLen(), FirstMismatch: -1, MaxAbs: none, MaxRel: none,
			WorstRow: Row{Index: -1, MaxAbsRow: -1}}, nil
	}
	p := newPass(golden, actual, tol)
	t, err := p.run()
	if err != nil {
		return Result{}, err
	}
	r := p.result(t)
	if golden.DType() == tensor.F64 || actual.DType() == tensor.F64 {
		err = r.rescale(golden, actual, t)
	}
	return r, err
}

// inRange returns by which power of two numbers are to be multiplied so that the sum of their squares, which
// is that now, leaves float64 at neither end: most often 0. Squares that vanish are less than its rounding.
func inRange(squares float64) int {
	const far = 600
	switch {
	case !(squares <= math.MaxFloat64):
		return -far
	case squares < 1e-270:
		return far
	}
	return 0
}

// rescale makes the metrics of squares anew where these leave the range: of both sides times a power of two,
// each norm by its own.
func (r *Result) rescale(golden, actual *tensor.Tensor, t *part) error {
	dd, gg, aa := t.dd.value(), t.gg.value(), t.aa.value()
	squares := [4]float64{max(dd, gg, aa), gg, aa, dd}
	if t.abs <= 0 { // equal sides: their distance is 0 at any scale
		squares[3] = 1
	}
	var by [4]int
	var of [4]Result // at the scale of each
	for i, x := range squares {
		of[i] = *r
		if by[i] = inRange(x); by[i] != 0 {
			var err error
			if of[i], err = scaled(golden, actual, by[i]); err != nil {
				return err
			}
		}
	}
	if s, back := of[0], -by[0]; back != 0 {
		r.RelL2, r.CosineDistance, r.SNR, r.MSE = s.RelL2, s.CosineDistance, s.SNR, math.Ldexp(s.MSE, 2*back)
		r.WorstRow.Index, r.WorstRow.RelL2 = s.WorstRow.Index, s.WorstRow.RelL2
		r.WorstRow.MaxAbs = math.Ldexp(s.WorstRow.MaxAbs, back)
	}
	r.NormGolden = math.Ldexp(of[1].NormGolden, -by[1])
	r.NormActual = math.Ldexp(of[2].NormActual, -by[2])
	r.NormDiff = math.Ldexp(of[3].NormDiff, -by[3])
	if of[0].NormGolden == 0 && r.NormGolden > 0 { // the golden vanishes beside the other
		r.RelL2 = r.NormDiff / r.NormGolden
	}
	return nil
}

// scaled compares both sides times 2^by.
func scaled(golden, actual *tensor.Tensor, by int) (Result, error) {
	var sides [2]*tensor.Tensor
	for i, t := range []*tensor.Tensor{golden, actual} {
		x := make([]float64, t.Len())
		t.Float64s(x, 0)
		for k, v := range x {
			x[k] = math.Ldexp(v, by)
		}
		sides[i], _ = tensor.Of(x, t.Shape()...) // of its own shape
	}
	p := newPass(sides[0], sides[1], Tolerance{})
	t, err := p.run()
	if err != nil {
		return Result{}, err
	}
	return p.result(t), nil
}

func (p *pass) result(t *part) Result {
	dd, gg, aa := t.dd.value(), t.gg.value(), t.aa.value()
	r := Result{
		N: p.n, Finite: t.finite, Rows: p.n / p.rowLen, RowLen: p.rowLen,
		Mismatches: t.mismatches, FirstMismatch: -1, BadNonFinite: t.badNonFinite,
		MaxAbs:         Extreme{Index: -1},
		MaxRel:         Extreme{Index: -1},
		MSE:            dd / float64(max(t.finite, 1)),
		RelL2:          ratioL2(dd, gg),
		CosineDistance: cosineDistance(dd, gg, aa, t.ab.value()),
		SNR:            snr(dd, gg),
		NormGolden:     math.Sqrt(gg),
		NormActual:     math.Sqrt(aa),
		NormDiff:       math.Sqrt(dd),
		NaNGolden:      t.nan[0], NaNActual: t.nan[1], InfGolden: t.inf[0], InfActual: t.inf[1],
	}
	if t.mismatches > 0 {
		r.FirstMismatch = p.firstMismatch(t)
	}
	if t.finite > 0 {
		r.MaxAbs, r.MaxRel = p.maxAbs(t), p.maxRel(t)
	}
	worst, square := t.rows.result(leastSquare(p.rowLen, r.Rows, gg))
	r.WorstRow = Row{Index: worst.row, RelL2: math.Sqrt(square), MaxAbsRow: -1}
	if r.MaxAbs.Index >= 0 {
		r.WorstRow.MaxAbsRow = r.MaxAbs.Index / p.rowLen
	}
	switch {
	case r.WorstRow.Index == r.WorstRow.MaxAbsRow:
		r.WorstRow.MaxAbs = r.MaxAbs.Value
	case r.WorstRow.Index >= 0:
		r.WorstRow.MaxAbs = p.largestOfRow(worst.row)
	}
	return r
}

// firstMismatch returns the index of the first mismatch, −1 if the file has changed meanwhile.
func (p *pass) firstMismatch(t *part) int {
	first := -1
	p.find(t.bad, func(f *tally) bool { return f.mismatches > 0 }, func(x pair) {
		if first < 0 && x.mismatch(p.tol) {
			first = x.index
		}
	})
	return first
}

// maxAbs finds the largest |d|, in float64, in the first part of a block that has it as it was compared.
func (p *pass) maxAbs(t *part) Extreme {
	return p.largest(t.absIn, t.abs, func(f *tally) float64 { return f.abs }, func(x pair) float64 { return x.d })
}

func (p *pass) maxRel(t *part) Extreme {
	return p.largest(t.relIn, t.rel, func(f *tally) float64 { return f.rel }, func(x pair) float64 { return ratio(x.d, math.Abs(x.g)) })
}

// largest finds the first pair with the largest metric in the first part of a block whose tally has it. One that is
// beyond float32 is looked for everywhere: blocks are not told apart by it.
func (p *pass) largest(b span, most float64, of func(*tally) float64, metric func(x pair) float64) Extreme {
	e := Extreme{Index: -1}
	take := func(x pair) {
		if v := metric(x); x.finite && (e.Index < 0 || v > e.Value) {
			e = Extreme{v, x.index, x.g, x.a}
		}
	}
	if !math.IsInf(most, 1) {
		p.find(b, func(f *tally) bool { return of(f) == most }, take)
		return e
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	for from := 0; from < p.n; from += stepLen {
		p.elements(s, span{from, 1, min(stepLen, p.n-from)}, take)
	}
	return e
}

func snr(dd, gg float64) float64 {
	switch {
	case dd == 0:
		return math.Inf(1)
	case gg == 0:
		return math.Inf(-1)
	}
	return 10 * (float64(math.Log10(gg)) - float64(math.Log10(dd)))
}

// cosineDistance computes 1 − cos of two vectors from their sums. 1 − ab/(na·nb) would lose all
// digits of a small distance. The squared distance of the vectors minus the squared difference of
// their norms does not, but it cancels for vectors of very different length.
func cosineDistance(dd, gg, aa, ab float64) float64 {
	ng, na := math.Sqrt(gg), math.Sqrt(aa)
	switch {
	case gg == 0 && aa == 0:
		return 0
	case gg == 0 || aa == 0:
		return 1
	}
	c := 1 - ab/(na*ng)
	if dd <= ng*na {
		norms := (aa - gg) / (na + ng)
		c = (dd - float64(norms*norms)) / (2 * ng * na)
	}
	return min(max(c, 0), 2)
}
