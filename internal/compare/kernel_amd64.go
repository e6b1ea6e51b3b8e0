package compare

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/goparity/goparity/tensor"
)

// call has the arguments and the answer of a kernel in assembly, which takes its address. internal/kernelgen knows
// the offsets.
type call struct {
	golden, actual     unsafe.Pointer
	rows, cols         int
	out                *rowSums
	_                  [3]uint64
	atol, rtol         [4]float64
	lowAtol, lowRtol   [8]float32
	highAtol, highRtol [8]float32
	answer
	wide     [3][4]float64 // sums of quick
	nanEqual [8]uint32     // all bits, where NaN matches NaN
	known    [8]float32    // the largest ratio so far
	count2   vector        // of count: above the high tolerance
}

// answer has lanes of metrics. What a kernel does not fill is zero.
type answer struct {
	aa, ab               [4]float64 // Σa², Σa·g; ab of careful alone
	most, ratio          vector     // the largest |d| and |d|/max(|g|, 1e-10)
	count, doubt, finite vector     // count of quick is above the low tolerance
	odd                  [4]vector  // NaN and infinities of golden, and of actual
	bad                  vector     // pairs with one that do not match
}

var _ [unsafe.Offsetof(call{}.answer)]struct{} = [256]struct{}{}
var _ [unsafe.Offsetof(call{}.nanEqual)]struct{} = [736]struct{}{}

// vector has 4 lanes of 64 bits, or 8 of 32.
type vector [4]uint64

func (v *vector) lanes() *[8]uint32 { return (*[8]uint32)(unsafe.Pointer(v)) }

func (v *vector) sum64() int { return int(v[0] + v[1] + v[2] + v[3]) }

func (v *vector) sum32() (n int) {
	for _, x := range v.lanes() {
		n += int(x)
	}
	return n
}

// max returns the largest number of a type. The bits of numbers ≥ 0 order like the numbers.
func (v *vector) max(d tensor.DType) float64 {
	if d == tensor.F64 {
		return math.Float64frombits(max(v[0], v[1], v[2], v[3]))
	}
	most := uint32(0)
	for _, x := range v.lanes() {
		most = max(most, x)
	}
	return float64(math.Float32frombits(most))
}

// assembly says that kernels in assembly may be used.
var assembly = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C

// forms are kernels in assembly for two sides of one type, in rows of step elements or more.
type forms struct {
	call, count func(*byte)
	step        int
}

// quick has the forms for values that are all finite, careful those for any values.
var (
	quick = map[tensor.DType]forms{tensor.F32: {quickF32, countF32, 8}, tensor.BF16: {quickBF16, countBF16, 16},
		tensor.F16: {quickF16, countF16, 16}}

	careful = map[tensor.DType]forms{tensor.F32: {call: carefulF32, step: 8}, tensor.F64: {call: carefulF64, step: 4}}

	odd   = map[tensor.DType]func(*byte){tensor.F32: oddF32, tensor.F64: oddF64}
	widen = map[tensor.DType]func(*byte){tensor.BF16: widenBF16, tensor.F16: widenF16}
)

// simd is the kernel in assembly for one pair of types.
type simd struct {
	types     [2]tensor.DType // what quick and careful read
	quick     forms
	careful   forms
	sums32    bool        // quick adds in float32
	low, high tolerance32 // the tolerance, slightly too low and too high; careful decides between
}

// tolerance32 is atol + rtol·max(|g|, floor32) in float32.
type tolerance32 struct{ atol, rtol float32 }

// floor32 is relFloor in float32.
const floor32 = float32(relFloor)

