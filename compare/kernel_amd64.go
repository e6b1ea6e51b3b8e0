package compare

import (
	"bytes"
	"math"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/goparity/goparity/tensor"
)

// call has the arguments and the answer of a kernel in assembly. internal/kernelgen knows the
// offsets.
type call struct {
	golden, actual     unsafe.Pointer
	rows, cols         int
	out                *rowFigures
	_                  [3]uint64
	atol, rtol, bound  [4]float64
	lowAtol, lowRtol   [8]float32
	highAtol, highRtol [8]float32
	bound32            [8]float32
	answer
}

// answer has lanes of figures. What a kernel does not fill is zero.
type answer struct {
	aa, ab, gd    [8]float64 // Σa², Σa·g, Σg·d; aa and ab are of exact forms, gd of the others
	above, most   [8]float64 // most is the largest |d|; of forms in float32: [16]float32
	count, count2 [8]int64   // of forms in float32: [16]int32
	found         uint32     // by reach: a bit for each of the last elements
}

var _ [unsafe.Offsetof(call{}.answer)]struct{} = [320]struct{}{}

// isa is the instruction set that kernels may use: 0 for none, avx2 or avx512.
var isa = func() int {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA || !x.HasF16C:
		return 0
	case x.HasAVX512 && x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL:
		return avx512
	default:
		return avx2
	}
}()

const (
	avx2   = 2
	avx512 = 5
)

// exactStep is the shortest row of the exact forms.
const exactStep = 4

// forms are the kernels of one pair of types.
type forms struct {
	exact, reach func(*byte) // reach is nil for float64
	count, fast  isas        // fast is nil for float64
	same         isas        // for equal bytes on both sides, of one type
}

type isas struct{ avx2, avx512 func(*byte) }

var assembly = map[[2]tensor.DType]forms{
	{tensor.F64, tensor.F64}: {exactF64F64AVX2, nil, isas{countF64F64AVX2, countF64F64AVX512}, isas{},
		isas{sameF64F64AVX2, sameF64F64AVX512}},
	{tensor.F32, tensor.F32}: {exactF32F32AVX2, reachF32F32AVX2,
		isas{countF32F32AVX2, countF32F32AVX512}, isas{fastF32F32AVX2, fastF32F32AVX512},
		isas{sameF32F32AVX2, sameF32F32AVX512}},
	{tensor.BF16, tensor.BF16}: {exactBF16BF16AVX2, reachBF16BF16AVX2,
		isas{countBF16BF16AVX2, countBF16BF16AVX512}, isas{fastBF16BF16AVX2, fastBF16BF16AVX512},
		isas{sameBF16BF16AVX2, sameBF16BF16AVX512}},
	{tensor.F16, tensor.F16}: {exactF16F16AVX2, reachF16F16AVX2,
		isas{countF16F16AVX2, countF16F16AVX512}, isas{fastF16F16AVX2, fastF16F16AVX512},
		isas{sameF16F16AVX2, sameF16F16AVX512}},
	{tensor.BF16, tensor.F32}: {exactBF16F32AVX2, reachBF16F32AVX2, isas{countBF16F32AVX2, countBF16F32AVX512},
		isas{fastBF16F32AVX2, fastBF16F32AVX512}, isas{}},
	{tensor.F32, tensor.BF16}: {exactF32BF16AVX2, reachF32BF16AVX2, isas{countF32BF16AVX2, countF32BF16AVX512},
		isas{fastF32BF16AVX2, fastF32BF16AVX512}, isas{}},
	{tensor.F16, tensor.F32}: {exactF16F32AVX2, reachF16F32AVX2, isas{countF16F32AVX2, countF16F32AVX512},
		isas{fastF16F32AVX2, fastF16F32AVX512}, isas{}},
	{tensor.F32, tensor.F16}: {exactF32F16AVX2, reachF32F16AVX2, isas{countF32F16AVX2, countF32F16AVX512},
		isas{fastF32F16AVX2, fastF32F16AVX512}, isas{}},
}

// best returns the form for this machine.
func (f isas) best() func(*byte) {
	if isa == avx512 {
		return f.avx512
	}
	return f.avx2
}

