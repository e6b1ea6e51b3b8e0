package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// records gives what takes a value one that was recorded or made elsewhere, and adds such a value to what the piece makes,
// or multiplies with it.
func records(s *site) {
	taken := map[int]bool{0: true}
	for _, v := range s.Values {
		taken[v.Record] = true
	}
	n, out := 0, s.Values[s.Out]
	for _, r := range s.weights {
		if r.ofModel() || !r.DType.IsFloat() {
			continue
		}
		s.inPlaceOf(r)
		ofResult := s.Maker(s.Out) < 0 && out.Record == r.For // it is given on as it is
		if r.For > 0 && !ofResult || r.Made == nil && taken[r.Record] || !isFloat(out) || !spreadsOver(r.Shape, out.Shape) {
			continue
		}
		if n++; n > mostRecords {
			continue
		}
		with := func(op string) change {
			return func(w *writer, id program.ID) program.ID { return w.two(op, id, w.elsewhere(r)) }
		}
		s.last("term", 5, text("the result is multiplied with %s", r.Name), with("mul"))
		if slices.Equal(r.Shape, out.Shape) {
			s.last("source", 4, text("the result is %s", r.Name), func(w *writer, _ program.ID) program.ID { return w.elsewhere(r) })
			s.last("term", 5, text("%s is added to the result", r.Name), with("add"))
		}
	}
}

// spreadsOver reports whether a shape is another one, or has one number there for several.
func spreadsOver(shape, out []int) bool {
	return slices.EqualFunc(shape, out, func(n, to int) bool { return n == to || n == 1 })
}

// inPlaceOf lets what takes a value take another of its shape.
func (s *site) inPlaceOf(r Weight) {
	for i, v := range s.Values {
		id := program.ID(i)
		if r.For > 0 && v.Record != r.For || r.Record > 0 && v.Record == r.Record || v.Weight != "" || !isFloat(v) || !slices.Equal(v.Shape, r.Shape) || s.only(id) {
			continue
		}
		takers := s.takers(id)
		groups := andEach(takers)
		if len(takers) > mostTakers {
			groups = groups[:1]
		}
		for _, at := range groups {
			if len(at) > 0 {
				s.instead("source", 3, text("%s takes %s in the place of %s", s.Ops[at[0]].Name, r.Name, s.port(id)), at, []program.ID{id},
					func(w *writer, _ program.ID) program.ID { return w.elsewhere(r) }).Was = s.layerOf(v)
			}
		}
	}
}

// elsewhere adds what was recorded or made elsewhere to the patch.
func (w *writer) elsewhere(r Weight) program.ID {
	v := program.Value{Shape: r.Shape, DType: r.DType, Record: r.Record}
	if r.Made != nil {
		w.e.From, w.e.Code = r.Layer, r.Code
		return w.late(v, r.Made)
	}
	return w.outside(v)
}

// layerOf is the layer that recorded a value; "" for none.
func (s *site) layerOf(v program.Value) string {
	if v.Record > 0 && s.Of != nil {
		return s.Of.Ports[v.Record-1].Layer
	}
	return ""
}

// only reports whether a value hangs on constants alone.
func (s *site) only(id program.ID) bool { i := s.Maker(id); return i >= 0 && s.tables[i] }

// last does something to what the piece makes.
func (s *site) last(kind string, cost int, what string, f change) *Edit {
	m := s.Maker(s.Out)
	switch {
	case m < 0:
		return s.outside(s.Out, kind, cost, what, f)
	case len(s.Ops[m].Out) > 1:
		return &Edit{}
	}
	return s.addAt(kind, cost, what, []int{m}, func(w *writer, o program.Op) { w.after(o, f) })
}

// ofLine gives all operators of one line another value in the place of one that they take.
func ofLine(s *site) {
	for i, v := range s.Values {
		id := program.ID(i)
		for _, at := range grouped(s.takers(id), s.line) {
			if len(at) < 2 || len(at) > mostTakers {
				continue
			}
			for _, other := range s.alike(v, at[0], id, mostNear) {
				s.instead("source", 3, text("%s → %s in the line", Name(s.Piece, id), Name(s.Piece, other)), at, []program.ID{id},
					func(*writer, program.ID) program.ID { return other })
			}
		}
	}
}

// line is that of the code which an operator runs.
func (s *site) line(op int) (line int, ok bool) {
	if f := Frame(s.Piece, op); f >= 0 {
		return s.Frames[f].Line, true
	}
	return 0, false
}