// fastest returns the fastest kernel for a pair of types.
func fastest(p *pass) kernel {
	if !assembly {
		return reference{}
	}
	arithmetic := tensor.F64
	if p.narrow {
		arithmetic = tensor.F32
	}
	k := &simd{types: [2]tensor.DType{arithmetic, arithmetic}, careful: careful[arithmetic]}
	low, high, ok := around(p.tol.Atol, p.tol.Rtol)
	if !ok {
		return k
	}
	k.low, k.high = low, high
	d := p.golden.DType()
	q, found := quick[d]
	if !found || p.actual.DType() != d {
		d, q = arithmetic, quick[arithmetic]
	}
	k.types[0], k.quick, k.sums32 = d, q, d.Size() == 2
	return k
}

// around returns a tolerance that is slightly lower, and one that is slightly higher, so that
// roundings of less than 2^−22 of the numbers do not matter. What floor32 adds to the lower one is
// subtracted from its atol; then no |g| is so small that its rounding matters.
func around(atol, rtol float64) (low, high tolerance32, ok bool) {
	const margin = 0x1p-20
	for _, v := range []float64{atol, rtol} {
		if v != 0 && !(v > 0x1p-60 && v < 0x1p60) {
			return low, high, false
		}
	}
	low.rtol = float32(rtol * (1 - margin))
	atLow := atol*(1-margin) - float64(low.rtol)*float64(floor32)
	if low.atol = float32(atLow); float64(low.atol) > atLow {
		low.atol = math.Nextafter32(low.atol, float32(math.Inf(-1)))
	}
	return low, tolerance32{float32(atol * (1 + margin)), float32(rtol * (1 + margin))}, true
}

// block calls quick, and careful where quick is not sure. Rows that are too short for either are
// one row for them; their own sums are added in Go. Whether the block before, in a chunk, had NaN or
// infinities says what to expect, and known, which other cores tell, says nothing: so sums do not depend on
// which core was first. The first block is not added in float32, so that small tensors have all digits.
func (k *simd) block(p *pass, s *scratch, b span, known float64) tally {
	rows, shape := grow(&s.rows, b.rows), b
	if b.cols < k.careful.step {
		shape = span{b.start, 1, b.len()}
	}
	if shape.cols < k.careful.step {
		return reference{}.block(p, s, b, known)
	}
	if c := &s.call; s.calls != p {
		s.calls = p
		fill(c.atol[:], p.tol.Atol)
		fill(c.rtol[:], p.tol.Rtol)
		fill(c.lowAtol[:], k.low.atol)
		fill(c.lowRtol[:], k.low.rtol)
		fill(c.highAtol[:], k.high.atol)
		fill(c.highRtol[:], k.high.rtol)
		fill(c.nanEqual[:], 0)
		if p.tol.EqualNaN {
			fill(c.nanEqual[:], math.MaxUint32)
		}
	}
	var f tally
	sums, sure := false, false
	if k.quick.call != nil && shape.cols >= k.quick.step && !s.notFinite && b.start > 0 {
		fill(s.call.known[:], float32(known))
		f, sums, sure = k.runQuick(p, s, shape, rows)
	}
	switch {
	case !sums:
		f = k.runCareful(p, s, shape, rows)
	case !sure:
		exact := k.runCareful(p, s, shape, grow(&s.rows2, b.rows))
		f.abs, f.rel, f.mismatches = exact.abs, exact.rel, exact.mismatches
	}
	if shape != b {
		k.shortRows(p, s, b, rows)
	}
	return f
}

// aim sets the addresses and sizes that a call reads, in a type, and where it writes rows.
func (k *simd) aim(p *pass, s *scratch, b span, rows []rowSums, as tensor.DType) *call {
	c := &s.call
	c.golden, c.actual = data(0, p.golden, s, b, as), data(1, p.actual, s, b, as)
	c.rows, c.cols, c.out, c.answer = b.rows, b.cols, &rows[0], answer{}
	return c
}

