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
	wideSums [4][4]float64 // of the kernel's own
}

// answer is lanes of sums and maxima; what a kernel does not fill is zero.
type answer struct {
	aa, ab        [8]float64
	rel           [8]float64 // of float32 kernels: [16]float32
	count, count2 [8]int64   // of float32 kernels: [16]int32
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

// forms are the kernels of one pair of types.
type forms struct {
	fast2, fast512, exact func(*byte)
	half                  bool        // fast forms calculate in float32
	same2, same512        func(*byte) // for sides of the same bytes, if the types are the same
}

var assembly = map[[2]tensor.DType]forms{
	{tensor.F32, tensor.F32}:   {fastF32F32AVX2, fastF32F32AVX512, exactF32F32AVX2, false, sameF32F32AVX2, sameF32F32AVX512},
	{tensor.F64, tensor.F64}:   {fastF64F64AVX2, fastF64F64AVX512, exactF64F64AVX2, false, sameF64F64AVX2, sameF64F64AVX512},
	{tensor.BF16, tensor.BF16}: {fastBF16BF16AVX2, fastBF16BF16AVX512, exactBF16BF16AVX2, true, sameBF16BF16AVX2, sameBF16BF16AVX512},
	{tensor.F16, tensor.F16}:   {fastF16F16AVX2, fastF16F16AVX512, exactF16F16AVX2, true, sameF16F16AVX2, sameF16F16AVX512},
	{tensor.BF16, tensor.F32}:  {fastBF16F32AVX2, fastBF16F32AVX512, exactBF16F32AVX2, false, nil, nil},
	{tensor.F32, tensor.BF16}:  {fastF32BF16AVX2, fastF32BF16AVX512, exactF32BF16AVX2, false, nil, nil},
	{tensor.F16, tensor.F32}:   {fastF16F32AVX2, fastF16F32AVX512, exactF16F32AVX2, false, nil, nil},
	{tensor.F32, tensor.F16}:   {fastF32F16AVX2, fastF32F16AVX512, exactF32F16AVX2, false, nil, nil},
}

// simd is the kernel in assembly for one pair of types.
type simd struct {
	forms
	types [2]tensor.DType // as which golden and actual are given to it
	lanes int             // the shortest row of the fast form for AVX2; that for AVX-512 needs twice as many
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
	s := &simd{forms: k, types: types, ok: true, lanes: 8}
	if k.half {
		s.lanes = 16
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

// narrow sets the tolerances in float32. Roundings there are below 2^−22 of the numbers. In sums without atol the tolerance of a subnormal
// bfloat16, a multiple of 2^−133, may be subnormal itself; with 2^−15 it is still on the safe side of its rounding to a multiple of 2^−149.
func (k *simd) narrow(tol Tolerance) {
	margin := 0x1p-20
	if tol.Atol == 0 {
		margin = 0x1p-15
	}
	for i, v := range []float64{tol.Atol, tol.Rtol} {
		k.ok = k.ok && (v == 0 || v > 0x1p-60 && v < 0x1p60)
		k.low[i], k.high[i] = float32(v*(1-margin)), float32(v*(1+margin))
	}
}

func (k *simd) rounded() bool { return k.half }

// block takes the sums of the fast form wherever that has them right, whatever the maxima so far are: sums do not depend on which core came
// first. Maxima and counters are those of the exact form where the fast one is not sure of them.
func (k *simd) block(p *pass, s *scratch, b span, thorough bool) tally {
	if b.cols < exactStep {
		return reference{}.block(p, s, b, thorough)
	}
	c := &s.call
	c.golden, c.actual = k.data(0, p.golden, s, b), k.data(1, p.actual, s, b)
	c.rows, c.cols = b.rows, b.cols
	fill4(&c.atol, p.tol.Atol)
	fill4(&c.rtol, p.tol.Rtol)
	rows := grow(&s.rows, b.rows)
	form, same := k.fast2, k.same2
	if isa == avx512 && b.cols >= 2*k.lanes {
		form, same = k.fast512, k.same512
	}
	if thorough || b.cols < k.lanes || p.n <= pieceLen {
		return k.careful(p, s, b, rows)
	}
	if n := b.len() * k.types[0].Size(); same != nil && bytes.Equal(unsafe.Slice((*byte)(c.golden), n), unsafe.Slice((*byte)(c.actual), n)) {
		if f, ok := k.same(same, c, rows); ok {
			return f
		}
	}
	f, sums, sure := k.fast(form, c, rows, p.abs.value(), p.rel.value())
	switch {
	case !sums:
		return k.careful(p, s, b, rows)
	case !sure:
		f2 := k.careful(p, s, b, grow(&s.rows2, b.rows))
		f.abs, f.rel, f.mismatches = f2.abs, f2.rel, f2.mismatches
		for i := range rows {
			rows[i].abs = s.rows2[i].abs
		}
	}
	return f
}

// fast calls a fast form. sums says that sums are right: all values are finite, and nothing was lost to the small range of float32. sure
// says that the counter of mismatches is, too, and that no maximum is above abs and rel.
func (k *simd) fast(form func(*byte), c *call, rows []rowFigures, abs, rel float64) (f tally, sums, sure bool) {
	c.out, c.answer = &rows[0], answer{}
	// |d| ≤ bound·max(|g|, relFloor) means that the relative error is not above rel, for all roundings, and where they are of subnormal numbers.
	switch {
	case !k.half && rel >= 1e-200:
		fill4(&c.bound, rel*(1-1e-15))
	case !k.half:
		fill4(&c.bound, 0)
	case rel >= 0x1p-60:
		fill8(&c.bound32, float32(min(rel, 0x1p100)*(1-0x1p-20)))
	default:
		fill8(&c.bound32, 0)
	}
	if k.half {
		fill8(&c.lowAtol, k.low[0])
		fill8(&c.lowRtol, k.low[1])
		fill8(&c.highAtol, k.high[0])
		fill8(&c.highRtol, k.high[1])
	}
	form((*byte)(unsafe.Pointer(c)))
	f = tally{finite: c.rows * c.cols, aa: total(&c.aa), ab: total(&c.ab), rel: -1}
	if k.half {
		sums, sure = k.check32(c, rows, &f, abs)
		return f, sums, sure && rel >= 0 && k.ok
	}
	for _, r := range rows {
		if !finite(r.dd) {
			return f, false, false
		}
		f.abs = max(f.abs, r.abs)
	}
	sure = rel >= 0
	for i, v := range c.rel {
		sure = sure && v <= 0
		f.mismatches += int(c.count[i])
	}
	return f, true, sure
}

// same calls a form for sides of the same bytes. ok says that all values are finite, and nothing was lost to the small range of float32.
func (k *simd) same(form func(*byte), c *call, rows []rowFigures) (f tally, ok bool) {
	c.out = &rows[0]
	form((*byte)(unsafe.Pointer(c)))
	least, most := 0.0, math.MaxFloat64
	if k.half {
		least, most = least32, most32
	}
	f.finite = c.rows * c.cols
	for i := range rows {
		rows[i].abs = 0
		if gg := rows[i].gg; !(gg >= least && gg <= most) {
			return f, false
		}
		f.aa += rows[i].gg
	}
	f.ab = f.aa
	return f, true
}

// Sums of squares in float32 are right between these.
const least32, most32 = 0x1p-90, 0x1p127

// check32 completes the figures of a form in float32.
func (k *simd) check32(c *call, rows []rowFigures, f *tally, abs float64) (sums, sure bool) {
	for _, r := range rows {
		if !(r.gg >= least32 && r.gg <= most32 && r.dd <= most32 && (r.dd >= least32 || r.abs == 0)) {
			return false, false
		}
		f.abs = max(f.abs, r.abs)
	}
	if !(f.aa >= least32 && f.aa <= most32) {
		return false, false
	}
	rel, low, high := (*[16]float32)(unsafe.Pointer(&c.rel)), (*[16]int32)(unsafe.Pointer(&c.count)), (*[16]int32)(unsafe.Pointer(&c.count2))
	sure = true
	for i, v := range rel {
		sure = sure && v <= 0 && low[i] == high[i]
		f.mismatches += int(low[i])
	}
	if f.abs > 0 { // 0 is exact
		sure = sure && f.abs < abs*(1-0x1p-22)
		f.abs = -1
	}
	return true, sure
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
	if f.finite > 0 {
		for _, r := range rows {
			f.abs = max(f.abs, r.abs)
		}
		f.rel = max(c.rel[0], c.rel[1], c.rel[2], c.rel[3])
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
