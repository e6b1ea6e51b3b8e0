package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/edit"
)

// pairs looks for two edits that explain together what none does alone: the first is known of another place, or leaves
// a part of the error; the second leaves a part of that.
func (f *finder) pairs(edits []*edit.Edit) error {
	if len(f.r.Fits) > 0 || f.s.KnownOnly {
		return nil
	}
	slices.SortStableFunc(f.near, func(a, b Fit) int { return cmp.Compare(a.Off, b.Off) })
	f.near = slices.CompactFunc(f.near, func(a, b Fit) bool { return b.Off-a.Off <= alike*a.Off }) // the same function
	f.near = f.near[:min(len(f.near), mostFirst)]
	for _, e := range edits {
		if f.known(e) {
			f.near = slices.Insert(f.near, 0, Fit{Edit: *e, Off: f.r.Off})
		}
	}
	f.work = leastWork
	before := f.r.Tried
	defer func() { f.r.Pairs = f.r.Tried - before }()
	for i := range f.near {
		a := &f.near[i]
		f.limit = math.Min(1, most*a.Off)
		var some []*edit.Edit
		for k, b := range edits {
			if e := edit.Both(f.s.Piece, &a.Edit, b); e != nil {
				some = append(some, e)
			}
			if len(some) == window || k == len(edits)-1 || edits[k+1].Cost != b.Cost {
				if len(f.r.Fits) > 0 && a.Cost+b.Cost > f.r.Fits[0].Cost+classes {
					break
				}
				if _, err := f.try(some...); err != nil {
					return err
				}
				some = nil
			}
		}
	}
	return nil
}
