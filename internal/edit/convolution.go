package edit

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// convolutions pad all on one side, what sees both sides sees the past alone, or the other way round; or they go on
// otherwise beyond the edges.
func convolutions(s *site) {
	o := s.first()
	x, is := o.Args.Get("input").(program.ID)
	if o.Name != "convolution" || !is {
		return
	}
	if pad, ok := o.Args.Get("padding").([]int); ok && slices.ContainsFunc(pad, func(p int) bool { return p > 0 }) {
		s.oneSided(len(s.shape(x)), pad)
	}
	if _, pad := s.padded(o); len(pad) == 0 {
		return
	}
	for _, edge := range edges {
		s.add("sibling", 2, "padding of convolution: "+edge.name, func(w *writer, o program.Op) {
			x, pad := s.padded(o)
			if w.failed = w.failed || len(pad) == 0; w.failed {
				return
			}
			for axis, p := range pad {
				x = w.beyond(x, axis, p, edge.at)
			}
			conv, _ := o.Args.Get("padding").([]int)
			w.run(o, o.Name, with(with(o.Args, "input", x), "padding", make([]int, len(conv))))
		})
	}
}

func (s *site) oneSided(rank int, pad []int) {
	for axis := range pad {
		for k, name := range []string{"behind", "before"} {
			s.add("scalar", 2, text("padding of convolution: all %s axis %d", name, axis), func(w *writer, o program.Op) {
				x, p := o.Args.Get("input").(program.ID), pad[axis]
				before := 2 * p * k
				if w.failed = w.failed || len(w.value(x).Shape) != rank || p == 0; w.failed {
					return
				}
				x = w.beyond(x, rank-len(pad)+axis, [2]int{before, 2*p - before}, nil)
				rest := slices.Clone(pad)
				rest[axis] = 0
				w.run(o, o.Name, with(with(o.Args, "input", x), "padding", rest))
			})
		}
	}
}

// edges are the ways to go on beyond the n elements of an axis: at is the one that stands at a place outside.
var edges = []struct {
	name string
	at   func(i, n int) int
}{
	{"zeros", nil},
	{"the edge again", func(i, n int) int { return min(max(i, 0), n-1) }},
	{"reflected", func(i, n int) int {
		if i < 0 {
			i = -i
		}
		return min(i, 2*(n-1)-i)
	}},
	{"from the other side", func(i, n int) int { return (i + n) % n }},
}

// beyond adds elements before and after those of an axis: zeros, or those that at says.
func (w *writer) beyond(x program.ID, axis int, sides [2]int, at func(i, n int) int) program.ID {
	shape := slices.Clone(w.value(x).Shape)
	n := shape[axis]
	switch {
	case sides == [2]int{}:
		return x
	case at != nil:
		order := make([]int, 0, sides[0]+n+sides[1])
		for i := -sides[0]; i < n+sides[1]; i++ {
			order = append(order, at(i, n))
		}
		return w.selected(x, axis, order)
	}
	pad := make([]int, 2*(len(shape)-axis))
	pad[len(pad)-2], pad[len(pad)-1] = sides[0], sides[1]
	shape[axis] += sides[0] + sides[1]
	return w.call("constant_pad_nd", x, shape, "self", x, "pad", pad, "value", 0)
}

// padded returns what a convolution takes before it was padded, by itself or by indices, and by how much on both sides of
// each axis; nothing where it was not.
func (s *site) padded(o program.Op) (x program.ID, pad [][2]int) {
	x, _ = o.Args.Get("input").(program.ID)
	shape := s.shape(x)
	own, _ := o.Args.Get("padding").([]int)
	for m := s.Maker(x); m >= 0 && (s.Ops[m].Name == "index" || s.Ops[m].Name == "constant_pad_nd"); m = s.Maker(x) {
		x, _ = s.Ops[m].Args.Get("self").(program.ID)
	}
	before := s.shape(x)
	if len(before) != len(shape) {
		return x, nil
	}
	some := false
	for d, n := range shape {
		both := n - before[d]
		p := both / 2
		if k := d - len(shape) + len(own); k >= 0 {
			p += own[k]
		}
		if both < 0 || both%2 > 0 || p >= before[d] {
			return x, nil
		}
		some = some || p > 0
		pad = append(pad, [2]int{p, p})
	}
	if !some {
		return x, nil
	}
	return x, pad
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
