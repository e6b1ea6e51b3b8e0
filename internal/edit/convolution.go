package edit

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// convolutions pad all on one side: what sees both sides sees the past alone, or the other way round.
func convolutions(s *site) {
	o := s.first()
	pad, ok := o.Args.Get("padding").([]int)
	x, is := o.Args.Get("input").(program.ID)
	if o.Name != "convolution" || !ok || !is || len(pad) == 0 || !slices.ContainsFunc(pad, func(p int) bool { return p > 0 }) {
		return
	}
	rank := len(s.shape(x))
	for axis := range pad {
		for k, name := range []string{"behind", "before"} {
			s.add("scalar", 2, text("padding of convolution: all %s axis %d", name, axis), func(w *writer, o program.Op) {
				x, p := o.Args.Get("input").(program.ID), pad[axis]
				before := 2 * p * k
				shape := slices.Clone(w.value(x).Shape)
				if w.failed = w.failed || len(shape) != rank || p == 0; w.failed {
					return
				}
				at := rank - len(pad) + axis
				shape[at] += 2 * p
				sides := make([]int, 2*(rank-at))
				sides[len(sides)-2], sides[len(sides)-1] = before, 2*p-before
				x = w.call("constant_pad_nd", x, shape, "self", x, "pad", sides, "value", 0)
				rest := slices.Clone(pad)
				rest[axis] = 0
				w.run(o, o.Name, with(with(o.Args, "input", x), "padding", rest))
			})
		}
	}
}

// clamps bound what is bounded on one side on the other, too.
func clamps(s *site) {
	o := s.first()
	if o.Name != "clamp" {
		return
	}
	for _, side := range [][2]string{{"min", "max"}, {"max", "min"}} {
		bound, ok := toFloat(o.Args.Get(side[0]))
		if !ok || o.Args.Get(side[1]) != nil {
			continue
		}
		for _, x := range []float64{-bound, 0} {
			s.given("scalar", 3, text("%s of clamp: none → %s", side[1], number(x)), side[1], x)
		}
	}
}

func toFloat(x any) (float64, bool) {
	switch v := x.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, !math.IsInf(v, 0)
	}
	return 0, false
}

// batchStatistics norms each channel by the numbers that it has now.
func batchStatistics(w *writer, o program.Op) {
	x, _ := o.Args.Get("input").(program.ID)
	shape := w.value(x).Shape
	if w.failed = w.failed || len(shape) < 2; w.failed {
		return
	}
	var dims []int
	one := slices.Repeat([]int{1}, len(shape))
	one[1] = shape[1]
	for d := range shape {
		if d != 1 {
			dims = append(dims, d)
		}
	}
	mean := w.call("mean", x, one, "self", x, "dim", dims, "keepdim", true)
	t := w.call("sub", x, nil, "self", x, "other", mean, "alpha", 1)
	v := w.call("mul", t, nil, "self", t, "other", t)
	v = w.call("mean", v, one, "self", v, "dim", dims, "keepdim", true)
	v = w.call("add", v, nil, "self", v, "other", o.Args.Get("eps"), "alpha", 1)
	v = w.call("rsqrt", v, nil, "self", v)
	t = w.call("mul", t, nil, "self", t, "other", v)
	for _, a := range []struct{ name, op string }{{"weight", "mul"}, {"bias", "add"}} {
		if id, ok := o.Args.Get(a.name).(program.ID); ok {
			id = w.call("view", id, one, "self", id, "size", one)
			t = w.call(a.op, t, nil, "self", t, "other", id, "alpha", 1)
		}
	}
	o.Out = o.Out[:1]
	w.run(o, "view", argsOf([]any{"self", t, "size", shape}))
}
