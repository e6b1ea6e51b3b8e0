package session

import (
	"fmt"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// addContradiction says, where the tensors differ, that the reference in 32 or 64 bits does not compute along a path what
// it computes of the same sequence in one pass: a right candidate fails one of the two.
func (f *Fixture) addContradiction(r *report.Report) {
	variant := f.yaml.Reference(string(f.cfg.Run))
	ref, _ := f.yaml.Variant(variant)
	if d, err := tensor.ParseDType(ref.DType); err != nil || compare.Has16Bits(d) || r.Verdict != report.Fail || r.FirstDivergence == nil {
		return
	}
	var worst *store.Along
	for i, p := range f.goldens.Paths() {
		alone := p.Case != "" // rows of a batch may hang on their neighbors, by padding
		if alone && p.Variant == variant && p.Own && p.Limit > 0 && p.RowRelL2 > p.Limit && (worst == nil || p.RowRelL2 > worst.RowRelL2) {
			worst = &f.goldens.Paths()[i]
		}
	}
	if worst == nil {
		return
	}
	r.Notes = append([]string{fmt.Sprintf("the reference contradicts itself: along path %s, case %s, its worst row is at relative L2 %.3g from its own one pass, at most %.3g is rounding (%s). "+
		"Unless the model means that, as a rope that depends on the length does, one of the two is the reference's error, and a right candidate fails by it",
		worst.Path, worst.Case, worst.RowRelL2, worst.Limit, worst.Label)}, r.Notes...)
}
