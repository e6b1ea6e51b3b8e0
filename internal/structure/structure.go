package structure

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// The kinds of findings. Rows are counted over all axes but the last, columns along the last.
const (
	RowsFrom     = "rows/from"     // all rows from From on
	RowsEvery    = "rows/every"    // Width rows from From on, again every Period
	RowsOne      = "rows/one"      // the row From
	RowsBlock    = "rows/block"    // the rows From to To
	RowsSet      = "rows/set"      // some runs of rows
	ColumnsFrom  = "columns/from"  // and so on
	ColumnsEvery = "columns/every" //
	ColumnsOne   = "columns/one"
	ColumnsBlock = "columns/block"
	ColumnsSet   = "columns/set"
	HeadOne      = "head/one" // the head From, by its columns or by an axis of heads
	HeadSet      = "head/set" // some heads, From the first, To the last
	Block        = "block"    // the rows From to To in one run of columns, and nothing else
)

// Finding is one fact about an error.
type Finding struct {
	Kind          string
	Text          string // one line for people
	From, To      int    // numbers of rows, columns or heads; first and last
	Period, Width int    // of RowsEvery and ColumnsEvery
}

// Of lists what can be said of the error of a pair, the place first. floor is the limit up to which
// two lines agree (compare.Floor, or the port's own); heads is the number of attention heads that
// the columns or one of the axes hold, 0 if it is not known.
//
// The list is empty if the two agree, if they cannot be compared, or if nothing is certain.
func Of(golden, actual *tensor.Tensor, floor compare.Limits, heads int) []Finding {
	if golden == nil || actual == nil {
		return nil
	}
	d, err := compare.Explain(golden, actual, compare.Tolerance{})
	if err != nil {
		return nil
	}
	return OfLines(golden, actual, d.Rows, d.Columns, floor, heads)
}

// OfLines is Of for a pair of which [compare.Explain] gave the rows and columns.
func OfLines(golden, actual *tensor.Tensor, rows, columns []compare.Line, floor compare.Limits, heads int) []Finding {
	if len(rows) == 0 {
		return nil
	}
	r, c := linesOf(rows, floor.RowRelL2), linesOf(columns, floor.RowRelL2)
	if !r.any {
		return nil
	}
	var out []Finding
	if f, ok := block(r, c); ok {
		out = append(out, f)
	}
	head, ok := headOf(golden.Shape(), r, c, heads)
	if ok {
		out = append(out, head)
	}
	if !ok || r.clear && c.clear {
		out = append(out, r.places("row", "rows")...)
	}
	if !ok {
		out = append(out, c.places("column", "columns")...)
	}
	return out
}

// lines says which rows or columns are wrong.
type lines struct {
	wrong        []bool
	any, clear   bool    // clear: some are right, and these are well apart from the wrong ones
	least, worst float64 // of the wrong ones, of the right ones
}

func linesOf(all []compare.Line, floor float64) lines {
	l := lines{wrong: make([]bool, len(all)), least: math.Inf(1)}
	right := false
	for i, x := range all {
		off := x.RelL2
		if x.BadNonFinite > 0 {
			off = math.Inf(1)
		}
		if l.wrong[i] = off > floor; l.wrong[i] {
			l.any, l.least = true, min(l.least, off)
		} else {
			right, l.worst = true, max(l.worst, off)
		}
	}
	l.clear = l.any && right && l.least >= gap*l.worst
	return l
}

// places names the runs of wrong lines.
func (l lines) places(noun, kind string) []Finding {
	if !l.clear {
		return nil
	}
	p := compare.PlacesOf(l.wrong)
	if s := p.Spans[0]; p.More > 0 || len(p.Spans) > 1 && s.Period == 0 && 2*p.Count > p.Total {
		return nil // nothing, or of most lines some are right by chance, as those of zeros are
	}
	s := p.Spans[0]
	f := Finding{From: s.First, To: p.Spans[len(p.Spans)-1].Last, Text: p.Text(noun)}
	switch {
	case s.Period > 0:
		f.Kind, f.Period, f.Width = kind+"/every", s.Period, s.Width
	case len(p.Spans) > 1:
		f.Kind = kind + "/set"
	case p.Count == 1:
		f.Kind = kind + "/one"
	case s.Last == p.Total-1:
		f.Kind, f.Text = kind+"/from", fmt.Sprintf("all %ss from %d on", noun, s.First)
	default:
		f.Kind = kind + "/block"
	}
	f.Text = fmt.Sprintf("wrong: %s, of %d; %s", f.Text, p.Total, l.evidence())
	return []Finding{f}
}

func (l lines) evidence() string {
	return fmt.Sprintf("off by %.2g or more there, by %.2g at most elsewhere", l.least, l.worst)
}

// block finds one run of rows and one of columns that are wrong.
func block(r, c lines) (Finding, bool) {
	if !r.clear || !c.clear {
		return Finding{}, false
	}
	rp, cp := compare.PlacesOf(r.wrong), compare.PlacesOf(c.wrong)
	one := func(p compare.Places) bool { return len(p.Spans) == 1 && p.Spans[0].Period == 0 }
	if !one(rp) || !one(cp) {
		return Finding{}, false
	}
	f := Finding{Kind: Block, From: rp.Spans[0].First, To: rp.Spans[0].Last}
	f.Text = fmt.Sprintf("wrong: one block, %s and %s, of %d × %d; in rows %s", rp.Text("row"), cp.Text("column"),
		rp.Total, cp.Total, r.evidence())
	return f, true
}

// headOf tells whether whole heads are wrong and all others right, by an axis of heads or by the
// columns.
func headOf(shape []int, r, c lines, heads int) (Finding, bool) {
	if heads < 2 {
		return Finding{}, false
	}
	if at, ok := headAxis(shape, heads); ok {
		if !r.clear {
			return Finding{}, false
		}
		inner := 1 // rows below one index of the axis
		for _, n := range shape[at+1 : len(shape)-1] {
			inner *= n
		}
		return headsOf(r, heads, func(row int) int { return row / inner % heads })
	}
	n := len(c.wrong)
	if !c.clear || n%heads != 0 || n/heads < 2 {
		return Finding{}, false
	}
	return headsOf(c, heads, func(column int) int { return column / (n / heads) })
}

// headAxis finds the one axis between the batch and the last that has as many elements as there are
// heads; two of them say nothing.
func headAxis(shape []int, heads int) (at int, ok bool) {
	if len(shape) < 3 {
		return 0, false
	}
	for i := max(len(shape)-3, 0); i < len(shape)-1; i++ {
		if shape[i] == heads {
			if ok {
				return 0, false
			}
			at, ok = i, true
		}
	}
	return at, ok
}

// headsOf finds the wrong heads: so many lines of each are wrong, and none of another.
func headsOf(l lines, heads int, of func(line int) int) (Finding, bool) {
	wrong := make([]int, heads)
	for i, w := range l.wrong {
		if w {
			wrong[of(i)]++
		}
	}
	each, bad := len(l.wrong)/heads, make([]bool, heads)
	f := Finding{Kind: HeadSet}
	for h, n := range wrong {
		if n > 0 && float64(n) < headPart*float64(each) {
			return Finding{}, false
		}
		if bad[h] = n > 0; n > 0 {
			f.To = h
		}
	}
	f.From = slices.Index(bad, true)
	p := compare.PlacesOf(bad)
	if p.Count == p.Total || p.More > 0 {
		return Finding{}, false
	}
	if p.Count == 1 {
		f.Kind = HeadOne
	}
	f.Text = fmt.Sprintf("wrong: %s, of %d; %s", p.Text("head"), heads, l.evidence())
	return f, true
}
