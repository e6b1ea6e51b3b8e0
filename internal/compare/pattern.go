package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// The kinds of patterns that a cause hangs on. There are also rows/one, the row From, rows/block, the rows From to To,
// and rows/set, some runs of rows; the same of columns. Rows are counted over all axes but the last, columns along it.
const (
	RowsFrom     = "rows/from"     // all rows from From on
	RowsEvery    = "rows/every"    // Width rows from From on, again every Period
	ColumnsFrom  = "columns/from"  // all columns from From on
	ColumnsBlock = "columns/block" // the columns From to To
	HeadOne      = "head/one"      // the head From, by its columns or by an axis of heads
	HeadSet      = "head/set"      // some heads, From the first, To the last
	Block        = "block"         // the rows From to To in one run of columns, and nothing else
)

// Pattern is one fact about the shape of an error: rows from k on, every n-th row, one token, columns from k on,
// one head, one block.
type Pattern struct {
	Kind          string
	Text          string // one line for people
	From, To      int    // numbers of rows, columns or heads; first and last
	Period, Width int    // of rows/every and columns/every
}

// Patterns lists what can be said of the error of a pair, the place first: facts of two tensors, not causes.
// floor is the limit up to which two lines agree ([Floor], or the port's own); heads is the number of
// attention heads that the columns or one of the axes hold, 0 if it is not known.
//
// A row or column is wrong if its relative L2 (see [Row]) is above the floor, or a NaN or infinity of it has
// no match. A place is named only if something is right, and the least wrong line is at least four times as
// far off as the worst right one.
//
// The list is empty if the two agree, if they cannot be compared, or if nothing is certain.
func Patterns(golden, actual *tensor.Tensor, floor Limits, heads int) []Pattern {
	if golden == nil || actual == nil {
		return nil
	}
	d, err := Explain(golden, actual, Tolerance{})
	if err != nil {
		return nil
	}
	return PatternsOfLines(golden, actual, d.Rows, d.Columns, floor, heads)
}

// PatternsOfLines is Patterns for a pair of which [Explain] gave the rows and columns.
func PatternsOfLines(golden, actual *tensor.Tensor, rows, columns []Line, floor Limits, heads int) []Pattern {
	r, c := wrongLinesOf(rows, floor.RowRelL2), wrongLinesOf(columns, floor.RowRelL2)
	if !slices.Contains(r.wrong, true) {
		return nil
	}
	out := block(r, c)
	head := headOf(golden.Shape(), r, c, heads)
	out = append(out, head...)
	if head == nil || r.clear && c.clear {
		out = append(out, r.places("row", "rows")...)
	}
	if head == nil {
		out = append(out, c.places("column", "columns")...)
	}
	return out
}

// wrongLines says which rows or columns are wrong.
type wrongLines struct {
	wrong        []bool
	clear        bool    // some are wrong, some are right, and these are well apart
	least, worst float64 // of the wrong ones, of the right ones
}

func wrongLinesOf(all []Line, floor float64) wrongLines {
	l := wrongLines{wrong: make([]bool, len(all)), least: math.Inf(1)}
	right, wrong := false, false
	for i, x := range all {
		off := x.RelL2
		if x.BadNonFinite > 0 {
			off = math.Inf(1)
		}
		if l.wrong[i] = off > floor; l.wrong[i] {
			wrong, l.least = true, min(l.least, off)
		} else {
			right, l.worst = true, max(l.worst, off)
		}
	}
	l.clear = wrong && right && l.least >= gap*l.worst
	return l
}

// places names the runs of wrong lines.
func (l wrongLines) places(noun, kind string) []Pattern {
	if !l.clear {
		return nil
	}
	p := PlacesOf(l.wrong)
	if s := p.Spans[0]; p.More > 0 || len(p.Spans) > 1 && s.Period == 0 && 2*p.Count > p.Total {
		return nil // nothing, or of most lines some are right by chance, as those of zeros are
	}
	s := p.Spans[0]
	f := Pattern{From: s.First, To: p.Spans[len(p.Spans)-1].Last, Text: p.Text(noun)}
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
	return []Pattern{f}
}

func (l wrongLines) evidence() string {
	return fmt.Sprintf("off by %.2g or more there, by %.2g at most elsewhere", l.least, l.worst)
}

// block finds one run of rows and one of columns that are wrong.
func block(r, c wrongLines) []Pattern {
	if !r.clear || !c.clear {
		return nil
	}
	rp, cp := PlacesOf(r.wrong), PlacesOf(c.wrong)
	for _, p := range []Places{rp, cp} {
		if len(p.Spans) > 1 || p.Spans[0].Period > 0 {
			return nil
		}
	}
	text := fmt.Sprintf("wrong: one block, %s and %s, of %d × %d; in rows %s", rp.Text("row"), cp.Text("column"),
		rp.Total, cp.Total, r.evidence())
	return []Pattern{{Kind: Block, From: rp.Spans[0].First, To: rp.Spans[0].Last, Text: text}}
}

// headOf tells whether whole heads are wrong and all others right, by an axis of heads or by the
// columns.
func headOf(shape []int, r, c wrongLines, heads int) []Pattern {
	if heads < 2 {
		return nil
	}
	if at, ok := headAxis(shape, heads); ok {
		inner := 1 // rows below one index of the axis
		for _, n := range shape[at+1 : len(shape)-1] {
			inner *= n
		}
		return r.heads(heads, func(row int) int { return row / inner % heads })
	}
	n := len(c.wrong)
	if n%heads != 0 || n/heads < 2 {
		return nil
	}
	return c.heads(heads, func(column int) int { return column / (n / heads) })
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

// heads finds the wrong heads: so many lines of each are wrong, and none of another.
func (l wrongLines) heads(heads int, of func(line int) int) []Pattern {
	if !l.clear {
		return nil
	}
	wrong, bad := make([]int, heads), make([]bool, heads)
	for i, is := range l.wrong {
		if is {
			wrong[of(i)]++
		}
	}
	f := Pattern{Kind: HeadSet}
	for h, n := range wrong {
		if n > 0 && float64(n) < headPart*float64(len(l.wrong)/heads) {
			return nil
		}
		if bad[h] = n > 0; n > 0 {
			f.To = h
		}
	}
	f.From = slices.Index(bad, true)
	p := PlacesOf(bad)
	if p.Count == p.Total || p.More > 0 {
		return nil
	}
	if p.Count == 1 {
		f.Kind = HeadOne
	}
	f.Text = fmt.Sprintf("wrong: %s, of %d; %s", p.Text("head"), heads, l.evidence())
	return []Pattern{f}
}