// simd is the kernel in assembly for one pair of types.
type simd struct {
	forms
	types     [2]tensor.DType // types in which golden and actual are passed
	shortest  int             // length of the shortest row for all forms but exact
	sums32    bool            // adds in float32
	low, high tolerance32     // the tolerance, slightly too low and too high; float64 decides between
	ok        bool            // both fit into float32
	exactTo   float64         // differences up to this are exact in float32
}

// tolerance32 is atol + rtol·max(|g|, floor32) in float32.
type tolerance32 struct{ atol, rtol float32 }

// fastest returns the fastest kernel for a pair of types.
func fastest(golden, actual tensor.DType, tol Tolerance) kernel {
	if isa == 0 {
		return reference{}
	}
	types := [2]tensor.DType{carrier(golden), carrier(actual)}
	k, found := assembly[types]
	switch {
	case found:
	case types[0] == tensor.F64 || types[1] == tensor.F64:
		types = [2]tensor.DType{tensor.F64, tensor.F64}
	default:
		types = [2]tensor.DType{tensor.F32, tensor.F32}
	}
	if !found {
		k = assembly[types]
	}
	s := &simd{forms: k, types: types, shortest: 16}
	if types[0].Size()+types[1].Size() == 4 {
		s.sums32, s.shortest = true, 32
	}
	s.low, s.high, s.ok = around(tol.Atol, tol.Rtol)
	s.exactTo = (1<<24 - 1) * min(step(golden), step(actual))
	return s
}

// step returns a number of which all values of a type are multiples, or 0.
func step(d tensor.DType) float64 {
	switch {
	case !d.IsFloat():
		return 1
	case d == tensor.F16:
		return 0x1p-24
	case d == tensor.F8E5M2 || d == tensor.F8E5M2FNUZ:
		return 0x1p-17
	case d == tensor.F8E4M3FN || d == tensor.F8E4M3FNUZ:
		return 0x1p-10
	default:
		return 0
	}
}

// carrier returns the type in which a kernel reads values of a type.
func carrier(d tensor.DType) tensor.DType {
	switch {
	case d == tensor.F64 || d == tensor.F32 || d == tensor.BF16 || d == tensor.F16:
		return d
	case d.Size() <= 2:
		return tensor.F32
	default:
		return tensor.F64
	}
}

// floor32 is the least |g| in products of the forms in float32. It is less than relFloor, and a
// power of two.
const floor32 = 0x1p-34

// around returns a tolerance that is slightly lower, and one that is slightly higher, so that
// roundings of less than 2^−22 of the numbers do not matter. What floor32 adds to the lower one is
// subtracted from its atol; then no |g| is so small that its rounding matters.
func around(atol, rtol float64) (low, high tolerance32, ok bool) {
	const margin = 0x1p-20
	ok = true
	for _, v := range []float64{atol, rtol} {
		ok = ok && (v == 0 || v > 0x1p-60 && v < 0x1p60)
	}
	low.rtol = float32(rtol * (1 - margin))
	atLow := atol*(1-margin) - float64(low.rtol)*floor32
	if low.atol = float32(atLow); float64(low.atol) > atLow {
		low.atol = math.Nextafter32(low.atol, float32(math.Inf(-1)))
	}
	return low, tolerance32{float32(atol * (1 + margin)), float32(rtol * (1 + margin))}, ok
}

