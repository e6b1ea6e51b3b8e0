package weights

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// metrics are what is known of a weight after a step.
type metrics struct {
	N          int            `json:"elements"`
	Mismatches int            `json:"mismatches"`      // elements that are not equal after the step
	RelL2      float64        `json:"rel_l2"`          // ‖c − r‖ / ‖r‖
	First      []int          `json:"first,omitempty"` // index of the first mismatch
	seen       compare.Result // of the elements that were looked at
}

// sine is that of the angle between the two.
func (f *metrics) sine() float64 {
	c := f.seen.CosineDistance
	return math.Sqrt(max(c*(2-c), 0))
}

// scale is how many times the reference the candidate is, along it.
func (f *metrics) scale() float64 { return f.seen.Cosine() * f.seen.NormActual / f.seen.NormGolden }

// rowScales returns the least and the largest number that the rows of a matrix are times the
// reference's, as Falcon-H1's multipliers are folded in; false where one is another row.
func (t *trial) rowScales(eps float64) (least, most float64, ok bool) {
	shape := t.actual.Shape()
	if len(shape) < 2 || t.actual.Len() > mostExplained || t.actual.Len() <= shape[0] {
		return 0, 0, false
	}
	width := t.actual.Len() / shape[0]
	x, y := make([]float64, width), make([]float64, width)
	least, most = math.Inf(1), math.Inf(-1)
	for row := range shape[0] {
		t.golden.Float64s(x, row*width)
		t.actual.Float64s(y, row*width)
		s := floats.Dot(x, y) / floats.Dot(x, x)
		if floats.AddScaled(y, -s, x); !(s > 0) || floats.Norm(y, 2) > eps*s*floats.Norm(x, 2) {
			return 0, 0, false
		}
		least, most = min(least, s), max(most, s)
	}
	return least, most, true
}

// lost reports whether the candidate has nothing but zeros for what is something else.
func (f *metrics) lost() bool {
	r := &f.seen
	return r.NormActual == 0 && r.NaNActual+r.InfActual == 0 && (r.NormGolden != 0 || r.NaNGolden+r.InfGolden != 0)
}

// trial is a weight of the reference after a step, beside the candidate's.
type trial struct {
	move
	*calc                         // nil if elements are only moved, and at most rounded
	steps          []string       // the names of both; none for the weight as it is
	base           *trial         // of a calculated step: the same without; nil for none
	ref, cand      *tensor.Tensor // with the same order of elements; a packed one as it is stored
	golden, actual *tensor.Tensor // the first after all that the step does; both in the type with fewer digits
	tol            compare.Tolerance
	sampled, full  *metrics // nil where it was not looked
}

// trialsOf are the steps by which a weight can be the candidate's, the fewest first, and those by
// some more calculations of the weight as it lies.
func trialsOf(ref *weight, cand *tensor.Tensor, configs []checkpoint.Config, more ...*calc) (out []*trial) {
	add := func(m move, c *calc, base *trial) {
		if t := newTrial(ref.t, cand, m, c); t != nil {
			t.base = base
			out = append(out, t)
		}
	}
	for _, m := range movesOf(ref, cand, configs...) {
		add(m, nil, nil)
	}
	plainest, calcs := append(slices.Clip(out), nil)[0], calcsOf(ref, configs...)
	for _, b := range out {
		for _, c := range calcs {
			add(b.move, c, b)
		}
	}
	for _, c := range more {
		add(asIs, c, plainest)
	}
	return out
}

// newTrial returns nil if the step does not fit.
func newTrial(ref, cand *tensor.Tensor, m move, c *calc) *trial {
	t := &trial{move: m, calc: c, ref: ref, cand: cand, tol: compare.Tolerance{EqualNaN: true}}
	var err error
	if ref.Packing() != "" && cand.Packing() == "" {
		t.cand, err = m.undo(cand)
	} else {
		t.ref, err = m.lay(ref)
	}
	if err != nil || t.ref.Len() != t.cand.Len() {
		return nil
	}
	t.golden, t.actual = shaped(t.ref, t.cand.Shape()), t.cand
	coarse := coarser(ref.DType(), cand.DType())
	if m.name != "" {
		t.steps = append(t.steps, m.name)
	}
	if c != nil {
		t.steps = append(t.steps, c.name)
		t.golden = checkpoint.Map(t.golden, tensor.F32, t.golden.Shape(), func(values []float32, from int) {
			for i, v := range values {
				values[i] = float32(c.number(from+i, float64(v)))
			}
		})
		units := cmp.Or(c.ulps, ulps)
		t.tol.Rtol = units * max(coarse.Epsilon(), tensor.F32.Epsilon())
		t.tol.Atol = t.tol.Rtol * c.size
		if n, ok := narrow(coarse); ok {
			t.tol.Atol += units * math.Ldexp(1, n.Least-n.Bits+1) // the distance of numbers that are nearly 0
		}
	}
	if ref.DType() != cand.DType() || c != nil {
		t.golden, t.actual = cast(t.golden, coarse), cast(t.actual, coarse)
	}
	return t
}

// name is that of the step; "" for the weight as it is.
func (t *trial) name() string { return strings.Join(t.steps, ", ") }

// said is the name of the step in a sentence.
func (t *trial) said() string { return cmp.Or(t.name(), "equal") }

