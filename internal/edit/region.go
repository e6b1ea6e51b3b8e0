package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
)

// region is what is done to a value until it is one value again, of the same shape: a rotation, say.
type region struct {
	at      []int
	in, out program.ID
}

// regions lists those of a piece, each with those that do the same after it, as of keys after that of queries.
func (s *site) regions() [][]region {
	var all []region
	for i := range s.Values {
		if r, ok := s.region(program.ID(i)); ok {
			all = append(all, r)
		}
	}
	return grouped(all, func(r region) (does string, ok bool) {
		for _, k := range r.at {
			does += s.Ops[k].Name + " "
		}
		return does, true
	})
}

// region is the one that begins at a value which is taken more than once.
func (s *site) region(in program.ID) (r region, ok bool) {
	v, takers := s.Values[in], s.takers(in)
	if v.Weight != "" || !isFloat(v) || len(v.Shape) < 3 || len(takers) < 2 || s.only(in) {
		return r, false
	}
	r.in = in
	last := takers[len(takers)-1] // by then all that is open has to be one value
	open := map[program.ID]bool{in: true}
	for i := takers[0]; i < len(s.Ops) && len(r.at) < mostRegion; i++ {
		o := s.Ops[i]
		if !slices.ContainsFunc(s.Operands(i), func(id program.ID) bool { return open[id] }) {
			continue
		}
		r.at = append(r.at, i)
		for _, id := range o.Out {
			if id == program.None {
				continue
			}
			open[id] = true
			if t := s.takers(id); id != s.Out && len(t) > 0 {
				last = max(last, t[len(t)-1])
			}
		}
		if closes := i >= last || slices.Equal(o.Out, s.openBehind(open, i)); !closes || len(o.Out) != 1 {
			continue
		}
		r.out = o.Out[0]
		if same := slices.Equal(s.shape(r.out), v.Shape); same || size(s.shape(r.out)) != size(v.Shape) {
			return r, same && len(r.at) > 2
		} // else its numbers are there, and wait for the view that puts them as they were
	}
	return r, false
}

// openBehind lists the values among some that operators after one take.
func (s *site) openBehind(of map[program.ID]bool, i int) (ids []program.ID) {
	for k := i + 1; k < len(s.Ops); k++ {
		for _, id := range s.Operands(k) {
			if of[id] && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// around leaves regions out, does them in another order of the last axis, or does one to another value, too.
func around(s *site) {
	for _, all := range s.regions() {
		for _, set := range andEach(all) {
			s.left(set)
			s.turnedAround(set)
		}
		s.alsoTo(all)
	}
}

// name is the code of a region's last operator.
func (s *site) name(r region) string {
	last := r.at[len(r.at)-1]
	if f := Frame(s.Piece, last); f >= 0 {
		return strings.TrimSpace(s.Frames[f].Text)
	}
	return s.Ops[last].Name
}

func (s *site) left(set []region) {
	var at []int
	pass := map[program.ID]program.ID{}
	for _, r := range set {
		at = append(at, r.at[len(r.at)-1])
		pass[r.out] = r.in
	}
	s.addAt("drop", 1, s.name(set[0])+" left out", at, func(w *writer, o program.Op) { w.pass(o, pass[o.Out[0]]) })
}

func (s *site) turnedAround(set []region) {
	var at []int
	var ins, outs []program.ID
	for _, r := range set {
		at, ins, outs = append(at, r.at...), append(ins, r.in), append(outs, r.out)
	}
	slices.Sort(at)
	n := s.shape(ins[0])[len(s.shape(ins[0]))-1]
	for _, a := range []int{2, n / 2} {
		if a > 1 && a < n && n%a == 0 {
			s.conjugate(slices.Compact(at), ins, outs, a, text("what goes into %s, as %d×%d → %d×%d, and back behind it", s.name(set[0]), a, n/a, n/a, a))
		}
	}
}

// conjugate puts what goes into operators in another order of its last axis, and what comes out of them back: what
// the candidate has works on neighbours, say, where the reference works on halves.
func (s *site) conjugate(at []int, in, out []program.ID, a int, what string) {
	turned := map[program.ID]program.ID{}
	s.addAt("conjugation", 5, what, at, func(w *writer, o program.Op) {
		o.Args = o.Args.Map(func(id program.ID) program.ID {
			if !slices.Contains(in, id) {
				return id
			}
			if _, ok := turned[id]; !ok {
				turned[id] = w.turn(id, len(w.value(id).Shape)-1, a)
			}
			return turned[id]
		})
		if len(o.Out) == 1 && slices.Contains(out, o.Out[0]) {
			w.after(o, func(w *writer, id program.ID) program.ID {
				n := w.value(id).Shape
				return w.turn(id, len(n)-1, n[len(n)-1]/a)
			})
			return
		}
		w.ops = append(w.ops, o)
	})
}

// alsoTo does a region to a value that lies as one of those to which it is done.
func (s *site) alsoTo(all []region) {
	done := map[program.ID]bool{}
	for _, r := range all {
		done[r.in], done[r.out] = true, true
	}
	for i, v := range s.Values {
		id := program.ID(i)
		m := s.Maker(id)
		k := slices.IndexFunc(all, func(r region) bool {
			return slices.Equal(v.Shape, s.shape(r.in)) && s.Maker(r.in) >= 0 && m >= 0 && s.Ops[m].Name == s.Ops[s.Maker(r.in)].Name
		})
		if k < 0 || done[id] || !isFloat(v) {
			continue
		}
		r, takers := all[k], s.takers(id)
		if len(takers) == 0 || takers[0] <= r.at[0] {
			continue
		}
		s.instead("twice", 3, s.name(r)+", to the "+s.Ops[m].Name+" behind it, too", takers, []program.ID{id},
			func(w *writer, id program.ID) program.ID {
				now := map[program.ID]program.ID{r.in: id}
				for _, i := range r.at {
					w.again(s.Ops[i], now, func(_ int, id program.ID) []int { return s.shape(id) })
				}
				return now[r.out]
			})
	}
}
