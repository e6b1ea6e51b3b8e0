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

// around leaves regions out, does them in another order of the last axis, or does one to another value, too: each with
// those that do the same after it, as of keys after that of queries.
func around(s *site) {
	var all []region
	for i := range s.Values {
		if r, ok := s.region(program.ID(i)); ok {
			all = append(all, r)
		}
	}
	for _, same := range grouped(all, func(r region) (does string, ok bool) {
		for _, k := range r.at {
			does += s.Ops[k].Name + " "
		}
		return does, true
	}) {
		for _, set := range andEach(same) {
			s.regions(set)
		}
		s.alsoTo(same)
	}
}

// region is the one that begins at a value which is taken more than once.
func (s *site) region(in program.ID) (r region, ok bool) {
	v, takers := s.Values[in], s.takers(in)
	if v.Weight != "" || !isFloat(v) || len(v.Shape) < 3 || len(takers) < 2 || s.only(in) {
		return r, false
	}
	r.in = in
	last := takers[len(takers)-1] // by then all that is open has to be one value
	open := []program.ID{in}
	for i := takers[0]; i < len(s.Ops) && len(r.at) < mostRegion; i++ {
		o := s.Ops[i]
		if !slices.ContainsFunc(s.Operands(i), func(id program.ID) bool { return slices.Contains(open, id) }) {
			continue
		}
		r.at = append(r.at, i)
		for _, id := range o.Out {
			if id != program.None {
				open = append(open, id)
			}
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
func (s *site) openBehind(of []program.ID, i int) (ids []program.ID) {
	for k := i + 1; k < len(s.Ops); k++ {
		for _, id := range s.Operands(k) {
			if slices.Contains(of, id) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// name is the code of a region's last operator.
func (s *site) name(r region) string {
	last := r.at[len(r.at)-1]
	if f := Frame(s.Piece, last); f >= 0 {
		return strings.TrimSpace(s.Frames[f].Text)
	}
	return s.Ops[last].Name
}

// regions leaves some out, and puts what goes into them in another order of its last axis.
func (s *site) regions(set []region) {
	var at, last []int
	var ins, outs []program.ID
	for _, r := range set {
		at, last = append(at, r.at...), append(last, r.at[len(r.at)-1])
		ins, outs = append(ins, r.in), append(outs, r.out)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	s.addAt("drop", 1, s.name(set[0])+" left out", last, func(w *writer, o program.Op) { w.pass(o, ins[slices.Index(outs, o.Out[0])]) })
	n := s.shape(ins[0])[len(s.shape(ins[0]))-1]
	for _, a := range []int{2, n / 2} {
		if a > 1 && a < n && n%a == 0 {
			s.conjugate(at, ins, outs, a, text("what goes into %s, as %d×%d → %d×%d, and back behind it", s.name(set[0]), a, n/a, n/a, a))
		}
	}
}

// conjugate puts what goes into operators in another order of its last axis, and what comes out of them back: what
// the candidate has works on neighbours, say, where the reference works on halves.
func (s *site) conjugate(at []int, in, out []program.ID, a int, what string) {
	turned := map[program.ID]program.ID{}
	s.addAt("conjugation", 5, what, at, func(w *writer, o program.Op) {
		for _, id := range o.Operands() {
			if _, ok := turned[id]; !ok && slices.Contains(in, id) {
				turned[id] = w.turn(id, len(w.shape(id))-1, a, 0)
			}
		}
		if o.Args = renamed(o.Args, turned); len(o.Out) == 1 && slices.Contains(out, o.Out[0]) {
			w.after(o, func(w *writer, id program.ID) program.ID {
				n := w.shape(id)
				return w.turn(id, len(n)-1, n[len(n)-1]/a, 0)
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
		m := s.made(id).Name
		k := slices.IndexFunc(all, func(r region) bool { return slices.Equal(v.Shape, s.shape(r.in)) && m != "" && m == s.made(r.in).Name })
		if k < 0 || done[id] || !isFloat(v) {
			continue
		}
		r, takers := all[k], s.takers(id)
		if len(takers) == 0 || takers[0] <= r.at[0] {
			continue
		}
		s.instead("twice", 3, s.name(r)+", to the "+m+" behind it, too", takers, []program.ID{id}, func(w *writer, id program.ID) program.ID {
			now := map[program.ID]program.ID{r.in: id}
			for _, i := range r.at {
				w.again(s.Ops[i], now, func(_ int, id program.ID) []int { return s.shape(id) })
			}
			return now[r.out]
		})
	}
}