// shaped returns a tensor in a shape, without a copy of its elements where it has floats.
func shaped(t *tensor.Tensor, shape []int) *tensor.Tensor {
	if slices.Equal(t.Shape(), shape) {
		return t
	}
	if !t.Contiguous() && t.DType().IsFloat() && t.DType() != tensor.F64 {
		return checkpoint.Map(t, tensor.F32, shape, func([]float32, int) {})
	}
	x, err := t.Reshape(shape...)
	if err != nil {
		panic(err) // it has as many elements
	}
	return x
}

// coarser returns the type with fewer digits, the second if both have as many.
func coarser(a, b tensor.DType) tensor.DType {
	if a.IsFloat() && b.IsFloat() && a.Epsilon() > b.Epsilon() {
		return a
	}
	return b
}

// cast returns a tensor rounded to a type, to nearest. What would become infinite stays as it is: a
// weight that overflows is damaged.
func cast(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	round := rounding(d)
	if round == nil || !t.DType().IsFloat() || t.DType() == d {
		return t
	}
	return checkpoint.Map(t, tensor.F32, t.Shape(), func(values []float32, _ int) { round(values) })
}

// narrow is the type of fewer digits than float32 that a type is.
func narrow(d tensor.DType) (n vec.Narrow, ok bool) {
	is := func(n vec.Narrow) bool { return n.Name == d.String() || n.Name+"fn" == d.String() }
	if i := slices.IndexFunc(vec.Narrows, is); i >= 0 {
		return vec.Narrows[i], true
	}
	return n, false
}

// rounding rounds as casts to a type do; nil if there is nothing to round.
func rounding(d tensor.DType) func(values []float32) {
	n, ok := narrow(d)
	round := func(v float32) float32 { return float32(n.Round(float64(v))) }
	switch {
	case d == tensor.F32:
		return func([]float32) {} // they are read so
	case !ok:
		return nil
	case d == tensor.BF16:
		round = smallfloat.RoundBF16
	case d == tensor.F16:
		round = smallfloat.RoundF16
	}
	return func(values []float32) {
		for i, v := range values {
			if w := round(v); w-w == 0 {
				values[i] = w
			}
		}
	}
}

// sample looks at some parts.
func (t *trial) sample() *metrics {
	n := t.actual.Len()
	switch {
	case t.sampled != nil:
	case n <= samples*sampleLen:
		t.sampled = t.all()
	default:
		var sides [2][]float64
		for k, x := range []*tensor.Tensor{t.golden, t.actual} {
			sides[k] = make([]float64, samples*sampleLen)
			for i := range samples {
				x.Float64s(sides[k][i*sampleLen:][:sampleLen], i*(n-sampleLen)/(samples-1))
			}
		}
		f := metricsOf(vector(sides[0]), vector(sides[1]), t.tol)
		f.N, f.First = n, nil
		t.sampled = t.notFaint(f, (*trial).sample)
	}
	return t.sampled
}

// all looks at everything.
func (t *trial) all() *metrics {
	if t.full != nil {
		return t.full
	}
	if t.calc == nil && t.golden.DType() == t.actual.DType() {
		a, okA := t.golden.Bytes()
		b, okB := t.actual.Bytes()
		if okA && okB && bytes.Equal(a, b) {
			t.full = &metrics{N: t.actual.Len()}
			return t.full
		}
	}
	t.full = t.notFaint(metricsOf(t.golden, t.actual, t.tol), (*trial).all)
	return t.full
}

// notFaint makes all elements of a calculated step mismatches if it moves less than what its
// rounding may: it is not seen then, but where it makes all of them equal.
func (t *trial) notFaint(f *metrics, look func(*trial) *metrics) *metrics {
	if t.base != nil && f.Mismatches == 0 && f.seen.NormDiff > 0 && f.seen.NormDiff*leastMove > look(t.base).seen.NormDiff {
		f.Mismatches = f.N
	}
	return f
}

// holds reports whether the step holds for all elements; false if it was not looked at.
func (t *trial) holds() bool {
	return t.sampled != nil && t.sampled.Mismatches == 0 && t.all().Mismatches == 0
}

// vector is a tensor of numbers.
func vector(v []float64) *tensor.Tensor {
	t, err := tensor.Of(v, len(v))
	if err != nil {
		panic(err) // it has this shape
	}
	return t
}

// metricsOf compares two tensors. A file that cannot be read any more ends the call of [vec.Each].
func metricsOf(golden, actual *tensor.Tensor, tol compare.Tolerance) *metrics {
	at := actual.Index
	for _, x := range []**tensor.Tensor{&golden, &actual} {
		if _, plain := (*x).Bytes(); !plain && (*x).Len() <= 4*samples*sampleLen { // it is read several times
			*x = (*x).Copy()
		}
	}
	r, err := compare.Tensors(golden, actual, tol)
	var fault *compare.FaultError
	switch {
	case errors.As(err, &fault):
		panic(&mapfile.Fault{File: golden.Place().File, Err: fault.Err})
	case err != nil:
		panic(err) // both have one shape
	}
	f := &metrics{N: r.N, Mismatches: r.Mismatches, RelL2: math.Min(r.RelL2, math.MaxFloat64), seen: r} // JSON has no infinity
	if r.FirstMismatch >= 0 {
		f.First = at(r.FirstMismatch)
	}
	return f
}
