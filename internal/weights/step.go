package weights

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/tensor"
)

// layout lays a weight out in another way; an error if its shape does not fit.
type layout = func(t *tensor.Tensor) (*tensor.Tensor, error)

// move is another order of a weight's elements: lay makes the candidate's of the reference's, undo the other way round.
type move struct {
	name      string // "" for the weight as it is
	lay, undo layout
}

// calc is what may have been calculated of each element.
type calc struct {
	name   string
	number func(i int, v float64) float64 // element i
	ulps   float64                        // units of rounding that it may be off; 0 for the usual
	size   float64                        // of the largest number that it adds, whose units count as well
	factor float64                        // that each element is multiplied by; 0 for none
	width  float64                        // of a head, of which the factor is a power; 0 for another
}

var asIs = move{"", same, same}

func same(t *tensor.Tensor) (*tensor.Tensor, error) { return t, nil }

// movesOf lists the orders in which a weight can have the candidate's shape, the plainest first.
func movesOf(w *weight, cand *tensor.Tensor, configs ...checkpoint.Config) (out []move) {
	ref, rows := w.t, rowCount(w)
	if merges(ref.Shape(), cand.Shape()) || merges(cand.Shape(), ref.Shape()) {
		out = append(out, asIs)
	}
	if len(out) > 0 && (w.role == "attn.q" || w.role == "attn.k") {
		for _, n := range headCounts(w.role, rows, configs...) {
			into, back := interleave(n, 2, rows/n/2), interleave(n, rows/n/2, 2)
			out = append(out, move{fmt.Sprintf("interleaved in %d heads", n), into, back},
				move{fmt.Sprintf("interleaving of %d heads undone", n), back, into})
		}
	}
	if w.role == "attn.qkv" && slices.Equal(ref.Shape(), cand.Shape()) && ref.DType() != tensor.F64 && ref.DType().IsFloat() {
		for _, parts := range qkvRows(rows, configs...) {
			for _, g := range headGroups(parts, configs...) {
				into, back := regroup(parts, g)
				out = append(out, move{"regrouped per head", into, back}, move{"regrouped per head", back, into})
			}
		}
	}
	return append(out, turns(ref, cand)...)
}

// turns lists the orders of axes in which the reference has the candidate's shape: the last two
// exchanged, or those of a convolution, whose inputs come last in some engines.
func turns(ref, cand *tensor.Tensor) []move {
	turn := func(order ...int) layout {
		return func(t *tensor.Tensor) (*tensor.Tensor, error) { return t.Transpose(order...) }
	}
	out := []move{{"transposed", turn(), turn()}}
	if n := len(ref.Shape()); n >= 4 {
		last, first := []int{0}, []int{0, n - 1}
		for i := 2; i < n; i++ {
			last, first = append(last, i), append(first, i-1)
		}
		into, back := turn(append(last, 1)...), turn(first...)
		out = append(out, move{"channels last", into, back}, move{"channels first", back, into})
	}
	return slices.DeleteFunc(out, func(m move) bool {
		x, err := m.lay(ref)
		return err != nil || !slices.Equal(squeezed(x.Shape()), squeezed(cand.Shape()))
	})
}

// interleave exchanges the two axes that the rows of each head have, a by b: the halves of each
// head, as Hugging Face has them, are pairs for llama.cpp, with row s·d/2+j as row 2j+s.
func interleave(heads, a, b int) layout {
	return func(t *tensor.Tensor) (*tensor.Tensor, error) {
		x, err := t.Reshape(heads, a, b, t.Len()/max(heads*a*b, 1))
		if err != nil {
			return nil, err
		}
		return x.Transpose(0, 2, 1, 3)
	}
}

