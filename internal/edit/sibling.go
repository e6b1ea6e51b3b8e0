package edit

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/program"
)

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
	{"gelu (none)", func(w *writer, x program.ID) program.ID { return w.one("gelu", x) }},
	{"gelu (tanh)", func(w *writer, x program.ID) program.ID {
		return w.call("gelu", x, nil, "self", x, "approximate", "tanh")
	}},
	{"x·sigmoid(1.702·x)", func(w *writer, x program.ID) program.ID {
		return w.two("mul", x, w.one("sigmoid", w.two("mul", x, quick)))
	}},
	{"x within 0 and 1", line(1, 0, 0.0, 1.0)},
	{"x within −1 and 1", line(1, 0, -1.0, 1.0)},
	{"x within 0 and 6", line(1, 0, 0.0, 6.0)},
	{"x/6 + ½ within 0 and 1", line(1.0/6, 0.5, 0.0, 1.0)},
	{"1 + x", line(1, 1, nil, nil)},
	{"relu²", func(w *writer, x program.ID) program.ID {
		x = w.one("relu", x)
		return w.two("mul", x, x)
	}},
}

// line is a straight one that people write in the place of a function: scale·x + offset within bounds.
func line(scale, offset float64, low, high any) change {
	return func(w *writer, x program.ID) program.ID {
		x = w.two("add", w.two("mul", x, scale), offset)
		return w.call("clamp", x, nil, "self", x, "min", low, "max", high)
	}
}

// sibling puts another operator of the same family in its place.
func sibling(s *site) {
	o := s.first()
	v, single := s.result(o)
	switch o.Name {
	case "_softmax":
		s.add("sibling", 1, "softmax → sigmoid", func(w *writer, o program.Op) { w.run(o, "sigmoid", o.Args) })
		return
	case "native_layer_norm":
		if n, _ := o.Args.Get("normalized_shape").([]int); len(n) == 1 {
			s.add("sibling", 1, "layer norm → RMS norm", func(w *writer, o program.Op) { w.normed(o, []int{-1}, false) })
		}
		return
	case "_native_batch_norm_legit_no_training":
		s.add("sibling", 1, "batch norm by the statistics of the batch", func(w *writer, o program.Op) {
			axes := upTo(len(w.value(operand(o, "input")).Shape))
			w.normed(o, slices.Delete(axes, 1, 2), true)
		})
		return
	case "sum", "mean", "amax", "amin":
		pooled(s, o)
	}
	i := slices.IndexFunc(families, func(f string) bool { return isOne(o, f) })
	if i < 0 || !single {
		return
	}
	for n := range strings.FieldsSeq(families[i]) {
		if n != o.Name {
			s.add("sibling", 1, text("%s → %s", o.Name, n), func(w *writer, o program.Op) { w.run(o, n, o.Args) })
		}
	}
	if i > 0 {
		return
	}
	is := "gelu (none)" // the operator alone is that
	if o.Name == "gelu" {
		is = text("gelu (%v)", o.Args.Get("approximate"))
	}
	for _, f := range functions {
		if f.name != is {
			s.add("sibling", 1, o.Name+" → "+f.name, func(w *writer, o program.Op) { w.pass(o, f.write(w, self(o))) })
		}
	}
	for d := range v.Shape {
		s.add("sibling", 2, text("%s → softmax over axis %d", o.Name, d), func(w *writer, o program.Op) { w.run(o, "_softmax", with(o.Args, "dim", d)) })
	}
}

// normed writes, in the place of a norm, one over some axes of its input: a division by √(mean of squares + eps), maybe
// with the mean taken off before. Where these are several, there are a weight and a bias for each of the other elements.
func (w *writer) normed(o program.Op, axes []int, centred bool) {
	x := operand(o, "input")
	if centred {
		x = w.two("sub", x, w.along("mean", x, axes...))
	}
	root := w.two("add", w.along("mean", w.two("mul", x, x), axes...), o.Args.Get("eps"))
	one := w.shape(root)
	x = w.two("mul", x, w.one("rsqrt", root))
	for _, a := range []struct{ name, op string }{{"weight", "mul"}, {"bias", "add"}} {
		if id := operand(o, a.name); id != program.None {
			if len(axes) > 1 {
				id = w.view(id, one...)
			}
			x = w.two(a.op, x, id)
		}
	}
	o.Out = o.Out[:1]
	w.pass(o, x)
}

// pooled takes the first or the last of what is summed.
func pooled(s *site, o program.Op) {
	dims, _ := o.Args.Get("dim").([]int)
	if self(o) == program.None || len(dims) != 1 {
		return
	}
	for _, at := range []int{0, -1} {
		s.add("sibling", 2, text("%s → the element %d", o.Name, at), func(w *writer, o program.Op) {
			shape := w.shape(self(o))
			d := (dims[0] + len(shape)) % len(shape)
			w.pass(o, w.slice(self(o), d, (at+shape[d])%shape[d], 1))
		})
	}
}