// block takes the sums of the fast forms whenever these are right, whatever the maxima so far. So
// sums do not depend on which core was first, and those of fast and count are equal. If a form in
// float32 is not sure of maxima and counters, block looks for the elements that matter, or calls
// the exact form.
func (k *simd) block(p *pass, s *scratch, b span, thorough bool) tally {
	if b.cols < exactStep {
		return reference{}.block(p, s, b, thorough)
	}
	c := &s.call
	k.aim(p, s, b)
	if s.calls != p {
		s.calls = p
		fill4(&c.atol, p.tol.Atol)
		fill4(&c.rtol, p.tol.Rtol)
	}
	rows := grow(&s.rows, b.rows)
	if thorough || b.cols < k.shortest || b.start == 0 { // for the first block no maxima are known
		return k.careful(p, s, b, rows)
	}
	if same := k.same.best(); same != nil {
		n := b.len() * k.types[0].Size()
		if bytes.Equal(unsafe.Slice((*byte)(c.golden), n), unsafe.Slice((*byte)(c.actual), n)) {
			if f, ok := k.equal(same, c, rows); ok {
				return f
			}
		}
	}
	most := maxima{p.abs.value(), p.rel.value()}
	c.out, c.answer = &rows[0], answer{}
	if k.fast.avx2 == nil {
		f, sums, sure := k.call64(k.count.best(), c, rows, most)
		switch {
		case !sums:
			return k.careful(p, s, b, rows)
		case !sure:
			f.takeExact(k.careful(p, s, b, grow(&s.rows2, b.rows)))
		}
		return f
	}
	form := k.fast.best()
	if s.mismatching {
		form = k.count.best()
	}
	f, sums, doubt := k.call32(form, s.mismatching, c, rows, most)
	switch {
	case !sums:
		f = k.careful(p, s, b, rows)
	case !doubt.any():
		s.crowded = false
	case s.crowded || !k.settle(p, s, b, &f, most, doubt):
		s.crowded = true
		f.takeExact(k.careful(p, s, b, grow(&s.rows2, b.rows)))
	}
	s.mismatching = f.mismatches > 0
	return f
}

// aim sets the addresses and sizes that a call reads.
func (k *simd) aim(p *pass, s *scratch, b span) {
	c := &s.call
	c.golden, c.actual = k.data(0, p.golden, s, b), k.data(1, p.actual, s, b)
	c.rows, c.cols = b.rows, b.cols
}

// takeExact takes maxima and the counter of mismatches.
func (f *tally) takeExact(o tally) { f.abs, f.rel, f.mismatches = o.abs, o.rel, o.mismatches }

// maxima are the largest |d| and relative error of all blocks so far, or −1 if there are none.
type maxima struct{ abs, rel float64 }

// call64 calls a form in float64. sums says that the sums are right, because all values are finite.
// sure says that no relative error is above the largest so far.
func (k *simd) call64(form func(*byte), c *call, rows []rowFigures, so maxima) (f tally, sums, sure bool) {
	// |d| ≤ bound·max(|g|, relFloor) means that the relative error is not above rel, however it is
	// rounded, also for subnormal numbers.
	fill4(&c.bound, 0)
	if so.rel >= 1e-200 {
		fill4(&c.bound, so.rel*(1-1e-15))
	}
	form((*byte)(unsafe.Pointer(c)))
	f, sums = k.sums(c, rows)
	sure = so.rel >= 0
	for i, v := range c.above {
		f.abs = max(f.abs, c.most[i])
		sure = sure && v <= 0
		f.mismatches += int(c.count[i])
	}
	return f, sums, sure
}

// doubt is what a form in float32 cannot decide for a block: whether a |d| is above the largest so
// far (if so, it is about abs), whether a relative error is, and how many mismatches there are.
type doubt struct {
	abs             float64
	rel, mismatches bool
}

func (d doubt) any() bool { return d.abs > 0 || d.rel || d.mismatches }

// call32 calls a form in float32. sums says that the sums are right, because all values are finite,
// and nothing was lost to the small range of float32.
func (k *simd) call32(form func(*byte), counts bool, c *call, rows []rowFigures,
	so maxima) (f tally, sums bool, in doubt) {
	k.setTolerances(c, k.low, k.high)
	bound := float32(0)
	if so.rel >= 0x1p-60 {
		bound = float32(min(so.rel, 0x1p100) * (1 - 0x1p-20))
	}
	if c.bound32[0] != bound {
		fill8(&c.bound32, bound)
	}
	form((*byte)(unsafe.Pointer(c)))
	f, sums = k.sums(c, rows)
	above, low, high := (*[16]uint32)(unsafe.Pointer(&c.above)), (*[16]int32)(unsafe.Pointer(&c.count)),
		(*[16]int32)(unsafe.Pointer(&c.count2))
	abs := float32(0)
	in.rel, in.mismatches = so.rel < 0, !k.ok
	for i, v := range (*[16]float32)(unsafe.Pointer(&c.most)) {
		abs = max(abs, v)
		in.rel = in.rel || above[i]>>31 != 0
		if counts {
			in.mismatches = in.mismatches || low[i] != high[i]
			f.mismatches += int(high[i])
		} else { // a sign
			in.mismatches = in.mismatches || low[i] < 0
		}
	}
	f.abs = float64(abs)
	if f.abs > k.exactTo {
		if f.abs >= so.abs*(1-0x1p-22) {
			in.abs = f.abs
		}
		f.abs = -1
	}
	return f, sums, in
}