// calcsOf lists what may be calculated of the elements of a weight.
func calcsOf(w *weight, configs ...checkpoint.Config) (out []*calc) {
	add := func(name string, ulps float64, f func(v float64) float64) {
		out = append(out, &calc{name: name, ulps: ulps, number: func(_ int, v float64) float64 { return f(v) }})
	}
	scale := func(name string, by, width float64) {
		if by > 0 && by != 1 && !slices.ContainsFunc(out, func(c *calc) bool { return c.factor == by }) {
			times := func(_ int, v float64) float64 { return v * by }
			out = append(out, &calc{name: "scale " + name, number: times, factor: by, width: width})
		}
	}
	if len(squeezed(w.t.Shape())) == 1 && w.isNorm() {
		add("norm + 1", 0, func(v float64) float64 { return v + 1 })
		add("norm − 1", 0, func(v float64) float64 { return v - 1 })
	}
	switch w.role {
	case "attn.q", "attn.k", "attn.qnorm", "attn.knorm", "attn.qkv":
		powers := []string{"^-1/2", "^1/2", "^-1/4", "^1/4"}
		for _, d := range headSizes(rowCount(w), configs...) {
			for i, e := range []float64{-0.5, 0.5, -0.25, 0.25} {
				name, v := fmt.Sprint(d, powers[i]), math.Pow(float64(d), e)
				scale(name, v, float64(d))
				scale(name+"·log₂e", v*math.Log2E, float64(d))
			}
		}
		scale("log₂e", math.Log2E, 0)
		scale("ln 2", math.Ln2, 0)
	case "embed", "lmhead":
		for _, c := range configs {
			h := float64(c.Hidden())
			scale(fmt.Sprintf("√%g", h), math.Sqrt(h), 0)
			scale(fmt.Sprintf("1/√%g", h), 1/math.Sqrt(max(h, 1)), 0)
		}
	}
	if strings.HasSuffix(w.role, "alog") || strings.HasSuffix(w.role, "ssma") {
		add("−exp", expUlps, func(v float64) float64 { return -math.Exp(v) }) // of a state space model's decay
		add("log −", expUlps, func(v float64) float64 { return math.Log(-v) })
	}
	return out
}

// usualSizes are those of heads, the most usual first.
var usualSizes = []int{128, 64, 96, 80, 256, 32, 16, 8}

// headSizes are the widths that heads may have: as configs say, else all usual ones that divide the rows.
func headSizes(rows int, configs ...checkpoint.Config) (out []int) {
	for _, c := range configs {
		if d, ok := c.Int("head_dim"); ok {
			out = append(out, d)
		} else if n := c.Heads(); n > 0 {
			out = append(out, c.Hidden()/n)
		}
	}
	if len(out) == 0 {
		out = slices.DeleteFunc(slices.Clone(usualSizes), func(d int) bool { return rows%d != 0 })
	}
	return out
}

// headCounts are the numbers of heads that rows may be divided into.
func headCounts(role string, rows int, configs ...checkpoint.Config) (out []int) {
	for _, c := range configs {
		n := c.Heads()
		if role == "attn.k" {
			n = c.KVHeads()
		}
		if n > 0 && rows%n == 0 && rows/n%2 == 0 {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		for _, size := range headSizes(rows) {
			out = append(out, rows/size)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// merges reports whether joining neighbouring axes of a gives b. Axes of one element do not count.
func merges(a, b []int) bool {
	a = squeezed(a)
	for _, d := range squeezed(b) {
		have := 1
		for have < d && len(a) > 0 {
			have, a = have*a[0], a[1:]
		}
		if have != d {
			return false
		}
	}
	return len(a) == 0
}

// rowCount is the number of outputs of a weight, also of parts of one whose rows have two axes.
func rowCount(w *weight) int {
	if w.param == "bias" || len(squeezed(w.t.Shape())) < 2 {
		return w.t.Len()
	}
	return w.t.Len() / max(w.t.RowLen(), 1)
}

// squeezed leaves out axes of one element.
func squeezed(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(d int) bool { return d == 1 })
}

func firstAxis(t *tensor.Tensor) int {
	if len(t.Shape()) == 0 {
		return 1
	}
	return t.Shape()[0]
}
