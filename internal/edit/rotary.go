package edit

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// columns turns more or fewer columns of rows than the reference does: all of a head, where it leaves a part of it out, or a
// part of those that it turns.
func columns(s *site) {
	of := map[program.ID]program.ID{} // rows, by what is made of them
	for _, rows := range []func(program.Op) (program.ID, int, bool){s.partly, s.fully} {
		var at []int
		n := 0 // columns that are turned
		for i, o := range s.Ops {
			if x, columns, ok := rows(o); ok {
				at, of[o.Out[0]], n = append(at, i), x, columns
			}
		}
		if len(at) == 0 {
			continue
		}
		r, ok := s.rotation(n)
		if !ok {
			continue
		}
		shape := s.shape(s.Ops[at[0]].Out[0])
		all := shape[len(shape)-1]
		others := []int{all, 2 * n} // fewer are those of another operator
		if all == n {
			others = []int{n / 2, n / 4, 3 * n / 4}
		}
		for i, k := range others {
			if k%2 != 0 || k == 0 || k > all || slices.Contains(others[:i], k) {
				continue
			}
			what := text("%d columns are turned and not %d", k, n)
			if k == all {
				what = "all " + what
			}
			r.columns = k
			for _, r.neighbours = range []bool{false, true} {
				s.addAt("slice", 2, what+r.how(), at, func(w *writer, o program.Op) {
					x := of[o.Out[0]]
					shape := w.shape(x)
					axis := len(shape) - 2
					for axis > 0 && shape[axis] != r.rows {
						axis--
					}
					w.pass(o, w.turned(x, axis, r))
				}).ID = "rope/applied"
			}
		}
	}
}

// unturned turns the queries and keys of an attention whose reference does not, as in layers without positions.
func unturned(s *site) {
	for _, a := range s.attentions() {
		q, k := s.shape(s.at(a.q)), s.shape(s.at(a.k))
		n := len(q) - 2
		if a.q.op != a.k.op || a.queries != a.keys || a.keys < 3 || n < 0 || q[n] != a.queries || size(k[len(k)-2:]) != size(q[n:]) || q[n+1]%2 != 0 {
			continue
		}
		if _, is := s.rotation(q[n+1]); is {
			continue
		}
		for _, base := range bases {
			r := rotation{rows: a.keys, columns: q[n+1], scale: 1, base: base}
			for _, r.neighbours = range []bool{false, true} {
				s.addAt("slice", 3, text("queries and keys are turned, by angles of base %g%s", base, r.how()), []int{a.q.op}, func(w *writer, o program.Op) {
					key := s.at(a.k)
					if m := len(k) - 2; a.kAxis == m {
						key = w.turned(key, m, r)
					} else {
						key = w.transpose(w.turned(w.transpose(key, -2, -1), m, r), -2, -1)
					}
					w.run(o, o.Name, with(o.Args, a.q.arg, w.turned(s.at(a.q), n, r), a.k.arg, key))
				}).ID = "rope/applied"
			}
		}
	}
}

// partly returns the rows of which an operator puts the first columns, which were changed, and the others together again,
// and how many the first are.
func (s *site) partly(o program.Op) (rows program.ID, first int, ok bool) {
	parts, _ := o.Args.Get("tensors").([]program.ID)
	if o.Name != "cat" || len(parts) != 2 || s.Maker(parts[0]) == s.Maker(parts[1]) {
		return 0, 0, false
	}
	cut := s.made(parts[1])
	if !isOne(cut, "slice split_with_sizes") || cut.Out[len(cut.Out)-1] != parts[1] {
		return 0, 0, false
	}
	rows = self(cut)
	a, b, all := s.shape(parts[0]), s.shape(parts[1]), s.shape(rows)
	n := len(all) - 1
	if n < 2 || len(a) != n+1 || len(b) != n+1 || cut.Name == "slice" && intOf(cut, "start") != a[n] {
		return 0, 0, false
	}
	return rows, a[n], a[n]+b[n] == all[n] && slices.Equal(all, s.shape(o.Out[0]))
}

