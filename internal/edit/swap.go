package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// swap exchanges two operands, or puts parts together in another order.
func swap(s *site) {
	o := s.first()
	for _, p := range [][2]string{{"self", "other"}, {"self", "mat2"}, {"mat1", "mat2"}} {
		if operand(o, p[0]) == program.None || operand(o, p[1]) == program.None || isOne(o, "add mul eq maximum minimum") {
			continue
		}
		s.add("swap", 1, o.Name+" with its operands exchanged", func(w *writer, o program.Op) {
			w.run(o, o.Name, with(o.Args, p[0], o.Args.Get(p[1]), p[1], o.Args.Get(p[0])))
		})
	}
	parts, _ := o.Args.Get("tensors").([]program.ID)
	if len(parts) > mostParts {
		return
	}
	for _, order := range permutations(len(parts)) {
		s.add("swap", 2, text("%s in the order %v", o.Name, order), func(w *writer, o program.Op) {
			own, _ := o.Args.Get("tensors").([]program.ID)
			var ids []program.ID
			for _, i := range order {
				ids = append(ids, own[min(i, len(own)-1)])
			}
			w.give(o, "tensors", ids)
		})
	}
}

// laying are operators that lay a value out otherwise.
const laying = "view _unsafe_view reshape permute transpose unsqueeze squeeze expand clone t"

// turned exchanges two axes of equal size in both operands of a product.
func turned(s *site) {
	o := s.first()
	if !isOne(o, "bmm mm") {
		return
	}
	laid := func(id program.ID) program.ID {
		for isOne(s.made(id), laying) {
			id = self(s.made(id))
		}
		return id
	}
	a, b := laid(self(o)), laid(operand(o, "mat2"))
	shape := s.shape(a)
	if a == b || !slices.Equal(shape, s.shape(b)) {
		return
	}
	for q := range shape {
		for p := range q {
			if shape[p] == shape[q] && shape[p] > 1 {
				s.instead("layout", 2, text("axes %d and %d of both operands of %s exchanged", p, q, o.Name), s.takers(a, b), []program.ID{a, b},
					func(w *writer, id program.ID) program.ID { return w.transpose(id, p, q) })
			}
		}
	}
}

// exchange gives two values of one shape each other's place.
func exchange(s *site) {
	n := 0
	for i, a := range s.Ops {
		for j := i + 1; j < min(len(s.Ops), i+exchangedWithin) && n < mostExchanged; j++ {
			b := s.Ops[j]
			va, oka := s.result(a)
			vb, okb := s.result(b)
			if !oka || !okb || !sameKind(va, vb) || s.depends(j, i) {
				continue
			}
			n++
			what := text("%s and %s exchanged", Name(s.Piece, a.Out[0]), Name(s.Piece, b.Out[0]))
			s.addAt("exchange", 3, what, []int{i, j}, func(w *writer, o program.Op) {
				w.run(o, replay.AsIs, argsOf("self", a.Out[0]+b.Out[0]-o.Out[0]))
			})
		}
	}
}

// outsiders gives two values that come from outside each other's place.
func outsiders(s *site) {
	for i, a := range s.Values {
		for j, b := range s.Values[:i] {
			x, y := program.ID(i), program.ID(j)
			if s.Maker(x) >= 0 || s.Maker(y) >= 0 || a.Weight != "" || b.Weight != "" || !sameKind(a, b) {
				continue
			}
			s.instead("exchange", 3, text("%s and %s exchanged", s.port(x), s.port(y)), s.takers(x, y), []program.ID{x, y},
				func(_ *writer, id program.ID) program.ID { return x + y - id })
		}
	}
}

// sameKind reports whether two values are floats of one type and shape.
func sameKind(a, b program.Value) bool {
	return isFloat(a) && slices.Equal(a.Shape, b.Shape) && a.DType == b.DType
}

// depends reports whether an operator is made of another one's result.
func (s *site) depends(of, on int) bool {
	made := slices.Clone(s.Ops[on].Out)
	hangs := false
	for i := on + 1; i <= of; i++ {
		if hangs = slices.ContainsFunc(s.Operands(i), func(id program.ID) bool { return slices.Contains(made, id) }); hangs {
			made = append(made, s.Ops[i].Out...)
		}
	}
	return hangs
}

// port names a value that comes from outside by where it was recorded.
func (s *site) port(id program.ID) string {
	if r := s.Values[id].Record; r > 0 && s.Of != nil {
		return s.Of.Ports[r-1].Layer + "-" + s.Of.Ports[r-1].Name
	}
	return Name(s.Piece, id)
}
