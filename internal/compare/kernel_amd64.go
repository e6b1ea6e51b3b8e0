package compare

import (
	"math"
	"slices"
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/goparity/goparity/tensor"
)

// call has the arguments and the answer of a kernel in assembly. internal/kernelgen knows the
// offsets.
type call struct {
	golden, actual unsafe.Pointer
	rows, cols     int
	out            *rowSums
	_              [3]uint64
	atol, rtol     [4]float64
	low            struct{ atol, rtol [8]float32 } // the tolerance, slightly too low
	known          [8]float32                      // the largest ratio so far
	aa, ab         [4]float64                      // Σa², Σa·g; ab of careful alone
	most, ratio    lanes                           // bits of the largest |d|, and |d|/max(|g|, relFloor) of careful
	count, finite  lanes                           // of |d| above the tolerance; of the pairs of careful
	doubt          lanes                           // of quick: the sign says that a |d| is above known times |g|
	wide           [3][4]float64                   // sums in float32, widened
}

var _ [unsafe.Offsetof(call{}.wide)]struct{} = [448]struct{}{}

// lanes are 8 numbers of 32 bits, or 4 of 64.
type lanes [8]uint32

// sum adds up counters, which are below 2^32.
func (l *lanes) sum() (n int) {
	for _, x := range l {
		n += int(x)
	}
	return n
}

// max returns the largest number ≥ 0 of a type. Their bits order like the numbers.
func (l *lanes) max(d tensor.DType) float64 {
	if d == tensor.F64 {
		return math.Float64frombits(slices.Max((*[4]uint64)(unsafe.Pointer(l))[:]))
	}
	return float64(math.Float32frombits(slices.Max(l[:])))
}

// assembly says that kernels in assembly may be used.
var assembly = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C

// assembled is a kernel in assembly for two sides of one type, in rows of step elements or more.
type assembled struct {
	call func(*byte)
	step int
}

// quick has the kernels for values that are all finite, careful those for any values.
var (
	quick   = map[tensor.DType]assembled{tensor.F32: {quickF32, 8}, tensor.BF16: {quickBF16, 16}, tensor.F16: {quickF16, 16}}
	careful = map[tensor.DType]assembled{tensor.F32: {carefulF32, 8}, tensor.F64: {carefulF64, 4}}
)

// fastest returns the fastest kernel for a pair of types: quick, and careful where quick is not sure.
func fastest(p *pass) kernel {
	wide := tensor.F64 // the type that holds the numbers of both sides
	if p.narrow {
		wide = tensor.F32
	}
	exactly, d := careful[wide], p.golden.DType()
	first, found := quick[d]
	if !found || p.actual.DType() != d {
		first, d = quick[wide], wide
	}
	atol, rtol, ok := below32(p.tol)
	if !assembly || p.rowLen < exactly.step {
		return loop
	}
	return func(p *pass, s *scratch, b span, rows []rowSums, known float64) tally {
		if b.cols < exactly.step {
			return loop(p, s, b, rows, known)
		}
		c := &s.call
		fill(c.atol[:], p.tol.Atol)
		fill(c.rtol[:], p.tol.Rtol)
		fill(c.low.atol[:], atol)
		fill(c.low.rtol[:], rtol)
		fill(c.known[:], float32(known))
		// The first block is not added in float32, so that small tensors have all digits.
		if !ok || b.start == 0 || first.call == nil || b.cols < first.step || s.notFinite {
			return exactly.any(p, s, b, rows, wide)
		}
		f, sums, sure := first.finite(s, b, rows, d)
		switch {
		case !sums:
			return exactly.any(p, s, b, rows, wide)
		case !sure || f.mismatches > 0 && p.tol.Atol+p.tol.Rtol > 0:
			own := exactly.any(p, s, b, grow(&s.rows2, b.rows), wide)
			f.abs, f.rel, f.mismatches = own.abs, own.rel, own.mismatches
		}
		return f
	}
}

