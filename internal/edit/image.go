package edit

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

// resizes are other ways in which an axis is resized: the recorder writes bilinear and bicubic ones as products with a
// matrix of [before, after] numbers, each of whose columns is 1 in all.
func resizes(s *site) {
	var all []program.ID
	for id, v := range s.values() {
		if v.Data != nil && isFloat(v) && len(v.Shape) == 2 && v.Shape[0] > 1 && v.Shape[1] > 1 && s.isResize(id) && len(s.takers(id)) > 0 {
			all = append(all, id)
		}
	}
	if len(all) == 0 {
		return
	}
	id := "image/resize"
	if s.resizesWeight(all[0]) {
		id = "embedding/position"
	}
	for _, way := range ways {
		s.insteadOf("table", 1, "resized "+way.name, all, func(w *writer, x program.ID) program.ID {
			shape := s.shape(x)
			return w.resizing(way, shape[0], shape[1])
		}).ID = id
	}
}

// isResize reports whether each column of a matrix is 1 in all, and one of them is made of several numbers.
func (s *site) isResize(id program.ID) (several bool) {
	x, columns := s.floats(id), s.shape(id)[1]
	for c := range columns {
		sum, parts := 0.0, 0
		for i := c; i < len(x); i += columns {
			if sum += x[i]; x[i] != 0 {
				parts++
			}
		}
		if math.Abs(sum-1) > nearTable {
			return false
		}
		several = several || parts > 1
	}
	return several
}

// resizesWeight reports whether what is multiplied with a value is made of a weight.
func (s *site) resizesWeight(id program.ID) bool {
	t := s.takers(id)
	for len(t) > 0 && len(s.Operands(t[0])) == 1 {
		t = s.takers(s.Ops[t[0]].Out...)
	}
	return len(t) > 0 && slices.ContainsFunc(s.madeOf(s.Ops[t[0]].Out[0], len(s.Ops)), func(id program.ID) bool { return s.Values[id].Weight != "" })
}

// resampled makes of an image that is repeated one that is resized otherwise.
func resampled(s *site) {
	x := self(s.op)
	if s.op.Name != "upsample_nearest2d" || !s.single || len(s.result.Shape) != 4 || x == program.None || len(s.shape(x)) != 4 {
		return
	}
	for _, way := range ways {
		s.add("sibling", 1, s.op.Name+" → "+way.name, func(w *writer, o program.Op) {
			x := self(o)
			from, to := w.shape(x), s.shape(o.Out[0])
			n := from[0] * from[1]
			x = w.view(x, n, from[2], from[3])
			for _, d := range []int{3, 2} { // the last axis, which comes first then
				x = w.transpose(w.bmm(x, w.expand(w.resizing(way, from[d], to[d]), []int{n, from[d], to[d]})), 1, 2)
			}
			w.pass(o, x)
		}).ID = "image/resize"
	}
}

// way is one in which an axis is resized: from where each number comes, and of what it is made.
type way struct {
	name  string
	from  func(i, before, after float64) float64
	parts func(at float64) (first int, weights []float64)
}

// ways are those of torch.nn.functional.interpolate, and the cubic of PIL.
var ways = []way{
	{"nearest", func(i, before, after float64) float64 { return i * before / after }, one},
	{"nearest-exact", func(i, before, after float64) float64 { return (i + 0.5) * before / after }, one},
	{"linear", func(i, before, after float64) float64 { return math.Max(centred(i, before, after), 0) }, linear},
	{"linear, corners aligned", aligned, linear},
	{"cubic", centred, cubic(-0.75)},
	{"cubic, corners aligned", aligned, cubic(-0.75)},
	{"cubic with A = −0.5", centred, cubic(-0.5)},
}

func centred(i, before, after float64) float64 { return (i+0.5)*before/after - 0.5 }
func aligned(i, before, after float64) float64 { return i * (before - 1) / (after - 1) }
func one(at float64) (int, []float64)          { return int(at), []float64{1} }

func linear(at float64) (int, []float64) {
	t := at - math.Floor(at)
	return int(math.Floor(at)), []float64{1 - t, t}
}

// cubic is the convolution of Keys (1981), by its factor.
func cubic(a float64) func(at float64) (int, []float64) {
	near := func(x float64) float64 { return ((a+2)*x-(a+3))*x*x + 1 }
	far := func(x float64) float64 { return ((a*x-5*a)*x+8*a)*x - 4*a }
	return func(at float64) (int, []float64) {
		t := at - math.Floor(at)
		return int(math.Floor(at)) - 1, []float64{far(t + 1), near(t), near(1 - t), far(2 - t)}
	}
}

// resizing adds the matrix of [before, after] numbers to the patch; what lies outside is what stands at the edge.
func (w *writer) resizing(by way, before, after int) program.ID {
	return w.numbers(tensor.F32, []int{before, after}, func() []float64 {
		x := make([]float64, before*after)
		for i := range after {
			first, weights := by.parts(by.from(float64(i), float64(before), float64(after)))
			for k, v := range weights {
				x[min(max(first+k, 0), before-1)*after+i] += v
			}
		}
		return x
	})
}

