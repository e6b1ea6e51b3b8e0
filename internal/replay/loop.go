package replay

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/smallfloat"
	"github.com/goparity/goparity/tensor"
)

// chunk is how many elements an operator calculates at a time: three operands of float64 fit the
// first cache.
const chunk = 1024

// each makes the first result of operands that are broadcast to one another, some elements at a time.
func (c *Call) each(f func(out []float64, x [][]float64), operands ...*Array) *Array {
	return c.eachOf(f, c.promoted(operands, false))
}

// eachOf is each of operands as they are.
func (c *Call) eachOf(f func(out []float64, x [][]float64), operands []*Array) *Array {
	shape := together(operands...)
	out := c.of(0, shape)
	n, k := out.Len(), len(operands)
	width := min(n, chunk)
	if len(c.buffer) < (k+1)*width {
		c.buffer = make([]float64, (k+1)*width)
	}
	views, x := make([]*Array, k), make([][]float64, k)
	for j, a := range operands {
		views[j] = a.broadcast(shape)
	}
	for at := 0; at < n; at += chunk {
		m := min(chunk, n-at)
		for j, v := range views {
			x[j] = c.buffer[j*width:][:m]
			read(v, x[j], at)
		}
		y := c.buffer[k*width:][:m]
		f(y, x)
		out.write(y, at)
	}
	return out
}

// lines makes result i of the lines of an array along some axes, which come last in their order: f is
// given each, and writes n numbers.
func (c *Call) lines(i int, a *Array, dims []int, n int, f func(out, x []float64)) *Array {
	m := a.transpose(lastly(len(a.shape), dims...))
	rest := m.shape[:len(m.shape)-len(dims)]
	out := c.of(i, append(slices.Clone(rest), n))
	all, k := size(rest), size(m.shape[len(rest):])
	batch := max(1, min(all, chunk/max(k, n, 1)))
	x, y := make([]float64, batch*k), make([]float64, batch*n)
	for line := 0; line < all; line += batch {
		b := min(batch, all-line)
		read(m, x[:b*k], line*k)
		for j := range b {
			f(y[j*n:][:n], x[j*k:][:k])
		}
		out.write(y[:b*n], line*n)
	}
	return out
}

// lastly is an order of axes with some at the end.
func lastly(rank int, dims ...int) (order []int) {
	for d := range rank {
		if !slices.Contains(dims, d) {
			order = append(order, d)
		}
	}
	return append(order, dims...)
}

// inverse is the order that undoes another one.
func inverse(order []int) []int {
	out := make([]int, len(order))
	for i, k := range order {
		out[k] = i
	}
	return out
}

// along makes result i of the lines along axis dim, each of which gets n numbers, or as many as it had
// for −1.
func (c *Call) along(i int, a *Array, n int, f func(out, x []float64)) *Array {
	if len(a.shape) == 0 {
		return c.along(i, a.with(0), n, f).reshape(c.shape(i))
	}
	d := a.has(c.int("dim", -1))
	if n < 0 {
		n = a.shape[d]
	}
	return c.lines(i, a, []int{d}, n, f).transpose(inverse(lastly(len(a.shape), d)))
}

// common returns the type in which torch calculates with operands: the widest of the highest kind;
// scalars count where they are of a higher kind than all others, and numbers after them.
func common(operands []*Array) (out tensor.DType) {
	for level := range 3 {
		best := tensor.Invalid
		for _, a := range operands {
			if a.level() == level && rank(a.dtype) > rank(best) {
				best = a.dtype
			}
		}
		if rank(best)/kinds > rank(out)/kinds {
			if out = best; level == 2 && best.IsFloat() {
				out = tensor.F32 // torch's default type
			}
		}
	}
	return out
}

// level is 0 of a tensor with axes, 1 of a scalar, 2 of a number.
func (a *Array) level() int {
	switch {
	case a.number:
		return 2
	case len(a.shape) == 0:
		return 1
	}
	return 0
}

// rank orders types: by kind (bools, integers, floats), then by size. Of one float of 16 bits each,
// torch makes float32, in which both are exact, as in either.
func rank(d tensor.DType) int {
	if d == tensor.Invalid {
		return 0
	}
	return kinds*(1+int(d.Kind())) + 2*d.Size() + int(b2f(d == tensor.F16))
}

