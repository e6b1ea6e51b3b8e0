package fault

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/internal/places"
)

// damage is a linear layer of which some outputs are wrong: so are these rows of its weight.
type damage struct {
	List
	o             *rebuild.Linear
	bad           []int // the outputs
	in, out       int
	w             [][]float64
	n             int       // rows of x, right and actual
	x             []float64 // the candidate's input
	right, actual []float64
}

// Corrupt is a linear layer of whose weight a block holds something else. Which outputs are wrong
// tells its rows. What stands there is tried: zeros, the block with the sign changed or twice as
// large, other rows of the same weight; else the numbers of the fewest inputs that explain it.
func Corrupt(o *rebuild.Linear) List {
	if !o.Out.IsTarget() || o.Conv || o.W.Len() > changedWeight {
		return nil
	}
	some := op.Spread(o.Out.Rows, damageRows)
	e := o.Graph().With(o.Out, nil)
	d := &damage{o: o, in: o.In.Width, out: o.Out.Width, n: len(some),
		x: e.Get(o.In, some), right: o.Eval(e, some), actual: o.Out.Wrong(some)}
	if d.right == nil {
		return nil
	}
	if d.bad = badColumns(d.right, d.actual, d.out, o.Out.Rounding()); len(d.bad) == 0 {
		return nil
	}
	d.w = o.W.Rows()
	if !d.whole() {
		d.add(nil, 2, "%s: something else stands there", d.rows())
	}
	d.multiplied()
	if !d.whole() && o.B != nil {
		d.moved()
	}
	d.replaced()
	return d.List
}

// whole reports whether all outputs are wrong.
func (d *damage) whole() bool { return len(d.bad) == d.out }

func (d *damage) rows() string { return linesOf(d.bad, d.out) + " of W" }

// change appends a layer whose weight is changed.
func (d *damage) change(text string, to func(w [][]float64)) *rebuild.Fault {
	return d.add(made(d.o, func() *op.Matrix {
		w := d.o.W.Rows()
		to(w)
		return op.MatrixOf(slices.Concat(w...), d.out, d.in)
	}), 2, "%s", text)
}

// multiplied tries factors of all inputs, or of a tile of them. With a factor f of columns s
//
//	y' − y = (f − 1) · x_s·W_sᵀ
func (d *damage) multiplied() {
	type span struct{ from, to int }
	spans := []span{{0, d.in}}
	for _, parts := range []int{2, 4} {
		for k := range parts {
			if (!d.whole() || parts == 2) && d.in%parts == 0 && d.in/parts > tiles[len(tiles)-1]/parts {
				spans = append(spans, span{k * d.in / parts, (k + 1) * d.in / parts})
			}
		}
	}
	for _, tile := range tiles {
		for from := 0; from+tile <= d.in && d.in/tile <= maxTiles; from += tile {
			spans = append(spans, span{from, from + tile})
		}
	}
	if d.whole() {
		spans = spans[:min(len(spans), spansOfAll)]
	}
	for _, s := range spans {
		if s.to-s.from == d.in && (d.whole() || d.o.B == nil) {
			continue // columns of the output are another, and it may be something else than W that makes them so
		}
		var dd, dp, pp float64
		for i := range d.n {
			for _, c := range d.bad {
				p := floats.Dot(d.x[i*d.in+s.from:i*d.in+s.to], d.w[c][s.from:s.to])
				off := d.actual[i*d.out+c] - d.right[i*d.out+c]
				dd, dp, pp = dd+off*off, dp+off*p, pp+p*p
			}
		}
		if pp == 0 || dd == 0 || dp*dp/(pp*dd) < explained {
			continue
		}
		f, params := 1+dp/pp, 1
		for _, known := range []float64{0, -1, 2, 0.5} {
			if math.Abs(f-known) < knownFactor {
				f, params = known, 0
			}
		}
		where := d.rows()
		if s.to-s.from < d.in {
			where += fmt.Sprintf(", columns %d–%d,", s.from, s.to-1)
		}
		text := fmt.Sprintf("%s are multiplied by %.4g", where, f)
		if f == 0 {
			text = where + " are zeros"
		}
		d.change(text, func(w [][]float64) {
			for _, c := range d.bad {
				floats.Scale(f, w[c][s.from:s.to])
			}
		}).Params = params
	}
}

