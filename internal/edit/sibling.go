package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// families are the operators that may be taken for one another.
var families = [][]string{
	{"silu", "gelu", "relu", "sigmoid", "tanh", "exp", "softplus", "abs", "neg", "rsqrt", "sqrt", "reciprocal", "sin", "cos", "log", "log1p",
		"leaky_relu", "elu", "mish", "hardswish", "square", "erf", "expm1"},
	{"add", "sub", "rsub", "mul", "div", "maximum", "minimum"},
	{"lt", "le", "gt", "ge", "eq", "ne"},
	{"bitwise_and", "bitwise_or", "bitwise_xor"},
	{"tril", "triu"},
	{"sum", "mean", "amax", "amin"},
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
		s.add("sibling", 1, "layer norm → RMS norm", func(w *writer, o program.Op) { rmsNorm(w, o) })
		return
	case "_native_batch_norm_legit_no_training":
		s.add("sibling", 1, "batch norm by the statistics of the batch", func(w *writer, o program.Op) { batchStatistics(w, o) })
		return
	case "sum", "mean", "amax", "amin":
		pooled(s, o)
	}
	i := slices.IndexFunc(families, func(f []string) bool { return slices.Contains(f, o.Name) })
	if i < 0 || !single {
		return
	}
	for _, n := range families[i] {
		if n != o.Name {
			s.add("sibling", 1, text("%s → %s", o.Name, n), func(w *writer, o program.Op) { w.run(o, n, o.Args) })
		}
	}
	if i > 0 {
		return
	}
	for _, a := range []string{"tanh", "none"} {
		if o.Name != "gelu" && a == "none" || o.Name == "gelu" && o.Args.Get("approximate") == a {
			continue
		}
		s.add("sibling", 1, text("%s → gelu (%s)", o.Name, a), func(w *writer, o program.Op) { w.run(o, "gelu", with(o.Args, "approximate", a)) })
	}
	s.add("sibling", 1, o.Name+" → x·sigmoid(1.702·x)", func(w *writer, o program.Op) {
		x := o.Args.Get("self").(program.ID)
		t := w.call("mul", x, w.value(x).Shape, "self", x, "other", quick)
		t = w.call("sigmoid", x, w.value(x).Shape, "self", t)
		w.run(o, "mul", argsOf([]any{"self", x, "other", t}))
	})
	for _, f := range approximations {
		s.add("sibling", 1, o.Name+" → "+f.name, func(w *writer, o program.Op) {
			x := o.Args.Get("self").(program.ID)
			if f.scale != 1 {
				x = w.call("mul", x, nil, "self", x, "other", f.scale)
			}
			if f.offset != 0 {
				x = w.call("add", x, nil, "self", x, "other", f.offset, "alpha", 1)
			}
			if f.max == nil {
				w.run(o, "view", argsOf([]any{"self", x}))
				return
			}
			w.run(o, "clamp", argsOf([]any{"self", x, "min", f.min, "max", f.max}))
		})
	}
	s.add("sibling", 1, o.Name+" → relu²", func(w *writer, o program.Op) {
		x := o.Args.Get("self").(program.ID)
		t := w.call("relu", x, w.value(x).Shape, "self", x)
		w.run(o, "mul", argsOf([]any{"self", t, "other", t}))
	})
	for d := range v.Shape {
		s.add("sibling", 2, text("%s → softmax over axis %d", o.Name, d), func(w *writer, o program.Op) { w.run(o, "_softmax", with(o.Args, "dim", d)) })
	}
}

// approximations are the straight lines that people write in the place of a function: scale·x + offset within bounds.
var approximations = []struct {
	name          string
	scale, offset float64
	min, max      any
}{
	{"x within 0 and 1", 1, 0, 0.0, 1.0},
	{"x within −1 and 1", 1, 0, -1.0, 1.0},
	{"x within 0 and 6", 1, 0, 0.0, 6.0},
	{"x/6 + ½ within 0 and 1", 1.0 / 6, 0.5, 0.0, 1.0},
	{"1 + x", 1, 1, nil, nil},
}

// quick is the factor of the logistic approximation of GELU (Hendrycks and Gimpel, 2016).
const quick = 1.702

// rmsNorm divides by √(mean of squares + eps), without the mean taken off.
func rmsNorm(w *writer, o program.Op) {
	x, _ := o.Args.Get("input").(program.ID)
	n, _ := o.Args.Get("normalized_shape").([]int)
	last := len(w.value(x).Shape) - 1
	if w.failed = w.failed || len(n) != 1 || last < 0; !w.failed {
		w.normed(o, x, []int{last}, false)
	}
}

// batchStatistics norms each channel by the numbers that it has now.
func batchStatistics(w *writer, o program.Op) {
	x, _ := o.Args.Get("input").(program.ID)
	axes := upTo(len(w.value(x).Shape))
	if w.failed = w.failed || len(axes) < 2; !w.failed {
		w.normed(o, x, slices.Delete(axes, 1, 2), true)
	}
}

// normed writes, in the place of a norm, one over some axes of its input. Where these are not the last alone, there are a
// weight and a bias for each of the other elements.
func (w *writer) normed(o program.Op, x program.ID, axes []int, centred bool) {
	shape := w.value(x).Shape
	one := slices.Clone(shape)
	for _, d := range axes {
		one[d] = 1
	}
	mean := func(id program.ID) program.ID {
		return w.call("mean", id, one, "self", id, "dim", axes, "keepdim", true)
	}
	if centred {
		x = w.call("sub", x, nil, "self", x, "other", mean(x), "alpha", 1)
	}
	root := mean(w.call("mul", x, nil, "self", x, "other", x))
	root = w.call("add", root, nil, "self", root, "other", o.Args.Get("eps"), "alpha", 1)
	x = w.call("mul", x, nil, "self", x, "other", w.call("rsqrt", root, nil, "self", root))
	for _, a := range []struct{ name, op string }{{"weight", "mul"}, {"bias", "add"}} {
		if id, ok := o.Args.Get(a.name).(program.ID); ok {
			if len(axes) > 1 {
				id = w.view(id, one...)
			}
			x = w.call(a.op, x, nil, "self", x, "other", id, "alpha", 1)
		}
	}
	o.Out = o.Out[:1]
	w.run(o, "view", argsOf([]any{"self", x, "size", shape}))
}

// pooled takes the first or the last of what is summed.
func pooled(s *site, o program.Op) {
	x, ok := o.Args.Get("self").(program.ID)
	dims, _ := o.Args.Get("dim").([]int)
	if !ok || len(dims) != 1 {
		return
	}
	for _, at := range []int{0, -1} {
		s.add("sibling", 2, text("%s → the element %d", o.Name, at), func(w *writer, o program.Op) {
			x = o.Args.Get("self").(program.ID)
			shape := slices.Clone(w.value(x).Shape)
			d := dims[0]
			if d < 0 {
				d += len(shape)
			}
			start := at
			if at < 0 {
				start = shape[d] - 1
			}
			shape[d] = 1
			t := w.call("slice", x, shape, "self", x, "dim", d, "start", start, "end", start+1, "step", 1)
			w.run(o, "view", argsOf([]any{"self", t, "size", w.s.Values[o.Out[0]].Shape}))
		})
	}
}
