package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// records gives what takes a value one that was recorded or made elsewhere, and adds such a value to what the piece makes,
// or multiplies with it.
func records(s *site) {
	taken := map[int]bool{0: true}
	for _, v := range s.Values {
		taken[v.Record] = true
	}
	n := 0
	for _, r := range s.weights {
		if r.Record == 0 && r.Made == nil || !r.DType.IsFloat() {
			continue
		}
		s.inPlaceOf(r)
		ofResult := s.Maker(s.Out) < 0 && s.Values[s.Out].Record == r.For // it is given on as it is
		if r.For > 0 && !ofResult || r.Made == nil && taken[r.Record] {
			continue
		}
		if s.spreads(r.Shape) {
			if n++; n > mostRecords {
				continue
			}
			s.last("term", 5, text("the result is multiplied with %s", r.Name), func(w *writer, id program.ID) program.ID {
				return w.call("mul", id, nil, "self", id, "other", w.elsewhere(r))
			})
		}
		if !s.isOutput(r.Shape) {
			continue
		}
		s.last("source", 4, text("the result is %s", r.Name), func(w *writer, _ program.ID) program.ID { return w.elsewhere(r) })
		s.last("term", 5, text("%s is added to the result", r.Name), func(w *writer, id program.ID) program.ID {
			return w.call("add", id, nil, "self", id, "other", w.elsewhere(r), "alpha", 1)
		})
	}
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
			if len(at) == 0 {
				continue
			}
			s.instead("source", 3, text("%s takes %s in the place of %s", s.Ops[at[0]].Name, r.Name, s.port(id)), at, []program.ID{id},
				func(w *writer, _ program.ID) program.ID { return w.elsewhere(r) }).Was = s.layerOf(v)
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

// isOutput reports whether a shape is that of what the piece makes.
func (s *site) isOutput(shape []int) bool {
	return isFloat(s.Values[s.Out]) && slices.Equal(s.Values[s.Out].Shape, shape)
}

// spreads reports whether a shape is that of what the piece makes, or one number stands there for several.
func (s *site) spreads(shape []int) bool {
	out := s.Values[s.Out]
	return isFloat(out) && len(shape) == len(out.Shape) && !slices.ContainsFunc(upTo(len(shape)), func(d int) bool {
		return shape[d] != out.Shape[d] && shape[d] != 1
	})
}

// last does something to what the piece makes.
func (s *site) last(kind string, cost int, what string, f change) {
	if m := s.Maker(s.Out); m >= 0 {
		if len(s.Ops[m].Out) == 1 {
			s.addAt(kind, cost, what, []int{m}, func(w *writer, o program.Op) { w.after(o, f) })
		}
		return
	}
	s.outside(s.Out, kind, cost, what, f)
}

// outside adds a value that comes from outside to the patch.
func (w *writer) outside(v program.Value) program.ID {
	if v.Record > 0 {
		w.e.From = w.s.layerOf(v)
	}
	w.e.Patch.Made = append(w.e.Patch.Made, v)
	return program.ID(len(w.s.Values) + len(w.e.Patch.Made) - 1)
}

// outside appends an edit of a value that comes from outside.
func (s *site) outside(id program.ID, kind string, cost int, what string, f change) {
	e := Edit{Kind: kind, Cost: cost, Text: what, Weight: s.Values[id].Weight, Takers: s.takers(id), Patch: replay.Patch{Ops: map[int][]program.Op{}}}
	w := &writer{s: s, e: &e}
	w.after(program.Op{Name: replay.AsIs, Full: replay.AsIs, Args: argsOf([]any{"self", id}), Out: []program.ID{id}, Stack: -1}, f)
	e.Patch.Ops[replay.Outside] = w.ops
	if !w.failed {
		s.out = append(s.out, e)
	}
}
