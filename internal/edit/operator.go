package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// drop leaves an operator out, or one of its optional operands.
func drop(s *site) {
	name := s.op.Name
	if isOne(s.op, "view expand") {
		return
	}
	for _, x := range s.operands {
		shape, to := s.shape(x.id), s.result.Shape
		fits := slices.Equal(shape, to) || isOne(s.op, spreading) && len(shape) <= len(to)
		if s.single && fits && isFloat(s.result) == isFloat(s.Values[x.id]) {
			s.add("drop", 0, name+" left out", func(w *writer, o program.Op) { w.pass(o, tensorOf(o, x.name)) })
		}
		if x.name == "weight" && !isOne(s.op, "embedding convolution") || x.name == "bias" {
			s.given("drop", 0, text("%s of %s left out", x.name, name), x.name, nil)
		}
	}
	switch name {
	case "addmm":
		s.add("drop", 0, "bias left out", func(w *writer, o program.Op) {
			w.run(o, "mm", argsOf("self", o.Args.Get("mat1"), "mat2", o.Args.Get("mat2")))
		})
	case "native_layer_norm", "native_group_norm", batchNorm, "native_batch_norm":
		s.add("drop", 0, "norm left out", func(w *writer, o program.Op) { w.pass(o, tensorOf(o, "input")) })
	}
}

const batchNorm = "_native_batch_norm_legit_no_training"

// bypass makes the result of an operator an earlier value: everything between is left out.
func bypass(s *site) {
	if !s.single && !isOne(s.op, norming) || len(s.group) > 1 {
		return
	}
	for _, id := range s.alike(s.result, s.group[0], s.op.Out[0], mostValues) {
		cost := 2
		if m := s.Maker(id); m >= 0 && isOne(s.Ops[m], cutting+" unbind") && !s.takes(s.group[0], id) && s.takes(s.group[0], s.Ops[m].Out...) {
			cost++ // another part of what it was cut from: nothing is left out
		}
		s.add("bypass", cost, text("the result of %s is %s", s.op.Name, s.name(id)), func(w *writer, o program.Op) { w.pass(o, id) })
	}
}

// nearer gives an operator what its operand is made of: what is done to it is left out there alone, wherever else it goes.
func nearer(s *site) {
	for _, x := range s.operands {
		if len(s.takers(x.id)) < 2 {
			continue
		}
		for k, id := range s.madeOf(x.id, within) {
			if v, w := s.Values[id], s.Values[x.id]; !slices.Equal(v.Shape, w.Shape) || isFloat(v) != isFloat(w) || v.Weight != "" {
				continue
			}
			what := text("%s of %s: %s → %s", x.name, s.op.Name, s.name(x.id), s.name(id))
			s.add("source", 2, what, func(w *writer, o program.Op) {
				from := s.madeOf(tensorOf(o, x.name), within)
				w.needs(k < len(from))
				w.give(o, x.name, from[k])
			})
		}
	}
}

// twice runs an operator again on its own result.
func twice(s *site) {
	if !s.single || len(s.operands) == 0 || !isFloat(s.result) || !slices.Equal(s.shape(s.operands[0].id), s.result.Shape) ||
		isOne(s.op, "index* scatter*") {
		return
	}
	s.add("twice", 3, s.op.Name+" twice", func(w *writer, o program.Op) {
		w.after(o, func(w *writer, id program.ID) program.ID {
			return w.made(o, *w.value(id), with(o.Args, s.operands[0].name, id))
		})
	})
}

// order runs an operator before the one that made its operand.
func order(s *site) {
	if !s.single || len(s.group) > 1 {
		return
	}
	for _, x := range s.operands {
		before := s.made(x.id)
		if len(before.Out) != 1 || !slices.Equal(s.shape(x.id), s.result.Shape) {
			continue
		}
		for _, first := range tensors(before) {
			if !slices.Equal(s.shape(first.id), s.result.Shape) {
				continue
			}
			s.add("order", 3, text("%s before %s", s.op.Name, before.Name), func(w *writer, o program.Op) {
				late := before
				late.Args, late.Out = with(before.Args, first.name, w.made(o, s.result, with(o.Args, x.name, first.id))), o.Out
				w.ops = append(w.ops, late)
			})
		}
	}
}

// chosen weighs the best of several by all of them, or by each other: shares are made before they are chosen, or after.
func chosen(s *site) {
	const shares = "_softmax sigmoid"
	o, before := s.op, s.made(self(s.op))
	if len(s.group) > 1 || len(before.Out) == 0 {
		return
	}
	from := self(before)
	switch {
	case isOne(o, shares) && before.Name == "topk" && len(before.Out) == 2 && before.Out[0] == self(o):
		s.add("order", 3, o.Name+" before topk", func(w *writer, o program.Op) {
			all := w.made(o, s.Values[from], with(o.Args, "self", from))
			w.run(o, "gather", argsOf("self", all, "dim", before.Args.Get("dim"), "index", before.Out[1]))
		})
	case o.Name == "topk" && isOne(before, shares) && len(o.Out) == 2 && o.Out[1] != program.None:
		s.then("order", 5, before.Name+" after topk", func(w *writer, id program.ID) program.ID {
			best := w.like("gather", id, nil, "self", from, "dim", o.Args.Get("dim"), "index", o.Out[1])
			return w.made(before, s.result, with(before.Args, "self", best))
		})
	}
}