// maxSettled is how many elements of a block are examined one by one. For more, the exact form is
// faster.
const maxSettled = 64

// settle resolves doubts by examining the elements that matter, if these are few.
func (k *simd) settle(p *pass, s *scratch, b span, f *tally, so maxima, in doubt) bool {
	if so.rel < 0 || !k.ok {
		return false
	}
	k.aim(p, s, b)
	left := maxSettled
	each := func(low, high tolerance32, do func(d, ag float64)) bool {
		for i := 0; ; i++ {
			if i = k.next(&s.call, b.len(), i, low, high); i == b.len() {
				return true
			}
			if left--; left < 0 {
				return false
			}
			g := p.golden.At(b.start + i)
			do(math.Abs(p.actual.At(b.start+i)-g), math.Abs(g))
		}
	}
	if in.abs > 0 {
		low, _, ok := around(in.abs, 0)
		if !ok || !each(low, unlimited, func(d, _ float64) { f.abs = max(f.abs, d) }) {
			return false
		}
	}
	if in.rel {
		low, _, ok := around(0, so.rel)
		if !ok || !each(low, unlimited, func(d, ag float64) { f.rel = max(f.rel, d/max(ag, relFloor)) }) {
			return false
		}
	}
	count := func(d, ag float64) {
		if !p.tol.within(d, ag) {
			f.mismatches++
		}
	}
	switch {
	case in.mismatches && s.mismatching: // f counts the elements above the high tolerance
		return each(k.low, k.high, count)
	case in.mismatches:
		return each(k.low, unlimited, count)
	}
	return true
}

// unlimited is a tolerance above all differences.
var unlimited = tolerance32{atol: float32(math.Inf(1))}

// find implements finder.
func (k *simd) find(p *pass, s *scratch, b span, low Tolerance, is func(pair) bool) (at int, ok bool) {
	from, _, ok := around(low.Atol, low.Rtol)
	if !ok || k.reach == nil || b.len() < exactStep*2 {
		return -1, false
	}
	k.aim(p, s, b)
	for i := 0; ; i++ {
		if i = k.next(&s.call, b.len(), i, from, unlimited); i == b.len() {
			return -1, true
		}
		at := b.start + i
		g, a := p.golden.At(at), p.actual.At(at)
		if is(pair{g: g, a: a, d: math.Abs(a - g), finite: true}) {
			return at, true
		}
	}
}

// next returns the first of n elements, from the i-th on, whose |d| may be between two tolerances,
// or n if there is none. c aims at element 0. All elements are finite.
func (k *simd) next(c *call, n, i int, low, high tolerance32) int {
	if low == (tolerance32{}) {
		low.atol = math.SmallestNonzeroFloat32
	}
	k.setTolerances(c, low, high)
	golden, actual := c.golden, c.actual
	defer func() { c.golden, c.actual = golden, actual }()
	for i < n {
		from := min(i, n-8) // the last 8 may have been examined
		c.golden, c.actual = unsafe.Add(golden, from*k.types[0].Size()), unsafe.Add(actual, from*k.types[1].Size())
		c.cols = (n - from) &^ 7
		end := from + c.cols
		k.reach((*byte)(unsafe.Pointer(c)))
		at := end - c.cols - 8 // of the last that were examined
		if found := c.found >> max(i-at, 0) << max(i-at, 0); found != 0 {
			return at + bits.TrailingZeros32(found)
		}
		i = end
	}
	return n
}

// setTolerances sets the tolerances of a call in float32.
func (k *simd) setTolerances(c *call, low, high tolerance32) {
	if c.lowAtol[0] != low.atol || c.lowRtol[0] != low.rtol {
		fill8(&c.lowAtol, low.atol)
		fill8(&c.lowRtol, low.rtol)
	}
	if c.highAtol[0] != high.atol || c.highRtol[0] != high.rtol {
		fill8(&c.highAtol, high.atol)
		fill8(&c.highRtol, high.rtol)
	}
}