const kinds = 100

// promoted converts operands in place as torch does before it calculates, and returns them: next to 16 bits, numbers are
// rounded to 16 bits, but the last operand of products and quotients, which stays float32 (keep).
func (c *Call) promoted(operands []*Array, keep bool) []*Array {
	to := common(operands)
	if !to.IsFloat() || to == tensor.F64 || c.mode.Wide {
		return operands
	}
	for i, a := range operands {
		t := to
		if keep && i == len(operands)-1 && len(a.shape) == 0 {
			t = tensor.F32
		}
		switch {
		case a.isFloat() && a.d == nil && (t == tensor.F32 || a.dtype.Size() <= 2): // exact in t
		case a.number:
			operands[i] = &Array{dtype: t, d: []float64{rounded(a.d[0], t)}}
		default:
			operands[i] = a.cast(t, false)
		}
	}
	return operands
}

// arithmetic is what a number has most of: sums, differences, products and quotients. That of float32
// is calculated in float32, which gives the same as float64 that is rounded to it.
type arithmetic int

const (
	plus arithmetic = iota
	minus
	times
	over
)

// arithmetic makes the first result of two operands, the second times alpha. Integers have to stay
// where float64 is exact.
func (c *Call) arithmetic(op arithmetic, a, b *Array) *Array {
	if a.complex || b.complex {
		return c.complexly(func(x, y complex128) complex128 {
			return [...]complex128{x + y, x - y, x * y, x / y}[op]
		}, a, b)
	}
	p := c.promoted([]*Array{a, b}, op == times || op == over)
	a, b = p[0], p[1]
	alpha := c.scalar("alpha", 1)
	to := c.value(0).DType
	if alpha == 1 && !c.mode.Wide && to.IsFloat() && to != tensor.F64 {
		x, stepX := a.plain()
		y, stepY := b.plain()
		if x != nil && y != nil && (stepX+stepY > 0 || a.Len() == 1) && (stepX*stepY == 0 || slices.Equal(a.shape, b.shape)) {
			out := c.of(0, together(a, b))
			calculate(op, out.f, x, y, stepX, stepY)
			roundTo(out.f, to)
			return out
		}
	}
	return c.eachOf(func(out []float64, x [][]float64) {
		if alpha != 1 {
			for i := range x[1] {
				x[1][i] *= alpha
			}
		}
		calculate(op, out, x[0], x[1], 1, 1)
		if !to.IsFloat() {
			whole(out, x...)
		}
	}, p)
}

// plain returns the float32 of an array that lie in row-major order, with step 1, or that of a scalar,
// with step 0; nil for others.
func (a *Array) plain() (x []float32, step int) {
	switch {
	case len(a.shape) == 0:
		return []float32{float32(a.first())}, 0
	case a.f != nil && a.isPacked() && a.Len() > 0:
		return a.f[a.off:][:a.Len()], 1
	}
	return nil, 0
}

// calculate loops over packed operands, and over the one number of those with step 0.
func calculate[T floating](op arithmetic, out, x, y []T, stepX, stepY int) {
	switch op {
	case plus:
		for i := range out {
			out[i] = x[i*stepX] + y[i*stepY]
		}
	case minus:
		for i := range out {
			out[i] = x[i*stepX] - y[i*stepY]
		}
	case times:
		for i := range out {
			out[i] = x[i*stepX] * y[i*stepY]
		}
	case over:
		for i := range out {
			out[i] = x[i*stepX] / y[i*stepY]
		}
	}
}

// whole fails on integers that float64 does not hold. Those made of such ones are left alone: they
// are what −∞ became, and nobody looks at them.
func whole(out []float64, of ...[]float64) {
	const most = 1 << 53
	for i, v := range out {
		if math.Abs(v) > most && !slices.ContainsFunc(of, func(x []float64) bool { return !(math.Abs(x[i]) <= most) }) {
			fail("integers beyond 2^53")
		}
	}
}

// rounded rounds a number to a type of floats.
func rounded(v float64, t tensor.DType) float64 {
	x := [1]float32{float32(v)}
	roundTo(x[:], t)
	return float64(x[0])
}

// Rounding is how each float result of a piece is rounded once more. Whole numbers (masks, positions,
// counts) are exact in every encoding, so that they are left alone, as are tensors of one element,
// infinities and what is beyond 1e30.
type Rounding int

