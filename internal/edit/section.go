package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

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
	var parts []program.ID
	for _, i := range selects {
		parts = append(parts, s.Ops[i].Out...)
	}
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
