package diagnose

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/goparity/goparity/tensor"
)

// leastSquares finds f with Σ fₚ·columnₚ ≈ y; nil if the columns do not tell it.
func leastSquares(columns [][]float64, y []float64) []float64 {
	n := len(columns)
	if n == 0 || len(y) < n {
		return nil
	}
	a, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range columns {
		for j := i; j < n; j++ {
			a.SetSym(i, j, floats.Dot(columns[i], columns[j]))
		}
		b.SetVec(i, floats.Dot(columns[i], y))
	}
	var c mat.Cholesky
	if !c.Factorize(a) || c.Cond() > 1e14 {
		return nil
	}
	var f mat.VecDense
	if c.SolveVecTo(&f, b) != nil {
		return nil
	}
	return f.RawVector().Data
}

// corrupt: a block of the weight holds something else. Which outputs are wrong gives its rows. What it was replaced by is tried: zeros, the
// block with the sign changed or twice as large, other rows of the same weight; else the numbers of the fewest inputs that explain it.
func (o *linear) corrupt(g *graph, v *value) []fault {
	const limit = 1 << 22
	if v != g.target || o.conv || o.w.Len() > limit {
		return nil
	}
	some := spread(v.rows, 64)
	e := g.faulty(v, &fault{})
	right, actual := o.eval(e, some), read(g.s.Target.Actual, v.width, some)
	if right == nil {
		return nil
	}
	bad := badColumns(right, actual, v.width, v.rounding())
	if len(bad) == 0 {
		return nil
	}
	in := o.in.width
	var faults []fault
	change := func(text string, params int, to func(w [][]float64)) {
		faults = append(faults, fault{id: "linear/corrupt", rank: 2, text: text, params: params, fitted: params > 0, eval: func(e *evaluation, rows []int) []float64 {
			w := rowsOf(o.w, v.width, in)
			to(w)
			t, err := tensor.Of(slices.Concat(w...), v.width, in)
			if err != nil {
				return nil
			}
			return o.with(e, rows, t, o.b, 1)
		}})
	}
	what := fmt.Sprintf("rows %s of W", ranges(bad))
	if len(bad) < v.width {
		faults = append(faults, fault{id: "linear/corrupt", rank: 2, guess: true, text: what + " hold something else"})
	}
	// The columns of the block: all, or a run in steps of a tile.
	type span struct{ from, to int }
	spans := []span{{0, in}}
	for _, tile := range []int{4, 8, 16, 32, 64} {
		for from := 0; from+tile <= in && in/tile <= 64; from += tile {
			spans = append(spans, span{from, from + tile})
		}
	}
	if len(bad) == v.width && len(spans) > 40 {
		spans = spans[:40]
	}
	x := e.get(o.in, some)
	if x == nil {
		return nil
	}
	w := rowsOf(o.w, v.width, in)
	for _, s := range spans {
		if s.to-s.from == in && (len(bad) == v.width || o.b == nil) {
			continue // columns of the output are another, and it may be something else than W that makes them so
		}
		// y' − y = (f − 1)·x_s·W_sᵀ: the factor at the wrong columns.
		var dd, dp, pp float64
		for i := range some {
			xs := x[i*in+s.from : i*in+s.to]
			for _, c := range bad {
				p := floats.Dot(xs, w[c][s.from:s.to])
				d := actual[i*v.width+c] - right[i*v.width+c]
				dd, dp, pp = dd+d*d, dp+d*p, pp+p*p
			}
		}
		if pp == 0 || dd == 0 || dp*dp/(pp*dd) < 0.98 {
			continue
		}
		f, params := 1+dp/pp, 1
		for _, known := range []float64{0, -1, 2, 0.5} {
			if f > known-0.02 && f < known+0.02 {
				f, params = known, 0
			}
		}
		where := what
		if s.to-s.from < in {
			where += fmt.Sprintf(", columns %d–%d,", s.from, s.to-1)
		}
		text := fmt.Sprintf("%s are multiplied by %.4g", where, f)
		if f == 0 {
			text = where + " are zeros"
		}
		change(text, params, func(w [][]float64) {
			for _, c := range bad {
				for i := s.from; i < s.to; i++ {
					w[c][i] *= f
				}
			}
		})
	}
	if len(bad) < v.width && o.b != nil {
		// Rows of the same weight, moved, while the bias stays.
		for _, by := range []int{-1, 1, len(bad), -len(bad)} {
			change(fmt.Sprintf("%s are those %+d", what, by), 0, func(w [][]float64) {
				old := slices.Clone(w)
				for _, c := range bad {
					w[c] = old[((c+by)%v.width+v.width)%v.width]
				}
			})
		}
		for _, m := range []struct {
			text string
			from func(i int) int
		}{
			{"moved by one, round the end", func(i int) int { return (i + len(bad) - 1) % len(bad) }},
			{"moved by −1, round the end", func(i int) int { return (i + 1) % len(bad) }},
			{"in the reverse order", func(i int) int { return len(bad) - 1 - i }},
			{"with their halves exchanged", func(i int) int { return (i + len(bad)/2) % len(bad) }},
		} {
			change(what+" stand there "+m.text, 0, func(w [][]float64) {
				old := slices.Clone(w)
				for i, c := range bad {
					w[c] = old[bad[m.from(i)]]
				}
			})
		}
	}
	return append(faults, o.block(g, v, bad)...)
}

