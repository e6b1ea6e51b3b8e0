package compare

import (
	"bytes"
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/goparity/goparity/tensor"
)

// call is what a kernel in assembly is called with, and what it answers. internal/kernelgen knows the offsets.
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
	of *pass // whose tolerances these are
}

// answer is lanes of figures; what a kernel does not fill is zero.
type answer struct {
	aa, ab, gd    [8]float64 // Σa², Σa·g, Σg·d; aa and ab are of exact forms, gd of the others
	above, most   [8]float64 // most is the largest |d|; of forms in float32: [16]float32
	count, count2 [8]int64   // of forms in float32: [16]int32
}

var _ [unsafe.Offsetof(call{}.answer)]struct{} = [320]struct{}{}

// isa is the instruction set that kernels may use: 0 for none, avx2, avx512.
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

// forms are the kernels of one pair of types, for AVX2 and AVX-512.
type forms struct {
	exact func(*byte)
	count [2]func(*byte)
	fast  [2]func(*byte) // nil for float64
	same  [2]func(*byte) // for sides of the same bytes, if the types are the same
}

var assembly = map[[2]tensor.DType]forms{
	{tensor.F64, tensor.F64}: {exact: exactF64F64AVX2, count: two{countF64F64AVX2, countF64F64AVX512}, same: two{sameF64F64AVX2, sameF64F64AVX512}},
	{tensor.F32, tensor.F32}: {exactF32F32AVX2, two{countF32F32AVX2, countF32F32AVX512}, two{fastF32F32AVX2, fastF32F32AVX512}, two{sameF32F32AVX2, sameF32F32AVX512}},
	{tensor.BF16, tensor.BF16}: {exactBF16BF16AVX2, two{countBF16BF16AVX2, countBF16BF16AVX512}, two{fastBF16BF16AVX2, fastBF16BF16AVX512},
		two{sameBF16BF16AVX2, sameBF16BF16AVX512}},
	{tensor.F16, tensor.F16}:  {exactF16F16AVX2, two{countF16F16AVX2, countF16F16AVX512}, two{fastF16F16AVX2, fastF16F16AVX512}, two{sameF16F16AVX2, sameF16F16AVX512}},
	{tensor.BF16, tensor.F32}: {exactBF16F32AVX2, two{countBF16F32AVX2, countBF16F32AVX512}, two{fastBF16F32AVX2, fastBF16F32AVX512}, two{}},
	{tensor.F32, tensor.BF16}: {exactF32BF16AVX2, two{countF32BF16AVX2, countF32BF16AVX512}, two{fastF32BF16AVX2, fastF32BF16AVX512}, two{}},
	{tensor.F16, tensor.F32}:  {exactF16F32AVX2, two{countF16F32AVX2, countF16F32AVX512}, two{fastF16F32AVX2, fastF16F32AVX512}, two{}},
	{tensor.F32, tensor.F16}:  {exactF32F16AVX2, two{countF32F16AVX2, countF32F16AVX512}, two{fastF32F16AVX2, fastF32F16AVX512}, two{}},
}

type two = [2]func(*byte)

// simd is the kernel in assembly for one pair of types.
type simd struct {
	forms
	types  [2]tensor.DType // as which golden and actual are given to it
	lanes  int             // the shortest row of the forms for AVX2; those for AVX-512 need twice as many
	wide   bool            // compares in float64
	sums32 bool            // adds in float32
	// Tolerances in float32, a little too low and a little too high: what lies between is left to the exact form. ok is false where float32 has no
	// room for them.
	low, high [2]float32 // atol, rtol
	ok        bool
}

// fastest gives the fastest kernel for a pair of types.
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
	s := &simd{forms: k, types: types, lanes: 8, wide: k.fast[0] == nil}
	if types[0].Size()+types[1].Size() == 4 {
		s.sums32, s.lanes = true, 16
	}
	if !s.wide {
		s.narrow(tol)
	}
	return s
}