// fully returns the rows that an operator turns, x·cos + (−b, a)·sin of x = (a, b), and how many columns they have.
func (s *site) fully(o program.Op) (rows program.ID, columns int, ok bool) {
	if o.Name != "add" || len(o.Operands()) != 2 {
		return 0, 0, false
	}
	for _, id := range o.Operands() {
		product := s.made(id)
		for _, half := range product.Operands() {
			cat := s.made(s.origin(half, "view"))
			parts, _ := cat.Args.Get("tensors").([]program.ID)
			if len(parts) != 2 || s.made(parts[0]).Name != "neg" {
				continue
			}
			cut := s.made(s.origin(parts[1], "unsqueeze"))
			if !isOne(cut, cutting) {
				continue
			}
			x := self(cut)
			shape := s.shape(x)
			return x, shape[len(shape)-1], slices.Equal(shape, s.shape(o.Out[0]))
		}
	}
	return 0, 0, false
}

// rotation is by how much each column of rows is turned, from position 0 on, with a partner half of all columns away, or
// beside it.
type rotation struct {
	rows, columns int
	scale, base   float64
	neighbours    bool
}

// rotation returns the one whose cosines and sines the piece has, of so many columns that are turned.
func (s *site) rotation(columns int) (r rotation, ok bool) {
	for c, t := range s.circles() {
		shape := s.shape(c)
		axis := len(shape) - 2
		n, inner := shape[axis], shape[axis+1]
		if n < 3 || size(shape) != n*inner || inner != columns && 2*inner != columns || !s.turns(onePass(n), c, t, axis) {
			continue
		}
		cos, sin := s.floats(c), s.floats(t)
		at := func(row, column int) complex128 { return complex(cos[row*inner+column], sin[row*inner+column]) }
		by := func(column int) float64 { return cmplx.Phase(at(1, column) / at(0, column)) }
		k := 1
		for k < inner && math.Abs(by(k)-by(0)) < nearTable*math.Abs(by(0)) {
			k++
		}
		if k < inner && math.Abs(cmplx.Phase(at(0, 0))) < nearTable && by(0) > 0 && by(k) > 0 {
			return rotation{rows: n, columns: columns, scale: cmplx.Abs(at(0, 0)), base: math.Pow(by(0)/by(k), float64(columns)/2)}, true
		}
	}
	return r, false
}

// how says in words which partners columns have.
func (r rotation) how() string {
	if r.neighbours {
		return ", as neighbours"
	}
	return ""
}

// pair returns of a column which frequency it has, its partner, and the sign with which that is added.
func (r rotation) pair(column int) (frequency, partner int, sign float64) {
	half := r.columns / 2
	switch {
	case r.neighbours:
		return column / 2, column ^ 1, float64(column%2*2 - 1)
	case column < half:
		return column, column + half, -1
	}
	return column - half, column - half, 1
}

// turned writes a value whose last axis, or its first columns, are turned, with its rows on another one.
func (w *writer) turned(x program.ID, rows int, r rotation) program.ID {
	last := len(w.shape(x)) - 1
	all := w.shape(x)[last]
	shape := slices.Repeat([]int{1}, last+1)
	shape[rows], shape[last] = r.rows, all
	table := func(of func(angle, sign float64) float64) program.ID {
		return w.numbers(tensor.F32, shape, func() []float64 {
			return mapped(upTo(r.rows*all), func(k int) float64 {
				column := k % all
				if column >= r.columns {
					return of(0, 0)
				}
				i, _, sign := r.pair(column)
				return r.scale * of(float64(k/all)*math.Pow(r.base, -2*float64(i)/float64(r.columns)), sign)
			})
		})
	}
	partners := mapped(upTo(all), func(column int) int {
		if column >= r.columns {
			return column
		}
		_, partner, _ := r.pair(column)
		return partner
	})
	own := w.two("mul", x, table(func(angle, _ float64) float64 { return math.Cos(angle) }))
	other := table(func(angle, sign float64) float64 { return sign * math.Sin(angle) })
	return w.two("add", own, w.two("mul", w.selected(x, last, partners), other))
}

