package report

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// Metrics are the figures of one pair, golden g and actual a. Maxima and sums run over the n_finite
// pairs in which both are finite, the others are counted. An index is per axis ([] for a scalar),
// null if there is none.
type Metrics struct {
	N            int `json:"n"`              // elements compared
	Finite       int `json:"n_finite"`       // pairs of two finite values
	Mismatches   int `json:"mismatches"`     // not (|a − g| ≤ atol + rtol·|g|)
	BadNonFinite int `json:"bad_non_finite"` // mismatches among the other pairs

	MaxAbs       Float `json:"max_abs"` // max |a − g|
	MaxAbsIndex  []int `json:"max_abs_index"`
	MaxAbsGolden Float `json:"max_abs_golden"`
	MaxAbsActual Float `json:"max_abs_actual"`

	MaxRel       Float `json:"max_rel"` // max |a − g| / max(|g|, 1e-10)
	MaxRelIndex  []int `json:"max_rel_index"`
	MaxRelGolden Float `json:"max_rel_golden"`
	MaxRelActual Float `json:"max_rel_actual"`

	FirstMismatchIndex []int `json:"first_mismatch_index"`

	MSE            Float `json:"mse"`    // Σ(a − g)² / n_finite
	RelL2          Float `json:"rel_l2"` // ‖a − g‖ / ‖g‖
	Cosine         Float `json:"cosine"`
	CosineDistance Float `json:"cosine_distance"` // 1 − cosine, without cancellation
	SNR            Float `json:"snr_db"`          // 20·log10(‖g‖ / ‖a − g‖)

	RowRelL2  Float `json:"row_rel_l2"`  // of the worst row; its denominator has a floor, see package compare
	RowIndex  *int  `json:"row_index"`   // number of that row, counted over all axes but the last
	RowMaxAbs Float `json:"row_max_abs"` // max |a − g| in that row
	MaxAbsRow *int  `json:"max_abs_row"` // number of the row of max_abs, which may be another one

	NaNGolden int `json:"nan_golden"`
	NaNActual int `json:"nan_actual"`
	InfGolden int `json:"inf_golden"`
	InfActual int `json:"inf_actual"`

	*Costs // where the row was judged by it
}

// Costs are the figures of [compare.Cost]: the error over what the encoding costs the reference.
type Costs struct {
	Cost    Float `json:"cost"`           // of the tensor
	RowCost Float `json:"row_cost"`       // of the worst row
	CostRow *int  `json:"row_cost_index"` // number of that row
	LeftOut int   `json:"cost_left_out"`  // rows of which the reference's run says nothing
}

// MetricsOf is r as the report has it: element numbers become indices per axis of golden.
func MetricsOf(r compare.Result, golden *tensor.Tensor) *Metrics {
	axes := func(i int) []int {
		if i < 0 {
			return nil
		}
		return golden.Index(i)
	}
	m := &Metrics{
		N: r.N, Finite: r.Finite, Mismatches: r.Mismatches, BadNonFinite: r.BadNonFinite,
		MaxAbs: Float(r.MaxAbs.Value), MaxAbsIndex: axes(r.MaxAbs.Index),
		MaxAbsGolden: Float(r.MaxAbs.Golden), MaxAbsActual: Float(r.MaxAbs.Actual),
		MaxRel: Float(r.MaxRel.Value), MaxRelIndex: axes(r.MaxRel.Index),
		MaxRelGolden: Float(r.MaxRel.Golden), MaxRelActual: Float(r.MaxRel.Actual),
		FirstMismatchIndex: axes(r.FirstMismatch),
		MSE:                Float(r.MSE), RelL2: Float(r.RelL2), SNR: Float(r.SNR),
		Cosine: Float(r.Cosine()), CosineDistance: Float(r.CosineDistance),
		RowRelL2: Float(r.WorstRow.RelL2), RowIndex: number(r.WorstRow.Index),
		RowMaxAbs: Float(r.WorstRow.MaxAbs), MaxAbsRow: number(r.WorstRow.MaxAbsRow),
		NaNGolden: r.NaNGolden, NaNActual: r.NaNActual, InfGolden: r.InfGolden, InfActual: r.InfActual,
	}
	if c := r.Cost; c != nil {
		m.Costs = &Costs{Float(c.Tensor), Float(c.Row), number(c.WorstRow), c.LeftOut}
	}
	return m
}