// carrier is the type that a kernel reads values of a type as.
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

// floor32 is the least |g| in products of the forms in float32: less than relFloor, and a power of two.
const floor32 = 0x1p-34

// narrow sets the tolerances in float32, for which |g| is at least floor32. What that adds to a tolerance is taken from the low atol: then no number is so small
// that its rounding counts. Other roundings are below 2^−22 of the numbers.
func (k *simd) narrow(tol Tolerance) {
	const margin = 0x1p-20
	k.ok = true
	for i, v := range []float64{tol.Atol, tol.Rtol} {
		k.ok = k.ok && (v == 0 || v > 0x1p-60 && v < 0x1p60)
		k.low[i], k.high[i] = float32(v*(1-margin)), float32(v*(1+margin))
	}
	atol := tol.Atol*(1-margin) - float64(k.low[1])*floor32
	if k.low[0] = float32(atol); float64(k.low[0]) > atol {
		k.low[0] = math.Nextafter32(k.low[0], float32(math.Inf(-1)))
	}
}

// block takes the sums of the fast forms wherever these have them right, whatever the maxima so far are: sums do not depend on which core came
// first, and those of fast and count are the same. Maxima and counters are those of the exact form where the others are not sure of them.
func (k *simd) block(p *pass, s *scratch, b span, thorough bool) tally {
	if b.cols < exactStep {
		return reference{}.block(p, s, b, thorough)
	}
	c := &s.call
	c.golden, c.actual = k.data(0, p.golden, s, b), k.data(1, p.actual, s, b)
	c.rows, c.cols = b.rows, b.cols
	if c.of != p {
		k.prepare(c, p)
	}
	rows := grow(&s.rows, b.rows)
	if thorough || b.cols < k.lanes || p.n <= pieceLen {
		return k.careful(p, s, b, rows)
	}
	form := 0
	if isa == avx512 && b.cols >= 2*k.lanes {
		form = 1
	}
	if n := b.len() * k.types[0].Size(); k.same[form] != nil && bytes.Equal(unsafe.Slice((*byte)(c.golden), n), unsafe.Slice((*byte)(c.actual), n)) {
		if f, ok := k.equal(k.same[form], c, rows); ok {
			return f
		}
	}
	c.out, c.answer = &rows[0], answer{}
	abs, rel := p.abs.value(), p.rel.value()
	var f tally
	var sums, sure bool
	if k.wide {
		f, sums, sure = k.call64(k.count[form], c, rows, rel)
	} else {
		call := k.fast[form]
		if s.mismatching {
			call = k.count[form]
		}
		f, sums, sure = k.call32(call, c, rows, abs, rel)
	}
	switch {
	case !sums:
		f = k.careful(p, s, b, rows)
	case !sure:
		f2 := k.careful(p, s, b, grow(&s.rows2, b.rows))
		f.abs, f.rel, f.mismatches = f2.abs, f2.rel, f2.mismatches
	}
	s.mismatching = f.mismatches > 0
	return f
}

// prepare sets the tolerances.
func (k *simd) prepare(c *call, p *pass) {
	c.of = p
	fill4(&c.atol, p.tol.Atol)
	fill4(&c.rtol, p.tol.Rtol)
	fill8(&c.lowAtol, k.low[0])
	fill8(&c.lowRtol, k.low[1])
	fill8(&c.highAtol, k.high[0])
	fill8(&c.highRtol, k.high[1])
}

// call64 calls a form in float64. sums says that sums are right: all values are finite. sure says that no relative error is above rel.
func (k *simd) call64(form func(*byte), c *call, rows []rowFigures, rel float64) (f tally, sums, sure bool) {
	// |d| ≤ bound·max(|g|, relFloor) means that the relative error is not above rel, for all roundings, and where they are of subnormal numbers.
	fill4(&c.bound, 0)
	if rel >= 1e-200 {
		fill4(&c.bound, rel*(1-1e-15))
	}
	form((*byte)(unsafe.Pointer(c)))
	f, sums = k.sums(c, rows)
	sure = rel >= 0
	for i, v := range c.above {
		f.abs = max(f.abs, c.most[i])
		sure = sure && v <= 0
		f.mismatches += int(c.count[i])
	}
	return f, sums, sure
}

