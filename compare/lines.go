package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// Lines gives the figures of every row and of every column (index of the last axis), in order; mismatches are counted for a tolerance
// of zero. RelL2 is measured as in [Row]. There are no columns where there is one row, and neither rows nor columns where there are more than 2^20 of them.
//
// Errors as those of [Tensors].
func Lines(golden, actual *tensor.Tensor) (rows, columns []Line, err error) {
	r, err := Tensors(golden, actual, Tolerance{})
	if err != nil || r.N == 0 {
		return nil, nil, err
	}
	err = guard(func() error {
		rows, columns = allLines(golden, actual, r)
		return nil
	}, golden, actual)
	return rows, columns, err
}

func allLines(golden, actual *tensor.Tensor, r Result) (rows, columns []Line) {
	equal, ls := exact(golden, actual), newLines(r)
	walkPairs(golden, actual, func(p *pair) { ls.add(p, p.mismatch(Tolerance{}, equal)) })
	return ls.figures()
}

// lines collects rows and columns.
type lines struct {
	rows, columns []line // nil if there are too many, or one column
	result        Result
	unit          int
}

// line collects a Line.
type line struct {
	Line
	moments
}

func newLines(r Result) *lines {
	l := &lines{rows: collect(r.Rows), result: r, unit: unit(r)}
	if r.Rows > 1 {
		l.columns = collect(r.RowLen)
	}
	return l
}

// collect makes room for n lines, none if they are too many.
func collect(n int) []line {
	if n > maxLines {
		return nil
	}
	ls := make([]line, n)
	for i := range ls {
		ls[i].Line = Line{Index: i, MaxAbs: -1, MaxAbsIndex: -1}
	}
	return ls
}

func (ls *lines) add(p *pair, bad bool) {
	if ls.rows != nil {
		ls.rows[p.row].add(p, bad, ls.unit)
	}
	if ls.columns != nil {
		ls.columns[p.column].add(p, bad, ls.unit)
	}
}

func (l *line) add(p *pair, bad bool, unit int) {
	if bad {
		l.Mismatches++
		if !p.finite {
			l.BadNonFinite++
		}
	}
	if !p.finite {
		return
	}
	if p.d > l.MaxAbs {
		l.MaxAbs, l.MaxAbsIndex = p.d, p.index
	}
	l.moments.add(p.g, p.a, unit)
}

// figures ends the sums of all lines.
func (ls *lines) figures() (rows, columns []Line) {
	each := func(from []line, length int) []Line {
		f := rowFloor(length)
		norm := math.Ldexp(ls.result.NormGolden, -ls.unit)
		least := f * f * norm * norm / float64(max(len(from), 1)) // square of the least denominator
		out := make([]Line, len(from))
		for i := range from {
			l := &from[i]
			l.RelL2 = ratioL2(l.dd, max(l.gg, least), 0)
			l.Cosine = 1 - l.cosineDistance()
			l.MaxAbs = max(l.MaxAbs, 0)
			out[i] = l.Line
		}
		return out
	}
	return each(ls.rows, ls.result.RowLen), each(ls.columns, ls.result.Rows)
}

// Walk visits all pairs in row-major order, 64-bit integers rounded to float64. Errors as those of [Tensors].
func Walk(golden, actual *tensor.Tensor, f func(i int, g, a float64)) error {
	if err := check(golden, actual); err != nil || golden.Len() == 0 {
		return err
	}
	return guard(func() error {
		walkPairs(golden, actual, func(p *pair) { f(p.index, p.g, p.a) })
		return nil
	}, golden, actual)
}

// PlacesOf is the set of the numbers i with in[i].
func PlacesOf(in []bool) Places {
	s := newSet(len(in))
	for i, is := range in {
		if is {
			s.add(i)
		}
	}
	return s.places()
}