// sums completes the sums of a form other than exact, and reports whether they are right.
func (k *simd) sums(c *call, rows []rowFigures) (f tally, ok bool) {
	f = tally{finite: c.rows * c.cols, rel: -1}
	ok = true
	for i := range rows {
		r := &rows[i]
		f.dd += r.dd
		f.gg += r.gg
		if k.sums32 && !(squarable32(r.gg) && (squarable32(r.dd) || r.dd == 0 && c.equalRow(i))) {
			ok = false
		}
	}
	gd := total(&c.gd)
	f.ab = f.gg + gd
	f.aa = f.gg + 2*gd + f.dd
	// Σa² cancels if a is small next to g: down to 1/64 it loses at most 6 bits.
	least := (f.gg + f.dd) / 64
	if k.sums32 {
		least = max((f.gg+f.dd)/4, least32)
	}
	return f, ok && finite(f.dd) && f.aa >= least
}

// equal calls a form for equal bytes on both sides. ok says that all values are finite, and nothing
// was lost to the small range of float32.
func (k *simd) equal(form func(*byte), c *call, rows []rowFigures) (f tally, ok bool) {
	c.out = &rows[0]
	form((*byte)(unsafe.Pointer(c)))
	least, most := 0.0, math.MaxFloat64
	if k.sums32 {
		least, most = least32, most32
	}
	f.finite = c.rows * c.cols
	for i := range rows {
		if gg := rows[i].gg; !(gg >= least && gg <= most) {
			return f, false
		}
		f.gg += rows[i].gg
	}
	f.aa, f.ab = f.gg, f.gg
	return f, true
}

// Sums of squares in float32 are right between these limits.
const least32, most32 = 0x1p-90, 0x1p127

// equalRow reports whether row i has the same bytes on both sides, whose elements have 16 bits.
func (c *call) equalRow(i int) bool {
	n := 2 * c.cols
	return bytes.Equal(unsafe.Slice((*byte)(unsafe.Add(c.golden, i*n)), n),
		unsafe.Slice((*byte)(unsafe.Add(c.actual, i*n)), n))
}

// squarable32 reports whether x is between them. The bits of numbers ≥ 0 order like the numbers.
func squarable32(x float64) bool {
	return math.Float64bits(x)-(1023-90)<<52 <= (127+90)<<52
}

// careful calls the exact form. Pairs that are not finite are counted separately.
func (k *simd) careful(p *pass, s *scratch, b span, rows []rowFigures) tally {
	c := &s.call
	k.aim(p, s, b)
	c.out, c.answer = &rows[0], answer{}
	k.exact((*byte)(unsafe.Pointer(c)))
	f := tally{aa: total(&c.aa), ab: total(&c.ab), abs: -1, rel: -1}
	for i := range c.count {
		f.mismatches += int(c.count[i])
		f.finite += int(c.count2[i])
	}
	f.addRows(rows)
	if f.finite > 0 {
		f.abs = max(c.most[0], c.most[1], c.most[2], c.most[3])
		f.rel = max(c.above[0], c.above[1], c.above[2], c.above[3])
	}
	if f.finite < b.len() {
		g, a := s.decode(p, b)
		f.nonFinite(g, a, &p.rule)
	}
	return f
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

// data returns the elements of a block in the type that the kernel reads: where they are stored if
// possible, or else in a buffer.
func (k *simd) data(side int, t *tensor.Tensor, s *scratch, b span) unsafe.Pointer {
	if t.DType() != k.types[side] {
		if k.types[side] == tensor.F32 {
			v := grow(&s.float32[side], b.len())
			t.Float32s(v, b.start)
			return unsafe.Pointer(&v[0])
		}
		v := grow(&s.floats[side], b.len())
		t.Float64s(v, b.start)
		return unsafe.Pointer(&v[0])
	}
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

func total(v *[8]float64) float64 {
	return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
}

func fill4(v *[4]float64, x float64) { *v = [4]float64{x, x, x, x} }

func fill8(v *[8]float32, x float32) { *v = [8]float32{x, x, x, x, x, x, x, x} }
