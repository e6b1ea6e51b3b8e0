package report

import (
	"math"

	"github.com/goparity/goparity/compare"
)

// Rows is the relative L2 of each row of a tensor (as row_rel_l2 has it), in at most 256 bins of
// neighbours; of a bin the worst counts.
type Rows struct {
	N     int     `json:"n"`      // rows; bin i has the rows from ⌈i·N/bins⌉ on
	RelL2 []Float `json:"rel_l2"` // by bin; Infinity where a NaN or an infinity has no match
}

// RowsOf bins the rows of a pair.
func RowsOf(lines []compare.Line) *Rows {
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

// HistogramOf is the histogram of a pair.
func HistogramOf(d compare.Detail) *Histogram {
	h := &Histogram{Equal: d.Equal, Counts: make([]int, len(d.Decades))}
	for i, x := range d.Decades {
		h.Counts[i] = x.Count
	}
	if len(d.Decades) > 0 {
		h.Exponent = d.Decades[0].Exponent
	}
	return h
}
