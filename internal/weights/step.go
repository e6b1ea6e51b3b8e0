package weights

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/tensor"
)

// step is what may have been done to a weight of the reference.
type step struct {
	names []string // none for the weight as it is
	// lay returns the reference as the candidate lays it out; false if the shapes do not fit.
	lay func(ref *tensor.Tensor) (*tensor.Tensor, bool)
	// undo is lay the other way round; nil if that is not known.
	undo func(cand *tensor.Tensor) (*tensor.Tensor, bool)
	// number calculates element i; nil if it is only moved.
	number func(i int, v float64) float64
	base   int      // of a calculated one: the index of the step that only moves
	ulps   float64  // units of rounding that it may be off; 0 for the usual
	size   float64  // of the largest number that it adds, whose units count as well
	factor constant // that each element is multiplied by; none if its value is 0
}

func (s *step) name() string { return strings.Join(s.names, ", ") }

// plain reports whether elements are neither moved nor calculated.
func (s *step) plain() bool { return s.names == nil }

func asIs(ref *tensor.Tensor) (*tensor.Tensor, bool) { return ref, true }

// stepsOf lists the steps by which a weight can have the candidate's shape, the fewest first.
func stepsOf(w *weight, cand *tensor.Tensor, configs ...checkpoint.Config) []step {
	role, param, ref := w.role, w.param, w.t
	var lays []step
	if merges(ref.Shape(), cand.Shape()) || merges(cand.Shape(), ref.Shape()) {
		lays = append(lays, step{lay: asIs, undo: asIs})
	}
	rows := rowCount(w)
	if len(lays) > 0 && lays[0].names == nil && (role == "attn.q" || role == "attn.k") {
		for _, n := range headCounts(role, rows, configs...) {
			for _, into := range []bool{true, false} {
				name := fmt.Sprintf("interleaved in %d heads", n)
				if !into {
					name = fmt.Sprintf("interleaving of %d heads undone", n)
				}
				lays = append(lays, step{names: []string{name}, lay: interleave(n, rows, into), undo: interleave(n, rows, !into)})
			}
		}
	}
	if role == "attn.qkv" && slices.Equal(ref.Shape(), cand.Shape()) && ref.DType() != tensor.F64 && ref.DType().IsFloat() {
		for _, parts := range qkvRows(rows, configs...) {
			for _, g := range headGroups(parts, configs...) {
				into, back := grouped(parts, g)
				lays = append(lays, regrouped(into, back), regrouped(back, into))
			}
		}
	}
	lays = append(lays, turns(ref, cand)...)
	out := slices.Clone(lays)
	for k, l := range lays {
		add := func(name string, f func(v float64) float64) {
			out = append(out, step{names: append(slices.Clone(l.names), name), lay: l.lay, undo: l.undo, base: k,
				number: func(_ int, v float64) float64 { return f(v) }})
		}
		if len(squeezed(ref.Shape())) == 1 && strings.Contains(role, "norm") && param == "weight" {
			add("norm + 1", func(v float64) float64 { return v + 1 })
			add("norm − 1", func(v float64) float64 { return v - 1 })
		}
		for _, k := range scalesOf(role, rows, configs...) {
			add("scale "+k.name, func(v float64) float64 { return v * k.value })
			out[len(out)-1].factor = k
		}
		if strings.HasSuffix(role, "alog") || strings.HasSuffix(role, "ssma") {
			add("−exp", func(v float64) float64 { return -math.Exp(v) }) // of a state space model's decay
			add("log −", func(v float64) float64 { return math.Log(-v) })
			for i := len(out) - 2; i < len(out); i++ {
				out[i].ulps = expUlps
			}
		}
	}
	return out
}

// turns lists the orders of axes in which the reference has the candidate's shape: the last two
// exchanged, or those of a convolution, whose inputs come last in some engines.
func turns(ref, cand *tensor.Tensor) (out []step) {
	add := func(name string, order ...int) {
		x, err := ref.Transpose(order...)
		if err != nil || !slices.Equal(squeezed(x.Shape()), squeezed(cand.Shape())) {
			return
		}
		s := step{names: []string{name}, lay: func(t *tensor.Tensor) (*tensor.Tensor, bool) {
			x, err := t.Transpose(order...)
			return x, err == nil
		}}
		if order == nil {
			s.undo = s.lay
		}
		out = append(out, s)
	}
	n := len(ref.Shape())
	add("transposed")
	if n >= 4 {
		last, first := []int{0}, []int{0, n - 1}
		for i := 2; i < n; i++ {
			last, first = append(last, i), append(first, i-1)
		}
		add("channels last", append(last, 1)...)
		add("channels first", first...)
	}
	return out
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

// interleave returns the step between the halves of each head, as Hugging Face has them, and their
// pairs, as llama.cpp has them: row 2j+s of a head is row s·d/2+j.
func interleave(heads, rows int, into bool) func(*tensor.Tensor) (*tensor.Tensor, bool) {
	return func(t *tensor.Tensor) (*tensor.Tensor, bool) {
		split := []int{heads, 2, rows / heads / 2, -1}
		if !into {
			split[1], split[2] = split[2], 2
		}
		split[3] = t.Len() / max(rows, 1)
		x, err := t.Reshape(split...)
		if err == nil {
			x, err = x.Transpose(0, 2, 1, 3)
		}
		return x, err == nil
	}
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
		for _, size := range []int{128, 64, 96, 80, 256, 32, 16, 8} {
			if rows%size == 0 {
				out = append(out, rows/size)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

type constant struct {
	name  string
	value float64
	width float64 // of a head, of which it is a power; 0 for another
}

// scalesOf are the scales that are folded into weights: those of attention into q, k and norms of
// theirs, that of the embedding into it.
func scalesOf(role string, rows int, configs ...checkpoint.Config) (out []constant) {
	width := 0.0
	add := func(name string, v float64) {
		if v > 0 && v != 1 && !slices.ContainsFunc(out, func(c constant) bool { return c.value == v }) {
			out = append(out, constant{name, v, width})
		}
	}
	switch role {
	case "attn.q", "attn.k", "attn.qnorm", "attn.knorm", "attn.qkv":
		var sizes []int
		for _, c := range configs {
			if d, ok := c.Int("head_dim"); ok {
				sizes = append(sizes, d)
			} else if n := c.Heads(); n > 0 {
				sizes = append(sizes, c.Hidden()/n)
			}
		}
		if len(sizes) == 0 {
			for _, d := range []int{128, 64, 96, 80, 256, 32, 16, 8} {
				if rows%d == 0 {
					sizes = append(sizes, d)
				}
			}
		}
		for _, d := range sizes {
			width = float64(d)
			for _, p := range []struct {
				text string
				e    float64
			}{{"^-1/2", -0.5}, {"^1/2", 0.5}, {"^-1/4", -0.25}, {"^1/4", 0.25}} {
				v := math.Pow(float64(d), p.e)
				add(fmt.Sprintf("%d%s", d, p.text), v)
				add(fmt.Sprintf("%d%s·log₂e", d, p.text), v*math.Log2E)
			}
		}
		width = 0
		add("log₂e", math.Log2E)
		add("ln 2", math.Ln2)
	case "embed", "lmhead":
		for _, c := range configs {
			if h := float64(c.Hidden()); h > 0 {
				add(fmt.Sprintf("√%g", h), math.Sqrt(h))
				add(fmt.Sprintf("1/√%g", h), 1/math.Sqrt(h))
			}
		}
	}
	return out
}
