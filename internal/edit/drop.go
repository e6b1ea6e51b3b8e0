package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
)

// spreads are operators of two operands, of which the smaller is spread over the other.
var spreads = []string{"add", "sub", "mul", "div", "maximum", "minimum", "where", "masked_fill"}

// drop leaves an operator out, or one of its optional operands.
func drop(s *site) {
	o := s.first()
	v, single := s.result(o)
	if slices.Contains([]string{"clone", "alias", "detach", "view", "expand"}, o.Name) {
		return
	}
	names, ids := tensors(o)
	for k, id := range ids {
		shape, name := s.shape(id), names[k]
		if single && isFloat(v) == isFloat(s.Values[id]) && (slices.Equal(shape, v.Shape) || slices.Contains(spreads, o.Name) && len(shape) <= len(v.Shape)) {
			s.add("drop", 0, text("%s left out", o.Name), func(w *writer, o program.Op) { w.pass(o, o.Args.Get(name).(program.ID)) })
		}
		if name == "weight" && o.Name != "embedding" && o.Name != "convolution" || name == "bias" {
			s.given("drop", 0, text("%s of %s left out", name, o.Name), name, nil)
		}
	}
	switch o.Name {
	case "addmm":
		s.add("drop", 0, "bias left out", func(w *writer, o program.Op) {
			w.run(o, "mm", argsOf([]any{"self", o.Args.Get("mat1"), "mat2", o.Args.Get("mat2")}))
		})
	case "native_layer_norm", "native_group_norm", "_native_batch_norm_legit_no_training", "native_batch_norm":
		s.add("drop", 0, "norm left out", func(w *writer, o program.Op) { w.pass(o, o.Args.Get("input").(program.ID)) })
	}
}

// twice runs an operator again on its own result.
func twice(s *site) {
	o := s.first()
	names, ids := tensors(o)
	if v, ok := s.result(o); !ok || len(ids) == 0 || !isFloat(v) || !slices.Equal(s.shape(ids[0]), v.Shape) || strings.HasPrefix(o.Name, "index") || strings.HasPrefix(o.Name, "scatter") {
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
		if s.Maker(id) < 0 || !slices.Equal(s.shape(id), v.Shape) {
			continue
		}
		before := s.Ops[s.Maker(id)]
		first, operands := tensors(before)
		for k, operand := range operands {
			if len(before.Out) != 1 || slices.Contains([]string{"clone", "detach", "alias"}, before.Name) || !slices.Equal(s.shape(operand), v.Shape) {
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
	o := s.first()
	in, ok := o.Args.Get("self").(program.ID)
	if !ok || len(s.group) > 1 || s.Maker(in) < 0 {
		return
	}
	before := s.Ops[s.Maker(in)]
	from, _ := before.Args.Get("self").(program.ID)
	shares := []string{"_softmax", "sigmoid"}
	switch {
	case slices.Contains(shares, o.Name) && before.Name == "topk" && len(before.Out) == 2 && before.Out[0] == in:
		s.add("order", 3, text("%s before topk", o.Name), func(w *writer, o program.Op) {
			all := w.made(o, w.s.Values[from], with(o.Args, "self", from))
			w.run(o, "gather", argsOf([]any{"self", all, "dim", before.Args.Get("dim"), "index", before.Out[1]}))
		})
	case o.Name == "topk" && slices.Contains(shares, before.Name) && len(o.Out) == 2 && o.Out[1] != program.None:
		s.add("order", 5, text("%s behind topk", before.Name), func(w *writer, o program.Op) {
			w.after(o, func(w *writer, id program.ID) program.ID {
				best := w.call("gather", id, nil, "self", from, "dim", o.Args.Get("dim"), "index", o.Out[1])
				return w.made(before, w.s.Values[o.Out[0]], with(before.Args, "self", best))
			})
		})
	}
}

// made writes an operator with other arguments that makes a value like another one.
func (w *writer) made(o program.Op, like program.Value, args program.Args) program.ID {
	id := w.make(like.Shape, like.DType)
	o.Args, o.Out = args, []program.ID{id}
	w.ops = append(w.ops, o)
	return id
}
