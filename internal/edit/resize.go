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
	for i, v := range s.Values {
		id := program.ID(i)
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
		s.instead("table", 1, "resized "+way.name, s.takers(all...), all, func(w *writer, x program.ID) program.ID {
			shape := s.shape(x)
			return w.resizing(way, shape[0], shape[1])
		}).ID = id
	}
}

// isResize reports whether each column of a matrix is 1 in all, and one of them is made of several numbers.
func (s *site) isResize(id program.ID) bool {
	x, columns := s.floats(id), s.shape(id)[1]
	several := false
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
	o := s.first()
	v, ok := s.result(o)
	if o.Name != "upsample_nearest2d" || !ok || len(v.Shape) != 4 || self(o) == program.None || len(s.shape(self(o))) != 4 {
		return
	}
	for _, way := range ways {
		s.add("sibling", 1, o.Name+" → "+way.name, func(w *writer, o program.Op) {
			x := self(o)
			from, to := w.shape(x), s.shape(o.Out[0])
			n := from[0] * from[1]
			x = w.view(x, n, from[2], from[3])
			for _, d := range []int{3, 2} { // the last axis, which comes first then
				m := w.expand(w.resizing(way, from[d], to[d]), []int{n, from[d], to[d]})
				x = w.call("bmm", x, []int{n, w.shape(x)[1], to[d]}, "self", x, "mat2", m)
				x = w.transpose(x, 1, 2)
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

// matrix is that of [before, after] numbers; what lies outside is what stands at the edge.
func (w way) matrix(before, after int) []float64 {
	x := make([]float64, before*after)
	for i := range after {
		first, weights := w.parts(w.from(float64(i), float64(before), float64(after)))
		for k, v := range weights {
			x[min(max(first+k, 0), before-1)*after+i] += v
		}
	}
	return x
}

// resizing adds that matrix to the patch.
func (w *writer) resizing(by way, before, after int) program.ID {
	return w.numbers(tensor.F32, []int{before, after}, func() []float64 { return by.matrix(before, after) })
}