// The ways to round.
const (
	Exact   Rounding = iota // as recorded
	Nearest                 // to nearest, ties to even
	Zero                    // toward zero
	Shake                   // × (1 + 2⁻²⁴·u), u in [−1, 1), the same at each run
)

// Mode says how a piece is run otherwise than it was recorded. The zero Mode runs it as recorded.
type Mode struct {
	Round    Rounding
	To       tensor.DType                 // for Nearest and Zero: BF16, F16
	Wide     bool                         // float64 throughout: no result is rounded to a narrower float
	Operands func(*Array, Operand) *Array // what products and tables have in place of an operand; nil for itself
	// Ties has sort and topk give equal numbers in the other order. torch keeps none, so that a result
	// which it changes has rows in an order that nobody knows.
	Ties bool
	// Choices has topk alone choose others of equal numbers.
	Choices bool
}

func (m *Mode) isZero() bool {
	return m.Round == Exact && !m.Wide && m.Operands == nil && !m.Ties && !m.Choices
}

// Operand says what an operand is that a product multiplies, or of which rows are looked up.
type Operand struct {
	Weight   bool // it is a weight of two axes or more, or numbers of one that were moved
	Weighted bool // it is multiplied with one, or is one
	Table    bool // its rows are looked up
	Sum      int  // the axis that the product sums over, or that a row of a table lies along
}

// vast is where numbers only deny, as masks do; it is no limit of a type that is in use.
const vast = 1e30

// round rounds a result in place. seed tells the operators of a program apart.
func (m *Mode) round(a *Array, seed uint64) {
	if a.Len() < 2 || !a.isFloat() || a.dtype == tensor.F64 {
		return
	}
	roundAll(m, a.d, seed)
	if roundAll(m, a.f, seed); a.f != nil && m.Round == Shake {
		roundTo(a.f, a.dtype)
	}
}

func roundAll[T floating](m *Mode, x []T, seed uint64) {
	if m.Round == Exact {
		return
	}
	for i, v := range x {
		w := float64(v)
		if math.Abs(w) < 1<<24 { // float32 has no fractions beyond
			if w == float64(int32(w)) {
				continue
			}
		} else if !(math.Abs(w) <= vast) || w == math.Trunc(w) {
			continue
		}
		switch {
		case m.Round == Shake:
			x[i] = T(w * (1 + 0x1p-24*noise(seed, uint64(i))))
		case m.Round == Nearest && m.To == tensor.F16:
			x[i] = T(smallfloat.RoundF16(float32(w)))
		case m.Round == Nearest:
			x[i] = T(smallfloat.RoundBF16(float32(w)))
		case m.To == tensor.F16:
			x[i] = T(zeroF16(float32(w)))
		default:
			x[i] = T(math.Float32frombits(math.Float32bits(float32(w)) &^ 0xffff))
		}
	}
}

// zeroF16 rounds to a binary16 toward zero.
func zeroF16(v float32) float32 {
	const least = 0x1p-14 // the smallest normal number; those below are multiples of 2⁻²⁴
	switch a := math.Abs(float64(v)); {
	case a < least:
		return float32(math.Trunc(float64(v)*0x1p24) * 0x1p-24)
	case a >= 65504:
		return float32(math.Copysign(65504, float64(v)))
	}
	return math.Float32frombits(math.Float32bits(v) &^ 0x1fff)
}

// noise returns a number in [−1, 1) by a hash (splitmix64) of a position.
func noise(seed, i uint64) float64 {
	z := (seed<<40 + i + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64(int64(z^z>>31)) * 0x1p-63
}

// roundTo rounds float32 to a narrower type, to nearest and ties to even.
func roundTo(x []float32, t tensor.DType) {
	switch t {
	case tensor.F32:
	case tensor.BF16:
		for i, v := range x {
			x[i] = smallfloat.RoundBF16(v)
		}
	case tensor.F16:
		for i, v := range x {
			x[i] = smallfloat.RoundF16(v)
		}
	case tensor.F8E4M3FN:
		for i, v := range x {
			x[i] = smallfloat.RoundE4M3FN(v)
		}
	default:
		fail("no rounding to %s", t)
	}
}