// call32 calls a form in float32. sums says that sums are right: all values are finite, and nothing was lost to the small range of float32. sure
// says that the counter of mismatches is, too, and that no maximum is above abs and rel.
func (k *simd) call32(form func(*byte), c *call, rows []rowFigures, abs, rel float64) (f tally, sums, sure bool) {
	bound := float32(0)
	if rel >= 0x1p-60 {
		bound = float32(min(rel, 0x1p100) * (1 - 0x1p-20))
	}
	if c.bound32[0] != bound {
		fill8(&c.bound32, bound)
	}
	form((*byte)(unsafe.Pointer(c)))
	f, sums = k.sums(c, rows)
	sure = rel >= 0 && k.ok
	above, low, high := (*[16]uint32)(unsafe.Pointer(&c.above)), (*[16]int32)(unsafe.Pointer(&c.count)), (*[16]int32)(unsafe.Pointer(&c.count2))
	most := float32(0)
	for i, v := range (*[16]float32)(unsafe.Pointer(&c.most)) {
		most = max(most, v)
		sure = sure && above[i]>>31 == 0 && low[i] == high[i]
		f.mismatches += int(low[i])
	}
	if most > 0 { // 0 is exact
		sure = sure && float64(most) < abs*(1-0x1p-22)
		f.abs = -1
	}
	return f, sums, sure
}

// sums completes the sums of a form but the exact one, and reports whether they are right.
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
	// What cancels costs digits.
	least := (f.gg + f.dd) / 64
	if k.sums32 {
		least = max((f.gg+f.dd)/4, least32)
	}
	return f, ok && finite(f.dd) && f.aa >= least
}

// equal calls a form for sides of the same bytes. ok says that all values are finite, and nothing was lost to the small range of float32.
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

// Sums of squares in float32 are right between these.
const least32, most32 = 0x1p-90, 0x1p127

// equalRow reports whether row i has the same bytes on both sides, which are of 16 bits.
func (c *call) equalRow(i int) bool {
	n := 2 * c.cols
	return bytes.Equal(unsafe.Slice((*byte)(unsafe.Add(c.golden, i*n)), n), unsafe.Slice((*byte)(unsafe.Add(c.actual, i*n)), n))
}

// squarable32 reports whether x is between them; the bits of numbers that are not negative order like the numbers.
func squarable32(x float64) bool {
	return math.Float64bits(x)-(1023-90)<<52 <= (127+90)<<52
}

// careful calls the exact form; pairs that are not finite are counted apart.
func (k *simd) careful(p *pass, s *scratch, b span, rows []rowFigures) tally {
	c := &s.call
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

// window is a copy of a part of a tensor whose elements do not lie in order.
type window struct {
	of         *tensor.Tensor
	start, end int
	data       []byte
}

// windowRows are gathered at a time where they are columns of what lies in the file: they share its cache lines and pages.
const windowRows = 8

// fill copies a block, and where rows are not long all of the windowRows that it belongs to.
func (w *window) fill(t *tensor.Tensor, b span) {
	from, end := b.start, b.start+b.len()
	if n := windowRows * t.RowLen(); n <= chunkLen {
		from = from / n * n
		end = min((end+n-1)/n*n, t.Len())
	}
	size := t.DType().Size()
	w.of, w.start, w.end = t, from, end
	t.Gather(grow(&w.data, (end-from)*size), from)
}

// data gives the elements of a block as the kernel wants them: where they lie if that is possible, else in a buffer.
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