// sections are others of a rotary embedding of several positions, as of time, height and width: rows are cut into parts,
// each of which takes its angles from one of the positions, and put together again.
func sections(s *site) {
	for _, at := range grouped(upTo(len(s.Ops)), func(i int) (string, bool) {
		sizes, ok := s.Ops[i].Args.Get("split_sizes").([]int)
		return text("%v", sizes), ok && s.Ops[i].Name == "split_with_sizes" && len(sizes) <= mostSections
	}) {
		selects := s.selectsOf(at)
		if len(selects) == 0 {
			continue
		}
		sizes := s.Ops[at[0]].Args.Get("split_sizes").([]int)
		for _, other := range divisions(sizes) {
			s.divided(at, selects, other, text("sections %v → %v", sizes, other))
		}
		n := s.shape(self(s.Ops[selects[0]]))[0]
		choose := func(what string, of func(k int) int) {
			s.addAt("slice", 2, what, selects, func(w *writer, o program.Op) { w.give(o, "index", of((intOf(o, "index")+n)%n)) }).ID = "rope/sections"
		}
		for k := range n {
			choose(text("all sections of %d", k), func(int) int { return k })
		}
		for _, p := range orders(n) {
			choose(text("sections of %v", p), func(k int) int { return p[k] })
		}
	}
}

// divided cuts into parts of other sizes, which are selected from and put together as they were.
func (s *site) divided(splits, selects []int, sizes []int, what string) {
	parts := slices.Concat(mapped(selects, func(i int) []program.ID { return s.Ops[i].Out })...)
	at := slices.Concat(splits, selects, s.takers(parts...))
	slices.Sort(at)
	now := map[program.ID]program.ID{}
	s.addAt("slice", 2, what, at, func(w *writer, o program.Op) {
		switch o.Name {
		case "split_with_sizes":
			o.Args = with(o.Args, "split_sizes", sizes)
		case "cat":
			w.run(o, o.Name, renamed(o.Args, now))
			return
		}
		w.again(o, now, func(k int, id program.ID) []int {
			shape := slices.Clone(s.shape(id))
			n := len(shape) - 1
			if shape[n] = sizes[k]; o.Name == "select" {
				part := w.shape(now[self(o)])
				shape[n] = part[len(part)-1]
			}
			return shape
		})
	}).ID = "rope/sections"
}

// selectsOf lists the operators that take one of several from the first axis of each part of some splits along the last, to
// be put together again; nil where a part goes elsewhere.
func (s *site) selectsOf(splits []int) (list []int) {
	for _, i := range splits {
		for _, id := range s.Ops[i].Out {
			t := s.takers(id)
			if len(t) != 1 || s.Ops[t[0]].Name != "select" || s.Ops[t[0]].Args.Get("dim") != 0 || s.Ops[i].Args.Get("dim") != -1 ||
				slices.ContainsFunc(s.takers(s.Ops[t[0]].Out...), func(k int) bool { return s.Ops[k].Name != "cat" }) {
				return nil
			}
			list = append(list, t[0])
		}
	}
	slices.Sort(list)
	return list
}

// divisions are other sizes of parts, where the same ones come again and again: all of the same sum and unit.
func divisions(sizes []int) (out [][]int) {
	period := 1
	for len(sizes)%period > 0 || !slices.Equal(sizes[period:], sizes[:len(sizes)-period]) {
		period++
	}
	unit, sum := 0, 0
	for _, n := range sizes[:period] {
		for a := n; a > 0; { // their greatest common divisor
			unit, a = a, unit%a
		}
		sum += n
	}
	if unit == 0 || sum/unit > mostUnits {
		return nil
	}
	var divide func(have []int, left int)
	divide = func(have []int, left int) {
		if len(have) == period-1 {
			if all := append(have, left); !slices.Equal(all, sizes[:period]) {
				out = append(out, slices.Repeat(all, len(sizes)/period))
			}
			return
		}
		for n := unit; n <= left-unit*(period-1-len(have)); n += unit {
			divide(append(slices.Clone(have), n), left-n)
		}
	}
	divide(nil, sum)
	return out
}