// runQuick reports whether the sums are right, because all values are finite and nothing was lost to
// the small range of float32; and whether the rest is, because no ratio is above the largest so far,
// and float32 decides about the tolerance.
func (k *simd) runQuick(p *pass, s *scratch, b span, rows []rowSums) (f tally, sums, sure bool) {
	c := k.aim(p, s, b, rows, k.types[0])
	call, counted := k.quick.call, s.mismatching
	if counted {
		call = k.quick.count
	}
	call((*byte)(unsafe.Pointer(c)))
	f = tally{finite: b.len(), abs: c.most.max(tensor.F32), rel: -1, mismatches: c.count.sum32(), aa: total(&c.aa)}
	f.addRows(rows[:b.rows])
	// Σa·g cancels where one side is much smaller than the other.
	f.ab = (f.gg + f.aa - f.dd) / 2
	apart := f.aa < f.gg/64 || f.gg < f.aa/64
	sums = finite(f.dd) && finite(f.aa) && (!apart || f.ab == 0)
	for _, r := range rows[:b.rows] {
		sums = sums && (!k.sums32 || squarable32(r.gg) && squarable32(f.aa) && (squarable32(r.dd) || r.dd == 0 && f.abs == 0))
	}
	sure = true
	if s.mismatching = f.mismatches > 0 && k.low != k.high; s.mismatching && sums {
		if !counted {
			k.quick.count((*byte)(unsafe.Pointer(k.aim(p, s, b, rows, k.types[0]))))
		}
		sure = c.count2 == c.count
	}
	for _, x := range c.doubt.lanes() {
		sure = sure && x>>31 == 0
	}
	return f, sums, sure
}

// squarable32 reports whether a sum of squares in float32 is right for x: between 2^-90 and 2^127. The bits
// of numbers ≥ 0 order like the numbers.
func squarable32(x float64) bool {
	return math.Float64bits(x)-(1023-90)<<52 <= (127+90)<<52
}

// runCareful counts pairs that are not finite separately.
func (k *simd) runCareful(p *pass, s *scratch, b span, rows []rowSums) tally {
	as := k.types[1]
	c := k.aim(p, s, b, rows, as)
	k.careful.call((*byte)(unsafe.Pointer(c)))
	f := tally{aa: total(&c.aa), ab: total(&c.ab), abs: -1, rel: -1, mismatches: c.count.sum64()}
	f.addRows(rows[:b.rows])
	count := (*vector).sum64
	if as == tensor.F32 {
		count = (*vector).sum32
	}
	if f.finite = count(&c.finite); f.finite > 0 {
		f.abs, f.rel = c.most.max(as), c.ratio.max(as)
	}
	s.notFinite = f.finite < b.len()
	if !s.notFinite {
		return f
	}
	n := b.len() / k.careful.step * k.careful.step
	c.rows, c.cols = 1, n
	c.answer = answer{}
	odd[as]((*byte)(unsafe.Pointer(c)))
	f.nan, f.inf = [2]int{count(&c.odd[0]), count(&c.odd[2])}, [2]int{count(&c.odd[1]), count(&c.odd[3])}
	f.badNonFinite = count(&c.bad)
	f.mismatches += f.badNonFinite
	if rest := b.len() - n; rest > 0 {
		var g, a [8]float64
		p.golden.Float64s(g[:rest], b.start+n)
		p.actual.Float64s(a[:rest], b.start+n)
		for i, gv := range g[:rest] {
			if !finite(gv) || !finite(a[i]) {
				f.odd(gv, a[i], &p.rule)
			}
		}
	}
	return f
}

// shortRows adds the sums of rows. Their elements are those that were read last.
func (k *simd) shortRows(p *pass, s *scratch, b span, rows []rowSums) {
	as := k.types[1]
	c := k.aim(p, s, b, rows, as)
	if as == tensor.F32 {
		sumRows(rows, unsafe.Slice((*float32)(c.golden), b.len()), unsafe.Slice((*float32)(c.actual), b.len()), b.cols)
		return
	}
	sumRows(rows, unsafe.Slice((*float64)(c.golden), b.len()), unsafe.Slice((*float64)(c.actual), b.len()), b.cols)
}