// below32 returns a tolerance in float32 that is slightly lower, so that roundings of less than
// 2^−22 of the numbers do not matter. What the least |g| of a kernel adds is subtracted from its atol;
// then no |g| is so small that its rounding matters.
func below32(t Tolerance) (atol, rtol float32, ok bool) {
	const margin = 0x1p-20
	for _, v := range []float64{t.Atol, t.Rtol} {
		if v != 0 && !(v > 0x1p-60 && v < 0x1p60) {
			return 0, 0, false
		}
	}
	rtol = float32(t.Rtol * (1 - margin))
	low := t.Atol*(1-margin) - float64(rtol)*float64(float32(relFloor))
	if atol = float32(low); float64(atol) > low {
		atol = math.Nextafter32(atol, float32(math.Inf(-1)))
	}
	return atol, rtol, true
}

// run calls the kernel, and adds up its lanes.
func (k assembled) run(s *scratch, b span, rows []rowSums, as tensor.DType) (f tally) {
	c := &s.call
	c.golden, c.actual = s.data(0, b, as), s.data(1, b, as)
	c.rows, c.cols, c.out = b.rows, b.cols, &rows[0]
	k.call((*byte)(unsafe.Pointer(c)))
	for _, r := range rows {
		f.dd += r.dd
		f.gg += r.gg
	}
	f.aa, f.mismatches = total(&c.aa), c.count.sum()
	return f
}

// finite is for kernels of quick. sums says that the sums are right, because all values are finite
// and nothing was lost to the small range of float32; sure, that no ratio is above the known one.
func (k assembled) finite(s *scratch, b span, rows []rowSums, as tensor.DType) (f tally, sums, sure bool) {
	f = k.run(s, b, rows, as)
	f.finite, f.abs, f.rel = b.len(), s.call.most.max(tensor.F32), -1
	sure = !slices.ContainsFunc(s.call.doubt[:], func(x uint32) bool { return x>>31 != 0 })
	sums = finite(f.dd) && finite(f.aa)
	if as != tensor.F32 {
		sums = squarable32(f.aa)
		for _, r := range rows {
			sums = sums && squarable32(r.gg) && (squarable32(r.dd) || r.dd == 0 && f.abs == 0)
		}
	}
	// Σa·g cancels where one side is much smaller than the other.
	f.ab = (f.gg + f.aa - f.dd) / 2
	apart := f.aa < f.gg/64 || f.gg < f.aa/64
	return f, sums && (!apart || f.ab == 0), sure
}

// any is for kernels of careful. Pairs that are not finite are counted by themselves.
func (k assembled) any(p *pass, s *scratch, b span, rows []rowSums, as tensor.DType) tally {
	f := k.run(s, b, rows, as)
	c := &s.call
	f.ab, f.finite, f.abs, f.rel = total(&c.ab), c.finite.sum(), -1, -1
	if f.finite > 0 {
		f.abs, f.rel = c.most.max(as), c.ratio.max(as)
	}
	if s.notFinite = f.finite < b.len(); s.notFinite {
		s.read(p.golden, p.actual, b.start, b.len())
		for i, g := range s.g {
			if !finite(g) || !finite(s.a[i]) {
				f.notFinite(g, s.a[i], p.tol)
			}
		}
	}
	return f
}

// squarable32 reports whether a sum of squares in float32 is right for x: between 2^-90 and 2^127. The bits
// of numbers ≥ 0 order like the numbers.
func squarable32(x float64) bool {
	return math.Float64bits(x)-(1023-90)<<52 <= (127+90)<<52
}

// data returns the elements of a block in a type: where they are stored, or in a buffer.
func (s *scratch) data(side int, b span, as tensor.DType) unsafe.Pointer {
	t, start := s.sides[side], b.start-s.base[side]
	if t.DType() == as {
		data, _ := t.Bytes()
		return unsafe.Pointer(&data[start*as.Size()])
	}
	if as == tensor.F64 {
		v := grow([]*[]float64{&s.g, &s.a}[side], b.len())
		t.Float64s(v, start)
		return unsafe.Pointer(&v[0])
	}
	v := grow(&s.floats[side], b.len())
	t.Float32s(v, start)
	return unsafe.Pointer(&v[0])
}

func total(v *[4]float64) float64 { return (v[0] + v[2]) + (v[1] + v[3]) }

func fill[T any](v []T, x T) {
	for i := range v {
		v[i] = x
	}
}