// badColumns lists the columns in which the candidate is off by more than the noise, which is relative to the column, or to a fifth of the
// usual one.
func badColumns(right, actual []float64, width int, noise float64) []int {
	usual := floats.Dot(right, right) / float64(width)
	var bad []int
	for c := range width {
		var d, n float64
		for i := c; i < len(right); i += width {
			d += (right[i] - actual[i]) * (right[i] - actual[i])
			n += right[i] * right[i]
		}
		if d > noise*noise*max(n, usual/25) {
			bad = append(bad, c)
		}
	}
	return bad
}

// rounding is how far an op of one layer, calculated again of its recorded inputs, may be from what was recorded of it.
func (v *value) rounding() float64 {
	switch v.golden.DType() {
	case tensor.F64:
		return 1e-9
	case tensor.F32:
		return 2e-5
	case tensor.F16:
		return 4e-3
	}
	return 2e-2
}

// block fits the fewest consecutive inputs that explain the difference of the wrong outputs.
func (o *linear) block(g *graph, v *value, bad []int) []fault {
	some := spread(v.rows, 128)
	e := g.faulty(v, &fault{})
	x, right, actual := e.get(o.in, some), o.eval(e, some), read(g.s.Target.Actual, v.width, some)
	if x == nil || right == nil {
		return nil
	}
	in := o.in.width
	var out []fault
	for _, tile := range []int{1, 2, 4, 8, 16, 32} {
		if len(some) < tile+tile/2+2 || in%tile != 0 || in/tile > 128 || !g.spend(float64(len(some)*in*(tile+len(bad)))) {
			continue
		}
		for from := 0; from < in; from += tile {
			columns := make([][]float64, tile)
			for p := range columns {
				for i := range some {
					columns[p] = append(columns[p], x[i*in+from+p])
				}
			}
			delta := make([][]float64, len(bad))
			var left, all float64
			for b, c := range bad {
				d := make([]float64, len(some))
				for i := range some {
					d[i] = actual[i*v.width+c] - right[i*v.width+c]
				}
				all += floats.Dot(d, d)
				if delta[b] = leastSquares(columns, d); delta[b] == nil {
					left = all + 1
					break
				}
				for p, f := range delta[b] {
					for i := range d {
						d[i] -= f * columns[p][i]
					}
				}
				left += floats.Dot(d, d)
			}
			if left > 1e-4*all {
				continue
			}
			out = append(out, fault{id: "linear/corrupt", rank: 3, params: tile * len(bad), fitted: true,
				text: fmt.Sprintf("rows %s, columns %d–%d of W hold other numbers", ranges(bad), from, from+tile-1),
				eval: func(e *evaluation, rows []int) []float64 {
					y, x := slices.Clone(o.eval(e, rows)), e.get(o.in, rows)
					if y == nil || x == nil {
						return nil
					}
					for i := range rows {
						for b, c := range bad {
							y[i*v.width+c] += floats.Dot(delta[b], x[i*in+from:i*in+from+tile])
						}
					}
					return y
				}})
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// ranges writes sorted numbers as "0–3, 8".
func ranges(n []int) string {
	var s []byte
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		if len(s) > 60 {
			return string(s) + ", …"
		}
		if i > 0 {
			s = append(s, ", "...)
		}
		if s = fmt.Appendf(s, "%d", n[i]); j > i {
			s = fmt.Appendf(s, "–%d", n[j])
		}
		i = j + 1
	}
	return string(s)
}
