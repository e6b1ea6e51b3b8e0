package edit

import (
	"slices"

	"github.com/goparity/goparity/internal/program"
)

// convolutions pad all on one side, what sees both sides sees the past alone, or the other way round; or they go on
// otherwise beyond the edges.
func convolutions(s *site) {
	o := s.first()
	x := operand(o, "input")
	if o.Name != "convolution" || x == program.None {
		return
	}
	pad, _ := o.Args.Get("padding").([]int)
	rank := len(s.shape(x))
	for d, p := range pad {
		if p == 0 {
			continue
		}
		for k, name := range []string{"behind", "before"} {
			s.add("scalar", 2, text("padding of convolution: all %s axis %d", name, d), func(w *writer, o program.Op) {
				x, rest := operand(o, "input"), slices.Clone(pad)
				rest[d] = 0
				if !w.unless(len(w.shape(x)) == rank) {
					w.run(o, o.Name, with(o.Args, "input", w.beyond(x, rank-len(pad)+d, [2]int{2 * p * k, 2 * p * (1 - k)}, nil), "padding", rest))
				}
			})
		}
	}
	if _, pad := s.padded(o); len(pad) == 0 {
		return
	}
	for _, edge := range edges {
		s.add("sibling", 2, "padding of convolution: "+edge.name, func(w *writer, o program.Op) {
			x, pad := s.padded(o)
			if w.unless(len(pad) > 0) {
				return
			}
			for d, p := range pad {
				x = w.beyond(x, d, [2]int{p, p}, edge.at)
			}
			conv, _ := o.Args.Get("padding").([]int)
			w.run(o, o.Name, with(o.Args, "input", x, "padding", make([]int, len(conv))))
		})
	}
}

// edges are the ways to go on beyond the n elements of an axis: at is the one that stands at a place outside.
var edges = []struct {
	name string
	at   func(i, n int) int
}{
	{"zeros", nil},
	{"the edge again", func(i, n int) int { return min(max(i, 0), n-1) }},
	{"reflected", func(i, n int) int { return min(max(i, -i), 2*(n-1)-max(i, -i)) }},
	{"from the other side", func(i, n int) int { return (i + n) % n }},
}

// padded returns what a convolution takes before it was padded, by itself or by indices, and by how much on both sides of
// each axis; nothing where it was not.
func (s *site) padded(o program.Op) (x program.ID, pad []int) {
	x = operand(o, "input")
	shape := s.shape(x)
	own, _ := o.Args.Get("padding").([]int)
	for isOne(s.made(x), "index constant_pad_nd") {
		x = self(s.made(x))
	}
	before := s.shape(x)
	if len(before) != len(shape) {
		return x, nil
	}
	for d, n := range shape {
		both := n - before[d]
		p := both / 2
		if k := d - len(shape) + len(own); k >= 0 {
			p += own[k]
		}
		if both < 0 || both%2 > 0 || p >= before[d] {
			return x, nil
		}
		pad = append(pad, p)
	}
	if slices.Max(pad) == 0 {
		return x, nil
	}
	return x, pad
}