// convolutions pad all on one side, what sees both sides sees the past alone, or the other way round; their taps are
// further apart, or less; or they go on otherwise beyond the edges.
func convolutions(s *site) {
	x := tensorOf(s.op, "input")
	if s.op.Name != "convolution" || x == program.None {
		return
	}
	s.oneSided(x)
	s.dilated(x)
	if _, pad := s.padded(s.op); len(pad) == 0 {
		return
	}
	for _, edge := range edges {
		s.add("sibling", 2, "padding of convolution: "+edge.name, func(w *writer, o program.Op) {
			x, pad := s.padded(o)
			w.needs(len(pad) > 0)
			for d, p := range pad {
				x = w.beyond(x, d, [2]int{p, p}, edge.at)
			}
			conv, _ := o.Args.Get("padding").([]int)
			w.run(o, o.Name, with(o.Args, "input", x, "padding", make([]int, len(conv))))
		})
	}
}

// oneSided pads all on one side, of all axes or of one; a transposed convolution cuts it off there.
func (s *site) oneSided(x program.ID) {
	pad, _ := s.op.Args.Get("padding").([]int)
	rank, transposed := len(s.shape(x)), s.op.Args.Get("transposed") == true
	for _, axes := range andEach(slices.DeleteFunc(upTo(len(pad)), func(d int) bool { return pad[d] == 0 })) {
		for k, side := range []string{"after", "before"} {
			what := text("padding of convolution: all %s axes %v", side, axes)
			if len(axes) == 1 {
				what = text("padding of convolution: all %s axis %d", side, axes[0])
			}
			s.add("scalar", 2, what, func(w *writer, o program.Op) {
				x, rest := tensorOf(o, "input"), slices.Clone(pad)
				w.needs(len(w.shape(x)) == rank && len(axes) > 0)
				whole := s.Values[o.Out[0]]
				whole.Shape = slices.Clone(whole.Shape)
				for _, d := range axes {
					at, p := rank-len(pad)+d, pad[d]
					whole.Shape[at] += 2 * p
					if rest[d] = 0; !transposed {
						x = w.beyond(x, at, [2]int{2 * p * k, 2 * p * (1 - k)}, nil)
					}
				}
				args := with(o.Args, "input", x, "padding", rest)
				if !transposed {
					w.run(o, o.Name, args)
					return
				}
				y := w.made(o, whole, args)
				for _, d := range axes {
					at := rank - len(pad) + d
					y = w.slice(y, at, 2*pad[d]*k, whole.Shape[at]-2*pad[d])
				}
				w.pass(o, y)
			})
		}
	}
}

// dilated spreads the taps of a convolution otherwise, over what is padded so that as much comes out.
func (s *site) dilated(x program.ID) {
	by, _ := s.op.Args.Get("dilation").([]int)
	taps, rank := s.shape(tensorOf(s.op, "weight")), len(s.shape(x))
	if len(by) == 0 || len(taps) != len(by)+2 || s.op.Args.Get("transposed") == true {
		return
	}
	for _, n := range []int{1, by[0] / 2, 2 * by[0]} {
		for _, side := range []string{"before", "on both sides"} {
			if n == 0 || n == by[0] {
				continue
			}
			s.add("integer", 3, text("dilation of convolution: %v → %d, padded %s", by, n, side), func(w *writer, o program.Op) {
				x := tensorOf(o, "input")
				w.needs(len(w.shape(x)) == rank)
				for d, own := range by {
					sides := [2]int{(taps[2+d] - 1) * (n - own), 0}
					if side != "before" {
						sides = [2]int{sides[0] / 2, sides[0] - sides[0]/2}
					}
					x = w.beyond(x, rank-len(by)+d, sides, nil)
				}
				w.run(o, o.Name, with(o.Args, "input", x, "dilation", slices.Repeat([]int{n}, len(by))))
			})
		}
	}
}

// pads moves what is padded, or cut off, to other sides of an axis, or goes on otherwise beyond its edges.
func pads(s *site) {
	pad, _ := s.op.Args.Get("pad").([]int)
	x := self(s.op)
	if s.op.Name != "constant_pad_nd" || x == program.None || len(pad) < 2 {
		return
	}
	for k := 0; k+1 < len(pad); k += 2 {
		sides, axis := [2]int{pad[k], pad[k+1]}, len(s.shape(x))-1-k/2
		sum := sides[0] + sides[1]
		others := [][2]int{{sum, 0}, {0, sum}, {sides[1], sides[0]}, {sum / 2, sum - sum/2}}
		for i, other := range others {
			if other != sides && slices.Index(others, other) == i {
				to := slices.Clone(pad)
				to[k], to[k+1] = other[0], other[1]
				s.given("scalar", 2, text("padding of axis %d: %v → %v", axis, sides, other), "pad", to)
			}
		}
		for _, edge := range edges[1:] {
			most := slices.Max(pad)
			if most <= 0 || most >= s.shape(x)[axis] || slices.ContainsFunc(slices.Concat(pad[:k], pad[k+2:]), func(n int) bool { return n != 0 }) {
				continue
			}
			s.add("sibling", 2, text("padding of axis %d: %s", axis, edge.name), func(w *writer, o program.Op) {
				w.pass(o, w.beyond(self(o), axis, sides, edge.at))
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
	{"reflected", func(i, n int) int { return min(max(i, -i), 2*(n-1)-max(i, -i)) }},
	{"from the other side", func(i, n int) int { return (i + n) % n }},
}

// padded returns what a convolution takes before it was padded, by itself or by indices, and by how much on both sides of
// each axis; nothing where it was not.
func (s *site) padded(o program.Op) (x program.ID, pad []int) {
	own, _ := o.Args.Get("padding").([]int)
	shape := s.shape(tensorOf(o, "input"))
	x = s.origin(tensorOf(o, "input"), "index constant_pad_nd")
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
