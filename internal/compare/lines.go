package compare

// lines collects rows and columns.
type lines struct {
	rows, columns []line // nil if there are too many, or for one column
	result        Result
	unit          float64
}

// line collects the sums of a [Line].
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

// collect makes room for n lines, or for none if there are too many.
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

func (ls *lines) add(p pair, row, column int, bad bool) {
	if ls.rows != nil {
		ls.rows[row].add(p, bad, ls.unit)
	}
	if ls.columns != nil {
		ls.columns[column].add(p, bad, ls.unit)
	}
}

func (l *line) add(p pair, bad bool, unit float64) {
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

// figures computes the figures of all lines from their sums.
func (ls *lines) figures() (rows, columns []Line) {
	each := func(from []line, length int) []Line {
		f := rowFloor(length)
		norm := ls.result.NormGolden * ls.unit
		least := f * f * norm * norm / float64(max(len(from), 1)) // square of the least denominator
		out := make([]Line, len(from))
		for i := range from {
			l := &from[i]
			l.RelL2 = ratioL2(l.dd, max(l.gg, least))
			l.Cosine = 1 - l.cosineDistance()
			l.MaxAbs = max(l.MaxAbs, 0)
			out[i] = l.Line
		}
		return out
	}
	return each(ls.rows, ls.result.RowLen), each(ls.columns, ls.result.Rows)
}