func sumRows[T float32 | float64](rows []rowSums, g, a []T, cols int) {
	a = a[:len(g)]
	for i := range rows {
		if cols == 1 { // which need not be sliced
			gv, av := float64(g[i]), float64(a[i])
			if d := av - gv; d-d == 0 {
				rows[i] = rowSums{d * d, gv * gv}
				continue
			}
		}
		var r rowSums
		a := a[i*cols:][:cols]
		for j, x := range g[i*cols:][:cols] {
			gv, av := float64(x), float64(a[j])
			d := av - gv
			if d-d == 0 || finite(gv) && finite(av) {
				r.dd += d * d
				r.gg += gv * gv
			}
		}
		rows[i] = r
	}
}

// squares returns Σx² of integers of 32 bits, or ok = false for another type.
func squares(d tensor.DType, data []byte) (sum float64, ok bool) {
	n := len(data) / 4 &^ 7
	if d != tensor.I32 || !assembly || n == 0 {
		return 0, false
	}
	c := call{golden: unsafe.Pointer(&data[0]), cols: n}
	squaresI32((*byte)(unsafe.Pointer(&c)))
	sum = total(&c.aa)
	for i := n; i < len(data)/4; i++ {
		v := float64(*(*int32)(unsafe.Pointer(&data[4*i])))
		sum += v * v
	}
	return sum, true
}

// window is a copy of a part of a tensor whose elements are not stored in order.
type window struct {
	of         *tensor.Tensor
	start, end int
	data       []byte
}

// windowRows is how many rows are gathered at a time, or as many as a chunk has, if they are
// columns of what is stored: neighbours share cache lines and pages.
const windowRows = 64

// fill copies a block and, unless rows are long, also the blocks around it.
func (w *window) fill(t *tensor.Tensor, b span) {
	from, end := b.start, b.start+b.len()
	if n := min(windowRows, chunkLen/t.RowLen()) * t.RowLen(); n > 0 {
		from = from / n * n
		end = min((end+n-1)/n*n, t.Len())
	}
	size := t.DType().Size()
	w.of, w.start, w.end = t, from, end
	t.Gather(grow(&w.data, (end-from)*size), from)
}

// data returns the elements of a block in a type: where they are stored if possible, or else in a
// buffer.
func data(side int, t *tensor.Tensor, s *scratch, b span, as tensor.DType) unsafe.Pointer {
	switch d := t.DType(); {
	case d == as:
		return stored(side, t, s, b)
	case as == tensor.F64:
		v := grow(&s.floats[side], b.len())
		t.Float64s(v, b.start)
		return unsafe.Pointer(&v[0])
	default:
		v := grow(&s.float32[side], b.len())
		n := 0
		if w := widen[d]; w != nil && b.len() >= 8 {
			n = b.len() &^ 7
			c := &s.widening
			c.golden, c.actual, c.cols = stored(side, t, s, b), unsafe.Pointer(&v[0]), n
			w((*byte)(unsafe.Pointer(c)))
		}
		if n < len(v) {
			t.Float32s(v[n:], b.start+n)
		}
		return unsafe.Pointer(&v[0])
	}
}

// stored returns the elements of a block in their own type.
func stored(side int, t *tensor.Tensor, s *scratch, b span) unsafe.Pointer {
	size := t.DType().Size()
	if data, ok := t.Bytes(); ok {
		return unsafe.Pointer(&data[b.start*size])
	}
	w := &s.windows[side]
	if w.of != t || b.start < w.start || b.start+b.len() > w.end {
		w.fill(t, b)
	}
	return unsafe.Pointer(&w.data[(b.start-w.start)*size])
}

func total(v *[4]float64) float64 { return (v[0] + v[2]) + (v[1] + v[3]) }

func fill[T any](v []T, x T) {
	for i := range v {
		v[i] = x
	}
}
