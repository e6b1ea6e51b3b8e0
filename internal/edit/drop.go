package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
)

const (
	// spreading are operators of two operands, of which the smaller is spread over the other.
	spreading = "add sub mul div maximum minimum where masked_fill"
	// copying are operators that copy a value, or show it in the same order.
	copying = "clone detach alias"
)

// drop leaves an operator out, or one of its optional operands.
func drop(s *site) {
	o := s.first()
	v, single := s.result(o)
	if isOne(o, copying+" view expand") {
		return
	}
	names, ids := tensors(o)
	for k, id := range ids {
		shape, name := s.shape(id), names[k]
		fits := slices.Equal(shape, v.Shape) || isOne(o, spreading) && len(shape) <= len(v.Shape)
		if single && fits && isFloat(v) == isFloat(s.Values[id]) {
			s.add("drop", 0, o.Name+" left out", func(w *writer, o program.Op) { w.pass(o, operand(o, name)) })
		}
		if name == "weight" && !isOne(o, "embedding convolution") || name == "bias" {
			s.given("drop", 0, text("%s of %s left out", name, o.Name), name, nil)
		}
	}
	switch o.Name {
	case "addmm":
		s.add("drop", 0, "bias left out", func(w *writer, o program.Op) {
			w.run(o, "mm", argsOf("self", o.Args.Get("mat1"), "mat2", o.Args.Get("mat2")))
		})
	case "native_layer_norm", "native_group_norm", "_native_batch_norm_legit_no_training", "native_batch_norm":
		s.add("drop", 0, "norm left out", func(w *writer, o program.Op) { w.pass(o, operand(o, "input")) })
	}
}

// bypass makes the result of an operator an earlier value: everything between is left out.
func bypass(s *site) {
	o := s.first()
	v, ok := s.result(o)
	if !ok || len(s.group) > 1 {
		return
	}
	for _, id := range s.alike(v, s.group[0], o.Out[0], mostValues) {
		s.add("bypass", 2, text("the result of %s is %s", o.Name, Name(s.Piece, id)), func(w *writer, o program.Op) { w.pass(o, id) })
	}
}

// alike lists values of a shape that exist before an operator, the latest first.
func (s *site) alike(v program.Value, before int, not program.ID, most int) (ids []program.ID) {
	for i, x := range slices.Backward(s.Values) {
		id := program.ID(i)
		if id != not && s.Maker(id) < before && slices.Equal(x.Shape, v.Shape) && isFloat(x) == isFloat(v) {
			ids = append(ids, id)
		}
	}
	slices.SortStableFunc(ids, func(a, b program.ID) int { return s.Maker(b) - s.Maker(a) })
	return ids[:min(len(ids), most)]
}

// nearer gives an operator what its operand is made of: what is done to it is left out there alone, wherever else it goes.
func nearer(s *site) {
	o := s.first()
	names, ids := tensors(o)
	for n, id := range ids {
		if len(s.takers(id)) < 2 {
			continue
		}
		for k, x := range s.madeOf(id, within) {
			if v, w := s.Values[x], s.Values[id]; !slices.Equal(v.Shape, w.Shape) || isFloat(v) != isFloat(w) || v.Weight != "" {
				continue
			}
			what := text("%s of %s: %s → %s", names[n], o.Name, Name(s.Piece, id), Name(s.Piece, x))
			s.add("source", 2, what, func(w *writer, o program.Op) {
				from := s.madeOf(operand(o, names[n]), within)
				if !w.unless(k < len(from)) {
					w.give(o, names[n], from[k])
				}
			})
		}
	}
}

// madeOf lists what a value is made of, within some operators, the nearest first.
func (s *site) madeOf(id program.ID, within int) (out []program.ID) {
	if id != program.None && s.Maker(id) >= 0 && within > 0 {
		of := s.Operands(s.Maker(id))
		out = append(out, of...)
		for _, x := range of {
			out = append(out, s.madeOf(x, within-1)...)
		}
	}
	return out
}

// twice runs an operator again on its own result.
func twice(s *site) {
	o := s.first()
	names, ids := tensors(o)
	v, ok := s.result(o)
	if !ok || len(ids) == 0 || !isFloat(v) || !slices.Equal(s.shape(ids[0]), v.Shape) ||
		strings.HasPrefix(o.Name, "index") || strings.HasPrefix(o.Name, "scatter") {
		return
	}
	s.add("twice", 3, o.Name+" twice", func(w *writer, o program.Op) {
		w.after(o, func(w *writer, id program.ID) program.ID { return w.made(o, *w.value(id), with(o.Args, names[0], id)) })
	})
}

// order runs an operator before the one that made its operand.
func order(s *site) {
	o := s.first()
	names, ids := tensors(o)
	v, ok := s.result(o)
	if !ok || len(s.group) > 1 {
		return
	}
	for n, id := range ids {
		before := s.made(id)
		if len(before.Out) != 1 || isOne(before, copying) || !slices.Equal(s.shape(id), v.Shape) {
			continue
		}
		first, operands := tensors(before)
		for k, operand := range operands {
			if !slices.Equal(s.shape(operand), v.Shape) {
				continue
			}
			s.add("order", 3, text("%s before %s", o.Name, before.Name), func(w *writer, o program.Op) {
				late := before
				late.Args, late.Out = with(before.Args, first[k], w.made(o, v, with(o.Args, names[n], operand))), o.Out
				w.ops = append(w.ops, late)
			})
		}
	}
}

// chosen weighs the best of several by all of them, or by each other: shares are made before they are chosen, or behind.
func chosen(s *site) {
	const shares = "_softmax sigmoid"
	o, before := s.first(), s.made(self(s.first()))
	if len(s.group) > 1 || len(before.Out) == 0 {
		return
	}
	from := self(before)
	switch {
	case isOne(o, shares) && before.Name == "topk" && len(before.Out) == 2 && before.Out[0] == self(o):
		s.add("order", 3, o.Name+" before topk", func(w *writer, o program.Op) {
			all := w.made(o, w.s.Values[from], with(o.Args, "self", from))
			w.run(o, "gather", argsOf("self", all, "dim", before.Args.Get("dim"), "index", before.Out[1]))
		})
	case o.Name == "topk" && isOne(before, shares) && len(o.Out) == 2 && o.Out[1] != program.None:
		s.add("order", 5, before.Name+" behind topk", func(w *writer, o program.Op) {
			w.after(o, func(w *writer, id program.ID) program.ID {
				best := w.call("gather", id, nil, "self", from, "dim", o.Args.Get("dim"), "index", o.Out[1])
				return w.made(before, w.s.Values[o.Out[0]], with(before.Args, "self", best))
			})
		})
	}
}
