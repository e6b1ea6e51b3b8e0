package compare

import "github.com/goparity/goparity/tensor"

// Lines gives the figures of every row and of every column (index of the last axis), in order; mismatches are counted for a tolerance
// of zero. RelL2 is measured as in [Row]. There are no columns where there is one row, and neither for more than 2^20 of them.
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
	equal, u := exact(golden, actual), unit(r)
	perRow, perColumn := collect(r.Rows), []line(nil)
	if r.Rows > 1 {
		perColumn = collect(r.RowLen)
	}
	walkPairs(golden, actual, func(p pair) {
		bad := p.mismatch(Tolerance{}, equal)
		if perRow != nil {
			perRow[p.row].add(p, bad, u)
		}
		if perColumn != nil {
			perColumn[p.column].add(p, bad, u)
		}
	})
	return figures(perRow, newLines(r.Rows, r.RowLen, r, u)), figures(perColumn, newLines(r.RowLen, r.Rows, r, u))
}

// collect makes room for n lines, none if they are too many.
func collect(n int) []line {
	if n > maxColumns {
		return nil
	}
	ls := make([]line, n)
	for i := range ls {
		ls[i] = newLine(i)
	}
	return ls
}

func figures(ls []line, all lines) []Line {
	out := make([]Line, len(ls))
	for i, l := range ls {
		out[i] = all.figures(l)
	}
	return out
}

// Walk visits all pairs in row-major order, 64-bit integers rounded to float64. Errors as those of [Tensors].
func Walk(golden, actual *tensor.Tensor, f func(i int, g, a float64)) error {
	if err := check(golden, actual); err != nil || golden.Len() == 0 {
		return err
	}
	return guard(func() error {
		walkPairs(golden, actual, func(p pair) { f(p.index, p.g, p.a) })
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