// swap exchanges two operands, or puts parts together in another order.
func swap(s *site) {
	for _, p := range [][2]string{{"self", "other"}, {"self", "mat2"}, {"mat1", "mat2"}, {"self", "end"}} {
		if tensorOf(s.op, p[0]) == program.None || tensorOf(s.op, p[1]) == program.None || isOne(s.op, "add mul eq maximum minimum") {
			continue
		}
		s.add("swap", 1, s.op.Name+" with its operands exchanged", func(w *writer, o program.Op) {
			w.run(o, o.Name, with(o.Args, p[0], o.Args.Get(p[1]), p[1], o.Args.Get(p[0])))
		})
	}
	parts, _ := s.op.Args.Get("tensors").([]program.ID)
	if len(parts) > mostParts {
		return
	}
	for _, order := range permutations(len(parts)) {
		s.add("swap", 2, text("%s in the order %v", s.op.Name, order), func(w *writer, o program.Op) {
			own, _ := o.Args.Get("tensors").([]program.ID)
			w.give(o, "tensors", mapped(order, func(i int) program.ID { return own[min(i, len(own)-1)] }))
		})
	}
}

// turned exchanges two axes of equal size in both operands of a product.
func turned(s *site) {
	if !isOne(s.op, "bmm mm") {
		return
	}
	a, b := s.origin(self(s.op), laying), s.origin(tensorOf(s.op, "mat2"), laying)
	shape := s.shape(a)
	if a == b || !slices.Equal(shape, s.shape(b)) {
		return
	}
	for q := range shape {
		for p := range q {
			if shape[p] == shape[q] && shape[p] > 1 {
				s.insteadOf("layout", 2, text("axes %d and %d of both operands of %s exchanged", p, q, s.op.Name), []program.ID{a, b},
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
			va, oka := s.resultOf(a)
			vb, okb := s.resultOf(b)
			if !oka || !okb || !sameKind(va, vb) || s.depends(j, i) {
				continue
			}
			n++
			what := text("%s and %s exchanged", s.name(a.Out[0]), s.name(b.Out[0]))
			s.addAt("exchange", 3, what, []int{i, j}, func(w *writer, o program.Op) {
				w.run(o, replay.AsIs, argsOf("self", a.Out[0]+b.Out[0]-o.Out[0]))
			})
		}
	}
}

// outsiders gives two values that come from outside each other's place.
func outsiders(s *site) {
	for x, a := range s.values() {
		for y, b := range s.values() {
			if y >= x || s.Maker(x) >= 0 || s.Maker(y) >= 0 || a.Weight != "" || b.Weight != "" || !sameKind(a, b) {
				continue
			}
			s.insteadOf("exchange", 3, text("%s and %s exchanged", s.port(x), s.port(y)), []program.ID{x, y},
				func(_ *writer, id program.ID) program.ID { return x + y - id })
		}
	}
}

// sameKind reports whether two values are floats of one type and shape.
func sameKind(a, b program.Value) bool {
	return isFloat(a) && slices.Equal(a.Shape, b.Shape) && a.DType == b.DType
}

// families are the operators that may be taken for one another, the first those of functions of one variable.
var families = []string{
	"silu gelu relu sigmoid tanh exp softplus abs neg rsqrt sqrt reciprocal sin cos log log1p leaky_relu elu mish hardswish square erf expm1",
	"add sub rsub mul div maximum minimum", "lt le gt ge eq ne", "bitwise_and bitwise_or bitwise_xor", "tril triu", "sum mean amax amin",
}

// quick is the factor of the logistic approximation of GELU (Hendrycks and Gimpel, 2016).
const quick = 1.702

// function is one of one variable that no operator is, or no operator as it stands.
type function struct {
	name  string
	write change
}

var functions = []function{
	{"gelu (none)", by("gelu")}, {"gelu (tanh)", by("gelu", "approximate", "tanh")},
	{"x·sigmoid(1.702·x)", func(w *writer, x program.ID) program.ID {
		return w.two("mul", x, w.call("sigmoid", w.two("mul", x, quick), nil))
	}},
	{"x within 0 and 1", line(1, 0, 0.0, 1.0)},
	{"x within −1 and 1", line(1, 0, -1.0, 1.0)},
	{"x within 0 and 6", line(1, 0, 0.0, 6.0)},
	{"x/6 + ½ within 0 and 1", line(1.0/6, 0.5, 0.0, 1.0)},
	{"1 + x", line(1, 1, nil, nil)},
	{"relu²", func(w *writer, x program.ID) program.ID { return square(w, w.call("relu", x, nil)) }},
}

// line is a straight one that people write in the place of a function: scale·x + offset within bounds.
func line(scale, offset float64, low, high any) change {
	return func(w *writer, x program.ID) program.ID {
		return w.call("clamp", w.two("add", w.two("mul", x, scale), offset), nil, "min", low, "max", high)
	}
}

// sibling puts another operator of the same family in its place.
func sibling(s *site) {
	name := s.op.Name
	switch name {
	case "_softmax":
		s.add("sibling", 1, "softmax → sigmoid", func(w *writer, o program.Op) { w.run(o, "sigmoid", o.Args) })
		return
	case "native_layer_norm":
		if n, _ := s.op.Args.Get("normalized_shape").([]int); len(n) == 1 {
			s.add("sibling", 1, "layer norm → RMS norm", func(w *writer, o program.Op) { w.normed(o, []int{-1}, false) })
		}
		return
	case batchNorm:
		s.add("sibling", 1, "batch norm by the statistics of the batch", func(w *writer, o program.Op) {
			axes := upTo(len(w.shape(tensorOf(o, "input"))))
			w.normed(o, slices.Delete(axes, 1, 2), true)
		})
		return
	case "sum", "mean", "amax", "amin":
		pooled(s)
	}
	i := slices.IndexFunc(families, func(f string) bool { return isOne(s.op, f) })
	if i < 0 || !s.single {
		return
	}
	for n := range strings.FieldsSeq(families[i]) {
		if n != name {
			s.add("sibling", 1, name+" → "+n, func(w *writer, o program.Op) { w.run(o, n, o.Args) })
		}
	}
	if i > 0 {
		return
	}
	is := "gelu (none)" // the operator alone is that
	if name == "gelu" {
		is = text("gelu (%v)", s.op.Args.Get("approximate"))
	}
	for _, f := range functions {
		if f.name != is {
			s.add("sibling", 1, name+" → "+f.name, func(w *writer, o program.Op) { w.pass(o, f.write(w, self(o))) })
		}
	}
	for d := range s.result.Shape {
		s.add("sibling", 2, text("%s → softmax over axis %d", name, d), func(w *writer, o program.Op) { w.run(o, "_softmax", with(o.Args, "dim", d)) })
	}
}

// normed writes, in the place of a norm, one over some axes of its input: a division by √(mean of squares + eps), maybe
// with the mean taken off before. Where these are several, there are a weight and a bias for each of the other elements.
func (w *writer) normed(o program.Op, axes []int, centred bool) {
	x := tensorOf(o, "input")
	if centred {
		x = w.two("sub", x, w.along("mean", x, axes...))
	}
	root := w.two("add", w.along("mean", square(w, x), axes...), o.Args.Get("eps"))
	one := w.shape(root)
	x = w.two("mul", x, w.call("rsqrt", root, nil))
	for _, a := range []struct{ name, op string }{{"weight", "mul"}, {"bias", "add"}} {
		if id := tensorOf(o, a.name); id != program.None {
			if len(axes) > 1 {
				id = w.view(id, one...)
			}
			x = w.two(a.op, x, id)
		}
	}
	o.Out = o.Out[:1]
	w.pass(o, x)
}

// pooled takes the first or the last of what is summed, or sums more or fewer along an axis of several: with the first token,
// or without the last.
func pooled(s *site) {
	dims, _ := s.op.Args.Get("dim").([]int)
	x := self(s.op)
	if x == program.None || len(dims) != 1 {
		return
	}
	for _, at := range []int{0, -1} {
		s.add("sibling", 2, text("%s → the element %d", s.op.Name, at), func(w *writer, o program.Op) {
			shape := w.shape(self(o))
			d := (dims[0] + len(shape)) % len(shape)
			w.pass(o, w.slice(self(o), d, (at+shape[d])%shape[d], 1))
		})
	}
	shape := s.shape(x)
	d := (dims[0] + len(shape)) % len(shape)
	from, to := 0, shape[d]
	if m := s.Maker(x); m >= 0 && isOne(s.Ops[m], "slice") && intOf(s.Ops[m], "dim") == d {
		x, from = self(s.Ops[m]), max(intOf(s.Ops[m], "start"), 0)
		to += from
	} else if d == len(shape)-1 {
		return // of a norm
	}
	if len(s.group) > 1 {
		return
	}
	n := s.shape(x)[d]
	for _, r := range [][2]int{{0, n}, {0, to}, {from, n}, {from + 1, to}, {from - 1, to}, {from, to - 1}, {from, to + 1}} {
		if length := r[1] - r[0]; r[0] >= 0 && r[1] <= n && length > 0 && length != to-from {
			s.add("slice", 3, text("%s from %d to %d → from %d to %d", s.op.Name, from, to, r[0], r[1]), func(w *writer, o program.Op) {
				w.give(o, "self", w.slice(x, d, r[0], length))
			})
		}
	}
}
