package diagnose

import (
	"fmt"
	"slices"
	"strings"
)

// addedTable is out = in + table, a row for each token: positions that no layer of their own holds.
type addedTable struct {
	in, out *value
	name    string
	table   []float64
	period  int // tokens of a sequence
}

// findAddedTable tries the weights whose name says positions, and what the reference adds alike to every sequence of a batch.
func findAddedTable(g *graph, v *value) []op {
	n := length(v.shape)
	if n < 2 || v.rows%n != 0 {
		return nil
	}
	var keys []string
	for key, w := range g.s.Weights {
		if strings.Contains(key, "pos") && w.RowLen() == v.width && w.Len() >= n*v.width && w.Len() <= decodeMax {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var ops []op
	for _, x := range g.alikes(v) {
		for _, key := range keys {
			w := g.s.Weights[key]
			ops = append(ops, &addedTable{x, v, key, read(w, v.width, seq(w.Len()/v.width)), n})
		}
		if v.rows > n && v.rows*v.width <= decodeMax && len(keys) == 0 {
			table := read(v.golden, v.width, seq(n))
			for i, b := range read(x.golden, v.width, seq(n)) {
				table[i] -= b
			}
			ops = append(ops, &addedTable{x, v, "what the reference adds to every sequence", table, n})
		}
	}
	return ops
}

func (o *addedTable) inputs() []*value { return []*value{o.in} }

func (o *addedTable) eval(e *evaluation, rows []int) []float64 {
	return o.with(e, rows, 1, func(at int) int { return at })
}

// with adds f times the row of each token; −1 adds none.
func (o *addedTable) with(e *evaluation, rows []int, f float64, row func(at int) int) []float64 {
	x := slices.Clone(e.get(o.in, rows))
	if x == nil {
		return nil
	}
	w := o.out.width
	for i, r := range rows {
		if at := row(r % o.period); at >= 0 && at < len(o.table)/w {
			for c := range w {
				x[i*w+c] += f * o.table[at*w+c]
			}
		}
	}
	return x
}

func (o *addedTable) faults(*graph, *value) []fault {
	var out []fault
	add := func(text string, f float64, row func(at int) int) {
		out = append(out, fault{id: "embedding/position", text: o.name + " " + text, eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, f, row) }})
	}
	same := func(at int) int { return at }
	last := len(o.table)/o.out.width - 1
	add("is not added", 0, same)
	add("is added twice", 2, same)
	add("is subtracted", -1, same)
	for _, by := range []int{-2, -1, 1, 2} {
		add(fmt.Sprintf("is read %+d rows off, not beyond its ends", by), 1, func(at int) int { return min(max(at+by, 0), last) })
		add(fmt.Sprintf("is read %+d rows off, round its ends", by), 1, func(at int) int { return (at + by + last + 1) % (last + 1) })
		add(fmt.Sprintf("is read %+d rows off, and nothing is added beyond its ends", by), 1, func(at int) int { return at + by })
	}
	add("is read backwards", 1, func(at int) int { return o.period - 1 - at })
	for k := range 2 {
		add(fmt.Sprintf("is read at row %d for every token", k), 1, func(int) int { return k })
	}
	return out
}
