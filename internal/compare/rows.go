package compare

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// rowFloor returns the least denominator of a row with a length, as a part of the RMS row norm.
func rowFloor(rowLen int) float64 {
	if rowLen < shortRow {
		return shortRowFloor
	}
	return longRowFloor
}

// leastSquare is the square of the least denominator of a row of a golden with a square of the norm.
func leastSquare(rowLen, rows int, square float64) float64 {
	f := rowFloor(rowLen)
	return f * f * square / float64(rows)
}

// worstRow finds the row with the largest min(dd/gg, dd/K), where K is known only after the last
// row. It keeps the rows that can be the worst for some K, which are those that no other row beats
// in both dd/gg and dd. These are few, unless the rows are sorted by their error.
type worstRow struct {
	rows   []rowError
	sorted int      // rows[:sorted] are sorted by drop
	beater rowError // a row that beats many
}

type rowError struct {
	row       int
	ratio, dd float64 // dd/gg, dd
	most      float64 // of a sorted row: the largest ratio of the rows up to it
}

// beats reports that add would drop such a row, because an earlier one is worse in both figures. It
// is fast, but does not find all such rows.
func (w *worstRow) beats(dd, gg float64) bool {
	// dd ≤ ratio·(1 − 1e-15)·gg means that dd/gg is not above the ratio, however it is rounded.
	return len(w.rows) > 0 && dd <= w.beater.dd && dd <= w.beater.ratio*(1-1e-15)*gg
}

// add takes the next row.
func (w *worstRow) add(row int, dd, gg float64) {
	e := rowError{row: row, dd: dd}
	if dd > 0 {
		e.ratio = dd / gg
	}
	w.insert(e)
}

func (w *worstRow) insert(e rowError) {
	switch {
	case len(w.rows) == 0 || e.dd > w.beater.dd && e.ratio > w.beater.ratio:
		w.beater = e
	case w.beater.dd >= e.dd && w.beater.ratio >= e.ratio:
		return
	}
	at := sort.Search(w.sorted, func(i int) bool { return w.rows[i].dd < e.dd })
	if at > 0 && w.rows[at-1].most >= e.ratio {
		for at--; w.rows[at].ratio < e.ratio; at-- {
		}
		w.beater = w.rows[at]
		return
	}
	w.rows = append(w.rows, e)
	if len(w.rows) >= 2*w.sorted+64 {
		w.drop()
	}
}

// drop sorts the rows by dd, largest first, and removes the beaten rows. Of equal rows the first
// stays. A row that is beaten in one figure and equal in the other also stays if it is the earlier
// one, because the two may tie in the end.
func (w *worstRow) drop() {
	slices.SortFunc(w.rows, func(x, y rowError) int {
		return cmp.Or(cmp.Compare(y.dd, x.dd), cmp.Compare(y.ratio, x.ratio), cmp.Compare(x.row, y.row))
	})
	kept := w.rows[:0]
	best := rowError{ratio: -1}
	for _, e := range w.rows {
		if e.ratio > best.ratio || e.ratio == best.ratio && e.row < best.row || e.dd == best.dd && e.row < best.row {
			if e.ratio >= best.ratio {
				best = e
			}
			e.most = best.ratio
			kept = append(kept, e)
		}
	}
	w.rows, w.sorted = kept, len(kept)
}

// result returns the worst row and the square of its relative L2. k is the square of the least
// denominator.
func (w *worstRow) result(k float64) (worst rowError, square float64) {
	worst, square = rowError{row: -1}, -1
	for _, e := range w.rows {
		s := 0.0
		if e.dd > 0 {
			s = min(e.ratio, e.dd/k)
		}
		if s > square || s == square && e.row < worst.row {
			worst, square = e, s
		}
	}
	return worst, max(square, 0)
}

// ratioL2 returns √(dd/gg). It is 0 for two zeros, and +Inf if only gg is zero.
func ratioL2(dd, gg float64) float64 {
	if dd == 0 {
		return 0
	}
	return math.Sqrt(dd) / math.Sqrt(gg)
}
