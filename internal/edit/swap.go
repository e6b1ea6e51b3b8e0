package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// pairs are the names of two operands that may be exchanged.
var pairs = [][2]string{{"self", "other"}, {"self", "mat2"}, {"mat1", "mat2"}}

// swap exchanges two operands, or puts parts together in another order.
func swap(s *site) {
	o := s.first()
	for _, p := range pairs {
		_, a := o.Args.Get(p[0]).(program.ID)
		_, b := o.Args.Get(p[1]).(program.ID)
		if !a || !b || slices.Contains([]string{"add", "mul", "eq", "maximum", "minimum"}, o.Name) {
			continue
		}
		s.add("swap", 1, o.Name+" with its operands exchanged", func(w *writer, o program.Op) {
			w.run(o, o.Name, with(with(o.Args, p[0], o.Args.Get(p[1])), p[1], o.Args.Get(p[0])))
		})
	}
	if parts, ok := o.Args.Get("tensors").([]program.ID); ok && len(parts) > 1 && len(parts) <= mostParts {
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
}

// laying are operators that lay a value out otherwise.
const laying = "view _unsafe_view reshape permute transpose unsqueeze squeeze expand clone t"

// turned exchanges two axes of equal size in both operands of a product.
func turned(s *site) {
	o := s.first()
	if !isOne(o, "bmm mm") {
		return
	}
	laid := func(arg string) program.ID {
		id, _ := o.Args.Get(arg).(program.ID)
		for m := s.Maker(id); m >= 0 && isOne(s.Ops[m], laying); m = s.Maker(id) {
			id, _ = s.Ops[m].Args.Get("self").(program.ID)
		}
		return id
	}
	a, b := laid("self"), laid("mat2")
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

// transpose exchanges two axes of a value.
func (w *writer) transpose(id program.ID, a, b int) program.ID {
	shape := slices.Clone(w.value(id).Shape)
	if len(shape) < 2 || max(a, b) >= len(shape) {
		w.failed = true
		return id
	}
	i, j := (a+len(shape))%len(shape), (b+len(shape))%len(shape)
	shape[i], shape[j] = shape[j], shape[i]
	return w.call("transpose", id, shape, "self", id, "dim0", i, "dim1", j)
}

// exchange gives two values of one shape each other's place.
func exchange(s *site) {
	n := 0
	for i, a := range s.Ops {
		for j := i + 1; j < min(len(s.Ops), i+exchangedWithin) && n < mostExchanged; j++ {
			b := s.Ops[j]
			va, oka := s.result(a)
			vb, okb := s.result(b)
			if !oka || !okb || !isFloat(va) || !slices.Equal(va.Shape, vb.Shape) || va.DType != vb.DType || s.depends(j, i) {
				continue
			}
			n++
			s.addAt("exchange", 3, text("%s and %s exchanged", Name(s.Piece, a.Out[0]), Name(s.Piece, b.Out[0])), []int{i, j}, func(w *writer, o program.Op) {
				other := b
				if o.Out[0] == b.Out[0] {
					other = a
				}
				w.run(o, replay.AsIs, argsOf([]any{"self", other.Out[0]}))
			})
		}
	}
}

// outsiders gives two values that come from outside each other's place.
func outsiders(s *site) {
	for i, a := range s.Values {
		for j := range i {
			b, x, y := s.Values[j], program.ID(i), program.ID(j)
			if s.Maker(x) >= 0 || s.Maker(y) >= 0 || a.Weight != "" || b.Weight != "" || !isFloat(a) || !slices.Equal(a.Shape, b.Shape) || a.DType != b.DType {
				continue
			}
			at, both := s.takers(x, y), []program.ID{x, y}
			if len(at) == 0 {
				continue
			}
			s.instead("exchange", 3, text("%s and %s exchanged", s.port(x), s.port(y)), at, both, func(_ *writer, id program.ID) program.ID { return x + y - id })
		}
	}
}

// depends reports whether an operator is made of another one's result.
func (s *site) depends(of, on int) bool {
	made := map[program.ID]bool{}
	for _, id := range s.Ops[on].Out {
		made[id] = true
	}
	for i := on + 1; i <= of; i++ {
		o := &s.Ops[i]
		if slices.ContainsFunc(o.Operands(), func(id program.ID) bool { return made[id] }) {
			if i == of {
				return true
			}
			for _, id := range o.Out {
				made[id] = true
			}
		}
	}
	return false
}

// permutations are all orders of n but the usual one.
func permutations(n int) (out [][]int) {
	order := make([]int, 0, n)
	var next func()
	next = func() {
		if len(order) == n {
			if !slices.IsSorted(order) {
				out = append(out, slices.Clone(order))
			}
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				order = append(order, i)
				next()
				order = order[:len(order)-1]
			}
		}
	}
	next()
	return out
}

// port names a value that comes from outside by where it was recorded.
func (s *site) port(id program.ID) string {
	if r := s.Values[id].Record; r > 0 && s.Of != nil {
		return s.Of.Ports[r-1].Layer + "-" + s.Of.Ports[r-1].Name
	}
	return Name(s.Piece, id)
}