// moved finds other rows of the weight in the place of the wrong ones, while the bias stays.
func (d *damage) moved() {
	if !d.o.Graph().Spend(float64(len(d.bad) * d.out * d.n)) {
		return
	}
	column := func(x []float64, c int) []float64 { // without the bias
		out := op.Select(x, d.out, []int{c})
		floats.AddConst(-d.o.B[c], out)
		return out
	}
	all := make([][]float64, d.out)
	for c := range all {
		all[c] = column(d.right, c)
	}
	from := make([]int, len(d.bad))
	for i, c := range d.bad {
		has := column(d.actual, c)
		from[i] = slices.IndexFunc(all, func(row []float64) bool { return op.Relative(has, row) <= d.o.Out.Rounding() })
		if from[i] < 0 {
			return
		}
	}
	d.change(fmt.Sprintf("%s: other rows of W stand there, row %d in the first", d.rows(), from[0]), func(w [][]float64) {
		old := slices.Clone(w)
		for i, c := range d.bad {
			w[c] = old[from[i]]
		}
	})
}

// replaced fits the fewest consecutive inputs that explain the difference of the wrong outputs.
func (d *damage) replaced() {
	found := false
	for _, tile := range fitTiles {
		if found || d.n < tile+tile/2+2 || d.in%tile != 0 || d.in/tile > maxFitTiles ||
			!d.o.Graph().Spend(float64(d.n*d.in*(tile+len(d.bad)))) {
			continue
		}
		for from := 0; from < d.in; from += tile {
			delta := d.fit(from, tile)
			if delta == nil {
				continue
			}
			found = true
			f := d.add(func(e *rebuild.Evaluation, rows []int) []float64 {
				y, x := slices.Clone(d.o.Eval(e, rows)), e.Get(d.o.In, rows)
				if y == nil || x == nil {
					return nil
				}
				for i := range rows {
					for b, c := range d.bad {
						y[i*d.out+c] += floats.Dot(delta[b], x[i*d.in+from:i*d.in+from+tile])
					}
				}
				return y
			}, 3, "%s, columns %d–%d: other numbers stand there", d.rows(), from, from+tile-1)
			f.Params = tile * len(d.bad)
		}
	}
}

// fit returns what is added to the weight at each wrong output, and a tile of inputs; nil if that
// does not explain the difference.
func (d *damage) fit(from, tile int) [][]float64 {
	columns := make([][]float64, tile)
	for p := range columns {
		columns[p] = op.Select(d.x, d.in, []int{from + p})
	}
	var left, all float64
	delta := make([][]float64, len(d.bad))
	for b, c := range d.bad {
		off := op.Minus(op.Select(d.actual, d.out, []int{c}), op.Select(d.right, d.out, []int{c}))
		all += floats.Dot(off, off)
		if delta[b] = op.LeastSquares(columns, off); delta[b] == nil {
			return nil
		}
		for p, f := range delta[b] {
			floats.AddScaled(off, -f, columns[p])
		}
		left += floats.Dot(off, off)
	}
	if left > unexplained*all {
		return nil
	}
	return delta
}

// badColumns lists the columns in which the candidate is off by more than the noise, which is
// relative to the column, or to a fifth of the usual one.
func badColumns(right, actual []float64, width int, noise float64) []int {
	usual := floats.Dot(right, right) / float64(width)
	var bad []int
	for c := range width {
		var d, n float64
		for i := c; i < len(right); i += width {
			d += (right[i] - actual[i]) * (right[i] - actual[i])
			n += right[i] * right[i]
		}
		if d > noise*noise*max(n, usual*smallColumn*smallColumn) {
			bad = append(bad, c)
		}
	}
	return bad
}

// linesOf says which of n rows they are.
func linesOf(rows []int, n int) string {
	set := places.NewSet(n)
	for _, r := range rows {
		set.Add(r)
	}
	return set.Places().Text("row")
}
