package fault

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label/module"
)

// TableID names what is wrong if a table of this name is read wrongly.
func TableID(layer string) string {
	switch {
	case module.Positions.Has(layer):
		return "embedding/position"
	case module.Types.Has(layer):
		return "embedding/type"
	}
	return "embedding/index"
}

// Table is an embedding that looks other rows up.
func Table(o *rebuild.Table) (out List) {
	n := o.W.Shape()[0]
	for _, by := range []int{-1, 1, 2, -2, 3} {
		out.add(o.At(func(i int) int { return min(max(i+by, 0), n-1) }), 0, "row i%+d of the table is read for index i", by)
	}
	for c := range n {
		if c == 0 || n <= fewRows {
			out.add(o.At(func(int) int { return c }), 0, "row %d of the table is read for every index", c)
		}
	}
	if n == 2 {
		out.add(o.At(func(i int) int { return 1 - i }), 0, "the two rows of the table are exchanged")
	}
	for i := range out {
		out[i].ID = TableID(o.Layer)
	}
	out.scaledTable(o.Eval, o.Out.Width)
	return out
}

// scaledTable appends embeddings that are scaled by a root of their width.
func (l *List) scaledTable(eval rebuild.Eval, width int) {
	root := math.Sqrt(float64(width))
	for _, f := range []float64{root, 1 / root} {
		l.add(eval.Times(f), 0, "the embeddings are multiplied by %.6g", f).ID = "embedding/scale"
	}
}

// AddedTable is a table of positions that is added at other rows, or not at all.
func AddedTable(o *rebuild.AddedTable) (out List) {
	add := func(factor float64, text string, row func(at int) int) {
		out.add(o.Adding(factor, row), 0, "%s %s", o.Name, text)
	}
	same := func(at int) int { return at }
	n := len(o.Table) / o.Out.Width
	add(0, "is not added", same)
	add(2, "is added twice", same)
	add(-1, "is subtracted", same)
	for _, by := range []int{-2, -1, 1, 2} {
		read := fmt.Sprintf("is read %+d rows off, ", by)
		add(1, read+"not beyond its ends", func(at int) int { return min(max(at+by, 0), n-1) })
		add(1, read+"round its ends", func(at int) int { return (at + by + n) % n })
		add(1, read+"and nothing is added beyond its ends", func(at int) int { return at + by })
	}
	add(1, "is read backwards", func(at int) int { return o.Period - 1 - at })
	for k := range 2 {
		add(1, fmt.Sprintf("is read at row %d for every token", k), func(int) int { return k })
	}
	return out
}

// LastToken is another row of each sequence, or their mean.
func LastToken(o *rebuild.Row) (out List) {
	n, right := o.Tokens, o.At[0]
	for _, at := range []int{0, n - 1, n - 2, 1} {
		if at >= 0 && at < n && (at != right || len(o.At) > 1) {
			out.add(o.Pick(func(int) int { return at }), 0,
				"row %d of each sequence is taken, and not row %d of %d", at, right, n)
		}
	}
	for _, by := range []int{-1, 1, -2} {
		out.add(o.Pick(func(right int) int { return right + by }), 0, "token %+d from the right one of %s is taken", by, o.In)
	}
	out.add(func(e *rebuild.Evaluation, rows []int) []float64 {
		mean := make([]float64, len(rows)*o.Out.Width)
		for at := range n {
			x := o.Pick(func(int) int { return at })(e, rows)
			if x == nil {
				return nil
			}
			floats.AddScaled(mean, 1/float64(n), x)
		}
		return mean
	}, 0, "the mean over the tokens is taken, and not one row")
	return out
}