// result is the reverse of MetricsOf, without places within the tensor.
func (m *Metrics) result() compare.Result {
	extreme := func(v Float, index []int, g, a Float) compare.Extreme {
		none := map[bool]int{true: -1}[index == nil]
		return compare.Extreme{Value: float64(v), Index: none, Golden: float64(g), Actual: float64(a)}
	}
	row := func(n *int) int {
		if n == nil {
			return -1
		}
		return *n
	}
	r := compare.Result{
		N: m.N, Finite: m.Finite, Mismatches: m.Mismatches, BadNonFinite: m.BadNonFinite,
		FirstMismatch: extreme(0, m.FirstMismatchIndex, 0, 0).Index,
		MaxAbs:        extreme(m.MaxAbs, m.MaxAbsIndex, m.MaxAbsGolden, m.MaxAbsActual),
		MaxRel:        extreme(m.MaxRel, m.MaxRelIndex, m.MaxRelGolden, m.MaxRelActual),
		MSE:           float64(m.MSE), RelL2: float64(m.RelL2), SNR: float64(m.SNR), CosineDistance: float64(m.CosineDistance),
		WorstRow:  compare.Row{Index: row(m.RowIndex), RelL2: float64(m.RowRelL2), MaxAbs: float64(m.RowMaxAbs)},
		NaNGolden: m.NaNGolden, NaNActual: m.NaNActual, InfGolden: m.InfGolden, InfActual: m.InfActual,
	}
	if c := m.Costs; c != nil {
		r.Cost = &compare.Costs{Tensor: float64(c.Cost), Row: float64(c.RowCost), WorstRow: row(c.CostRow), LeftOut: c.LeftOut}
	}
	return r
}

// number is i, or nil if it is negative.
func number(i int) *int {
	if i < 0 {
		return nil
	}
	return &i
}

// nonFinite says how many NaN and infinite values the two sides have, if some of them do not match.
func (m *Metrics) nonFinite() string {
	if m.BadNonFinite == 0 {
		return ""
	}
	return fmt.Sprintf("%s of NaN or infinity: golden %d NaN, %d infinite; candidate %d NaN, %d infinite",
		count(m.BadNonFinite, "wrong pair"), m.NaNGolden, m.InfGolden, m.NaNActual, m.InfActual)
}

// Rows is the relative L2 of each row of a tensor (as row_rel_l2 has it), in at most 256 bins of
// neighbours; of a bin the worst counts.
type Rows struct {
	N     int     `json:"n"`      // rows; bin i has the rows from ⌈i·N/bins⌉ on
	RelL2 []Float `json:"rel_l2"` // by bin; Infinity where a NaN or an infinity has no match
}

// rowsOf bins the rows of a pair.
func rowsOf(lines []compare.Line) *Rows {
	n := len(lines)
	if n == 0 {
		return nil
	}
	r := &Rows{N: n, RelL2: make([]Float, min(n, maxBins))}
	for i, l := range lines {
		off := Float(l.RelL2)
		if l.BadNonFinite > 0 {
			off = Float(math.Inf(1))
		}
		bin := &r.RelL2[i*len(r.RelL2)/n]
		*bin = max(*bin, off)
	}
	return r
}

// Histogram counts the finite pairs of a tensor by |a − g|: Counts[i] of them have 10^(Exponent+i)
// ≤ |a − g| < 10^(Exponent+i+1).
type Histogram struct {
	Equal    int   `json:"equal"` // a = g
	Exponent int   `json:"exponent"`
	Counts   []int `json:"counts"`
}
