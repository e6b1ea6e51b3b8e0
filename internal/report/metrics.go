package report

import "github.com/goparity/goparity/compare"

// MetricsOf is r as the report has it, for tensors of the given shape: element numbers become indices per axis.
func MetricsOf(r compare.Result, shape []int) *Metrics {
	return &Metrics{
		N: r.N, Finite: r.Finite, Mismatches: r.Mismatches, BadNonFinite: r.BadNonFinite,
		MaxAbs: Float(r.MaxAbs.Value), MaxAbsIndex: axes(r.MaxAbs.Index, shape),
		MaxAbsGolden: Float(r.MaxAbs.Golden), MaxAbsActual: Float(r.MaxAbs.Actual),
		MaxRel: Float(r.MaxRel.Value), MaxRelIndex: axes(r.MaxRel.Index, shape),
		MaxRelGolden: Float(r.MaxRel.Golden), MaxRelActual: Float(r.MaxRel.Actual),
		FirstMismatchIndex: axes(r.FirstMismatch, shape),
		MSE:                Float(r.MSE), RelL2: Float(r.RelL2), SNR: Float(r.SNR),
		Cosine: Float(r.Cosine()), CosineDistance: Float(r.CosineDistance),
		RowRelL2: Float(r.WorstRow.RelL2), RowIndex: number(r.WorstRow.Index),
		RowMaxAbs: Float(r.WorstRow.MaxAbs), MaxAbsRow: number(r.WorstRow.MaxAbsRow),
		NaNGolden: r.NaNGolden, NaNActual: r.NaNActual, InfGolden: r.InfGolden, InfActual: r.InfActual,
	}
}

// axes is the row-major element number i as an index per axis; nil if i is negative.
func axes(i int, shape []int) []int {
	if i < 0 {
		return nil
	}
	index := make([]int, len(shape))
	for axis := len(shape) - 1; axis >= 0; axis-- {
		index[axis] = i % shape[axis]
		i /= shape[axis]
	}
	return index
}

// number is i, or nil if it is negative.
func number(i int) *int {
	if i < 0 {
		return nil
	}
	return &i
}

// ToleranceOf is c as the report has it; source says where it was written.
func ToleranceOf(c compare.Criteria, source string) *Tolerance {
	t := &Tolerance{
		RelL2: (*Float)(c.RelL2), RowRelL2: (*Float)(c.RowRelL2), Cosine: (*Float)(c.Cosine), MSE: (*Float)(c.MSE),
		ULP: (*Float)(c.ULP), SNR: (*Float)(c.SNR), KL: (*Float)(c.KL), Noise: (*Float)(c.Noise),
		TopK: c.TopK, EqualNaN: c.EqualNaN, Source: source,
	}
	if w := c.Within; w != nil {
		t.Atol, t.Rtol = (*Float)(&w.Atol), (*Float)(&w.Rtol)
		t.EqualNaN = t.EqualNaN || w.EqualNaN
	}
	return t
}
