// Kernelgen writes the assembly of package compare: run make kernel.
package main

import (
	"math/bits"
	"strconv"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets in compare.call.
const (
	golden, actual = 0, 8
	rows, cols     = 16, 24
	out            = 32
	atol, rtol     = 64, 96   // [4]float64
	bound          = 128      // [4]float64
	lowAtol        = 160      // [8]float32
	lowRtol        = 192      // [8]float32
	highAtol       = 224      // [8]float32
	highRtol       = 256      // [8]float32
	bound32        = 288      // [8]float32
	aa, ab         = 320, 384 // [8]float64
	rel            = 448      // [8]float64 or [16]float32
	count, count2  = 512, 576 // [8]int64 or [16]int32
	wideSums       = 640      // [4][4]float64: Σd², Σg² of the row, Σa², Σa·g of the call
)

// rowSize is the size of compare.rowFigures: Σd², Σg², the largest |d|.
const rowSize = 24

// terms is how many vectors a float32 sum takes before it goes to float64: its relative error is less than terms·2^−24.
const terms = 16

// Predicates of comparisons.
const (
	greater = 30
	ordered = 7
)

type source struct {
	name string
	size int
}

var (
	f64  = source{"F64", 8}
	f32  = source{"F32", 4}
	f16  = source{"F16", 2}
	bf16 = source{"BF16", 2}
)

// Constants in memory.
var absMask64, absMask32, highHalf, floor, floor32, one64, one32, tail Mem

func main() {
	ConstraintExpr("amd64")
	data := func(name string, values ...Constant) Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i, v := range values {
			DATA(i*v.Bytes(), v)
		}
		return m
	}
	absMask64 = data("absMask64", repeat(4, U64(1<<63-1))...)
	absMask32 = data("absMask32", repeat(8, U32(1<<31-1))...)
	highHalf = data("highHalf", repeat(8, U32(0xffff0000))...)
	floor = data("floor", repeat(4, F64(1e-10))...)
	floor32 = data("floor32", repeat(8, F32(1e-10))...)
	one64 = data("one64", U64(1))
	one32 = data("one32", U32(1))
	tail = data("tailMask", append(repeat(16, U64(0)), repeat(16, U64(1<<64-1))...)...)

	for _, p := range [][2]source{{f32, f32}, {f64, f64}, {bf16, bf16}, {f16, f16}, {bf16, f32}, {f32, bf16}, {f16, f32}, {f32, f16}} {
		lane := 8
		if p[0].size == 2 && p[1].size == 2 {
			lane = 4
		}
		fast(p, ymm, lane)
		fast(p, zmm, lane)
		exact(p)
		if p[0] == p[1] {
			same(p, ymm, lane)
			same(p, zmm, lane)
		}
	}
	Generate()
}

func repeat(n int, c Constant) []Constant {
	out := make([]Constant, n)
	for i := range out {
		out[i] = c
	}
	return out
}

type width int

const (
	ymm width = 32
	zmm width = 64
)

func (w width) vector() VecVirtual {
	if w == zmm {
		return ZMM()
	}
	return YMM()
}

// kernel is what the forms share.
type kernel struct {
	source [2]source
	w      width
	lane   int // bytes of a number in arithmetic: 8 or 4
	step   int // elements of an iteration
	sides  int // that are read
	c      Register
	ptr    [2]Register
	rows   Register
	cols   Register
	out    Register
}

func begin(name, doc string, p [2]source, w width, lane, vectors int) *kernel {
	name += p[0].name + p[1].name + map[width]string{ymm: "AVX2", zmm: "AVX512"}[w]
	TEXT(name, NOSPLIT, "func(c *byte)")
	k := &kernel{source: p, w: w, lane: lane, step: vectors * int(w) / lane, sides: 2}
	Doc(name+" "+strings.ReplaceAll(doc, "STEP", strconv.Itoa(k.step)), "c is a *call.")
	Pragma("noescape")
	k.c = Load(Param("c"), GP64())
	k.ptr[0], k.ptr[1], k.rows, k.cols, k.out = GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(k.at(golden), k.ptr[0])
	MOVQ(k.at(actual), k.ptr[1])
	MOVQ(k.at(rows), k.rows)
	MOVQ(k.at(cols), k.cols)
	MOVQ(k.at(out), k.out)
	return k
}

func (k *kernel) at(offset int) Mem { return Mem{Base: k.c, Disp: offset} }

func zero(v VecVirtual) {
	if v.Size() == 64 {
		VPXORQ(v, v, v)
		return
	}
	VPXOR(v, v, v)
}

func and(x Op, y, dst VecVirtual) {
	if dst.Size() == 64 {
		VPANDQ(x, y, dst)
		return
	}
	VPAND(x, y, dst)
}

// constant gives a vector of a constant that is stored as 32 bytes of copies: in a register for AVX-512, which has enough of them.
func (k *kernel) constant(m Mem) Op {
	if k.w == ymm {
		return m
	}
	v := ZMM()
	if k.lane == 8 {
		VBROADCASTSD(m, v)
	} else {
		VBROADCASTSS(m, v)
	}
	return v
}

// load gives the numbers that start at m: a vector, or two of bfloat16 in float32 arithmetic, of which the second has yet to be cleaned. mask,
// if any, points at that of the first number.
func (k *kernel) load(s source, m Mem, mask *Mem) []VecVirtual {
	v := k.w.vector()
	if s == bf16 && k.lane == 4 {
		odd := k.w.vector()
		if k.w == zmm {
			VMOVDQU32(m, odd)
		} else {
			VMOVDQU(m, odd)
		}
		if mask != nil {
			and(*mask, odd, odd)
		}
		VPSLLD(Imm(16), odd, v)
		return []VecVirtual{v, odd}
	}
	half := func() VecVirtual { // of half the width
		if k.w == zmm {
			return YMM()
		}
		return XMM()
	}
	switch {
	case k.lane == 4: // f16
		VCVTPH2PS(m, v)
	case s == f64:
		VMOVUPD(m, v)
	case s == f32:
		VCVTPS2PD(m, v)
	case s == f16:
		h := half()
		VCVTPH2PS(m, h)
		VCVTPS2PD(h, v)
	case s == bf16:
		h := half()
		VPMOVZXWD(m, h)
		VPSLLD(Imm(16), h, h)
		VCVTPS2PD(h, v)
	}
	if mask != nil {
		and(*mask, v, v)
	}
	return []VecVirtual{v}
}

// maskOf is the mask of the i-th vector.
func maskOf(mask *Mem, i int, w width) *Mem {
	if mask == nil {
		return nil
	}
	m := mask.Offset(i * int(w))
	return &m
}

// eachRow writes the loops. body takes the elements at the pointers; in the last, partial step of a row they point at the last full vectors of the
// row, and mask clears what was taken before.
func (k *kernel) eachRow(perTurn int, body func(mask *Mem), turn, end func()) {
	left, n := GP64(), GP64()
	Label("row")
	MOVQ(k.cols, left)
	Label("turn")
	MOVQ(left, n)
	SHRQ(Imm(uint64(log2(k.step))), n)
	JZ(LabelRef("tail"))
	if perTurn > 0 {
		m := GP64()
		MOVQ(U32(perTurn), m)
		CMPQ(n, m)
		CMOVQGT(m, n)
	}
	bytes := func(side int) int { return k.step * k.source[side].size }
	{
		m := GP64()
		MOVQ(n, m)
		SHLQ(Imm(uint64(log2(k.step))), m)
		SUBQ(m, left)
	}
	Label("loop")
	body(nil)
	for side := range k.sides {
		ADDQ(Imm(uint64(bytes(side))), k.ptr[side])
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	if turn != nil {
		turn()
		JMP(LabelRef("turn"))
	}
	Label("tail")
	TESTQ(left, left)
	JZ(LabelRef("end"))
	// Back to step elements before the end of the row.
	for side := range k.sides {
		back := GP64()
		MOVQ(left, back)
		SHLQ(Imm(uint64(log2(k.source[side].size))), back)
		ADDQ(back, k.ptr[side])
		SUBQ(Imm(uint64(bytes(side))), k.ptr[side])
	}
	lane := k.lane
	if k.lane == 4 && k.source[0] == bf16 {
		lane = 2 // masked before they are widened
	}
	at, base := GP64(), GP64()
	LEAQ(tail, base)
	MOVQ(left, at)
	SHLQ(Imm(uint64(log2(lane))), at)
	ADDQ(base, at)
	body(&Mem{Base: at, Disp: 128 - k.step*lane})
	for side := range k.sides {
		ADDQ(Imm(uint64(bytes(side))), k.ptr[side])
	}
	if turn != nil {
		turn()
	}
	Label("end")
	end()
	ADDQ(Imm(rowSize), k.out)
	DECQ(k.rows)
	JNZ(LabelRef("row"))
}

func log2(n int) int { return bits.Len(uint(n)) - 1 }

// upper adds or takes the maximum of the halves of a ZMM vector; the result is a YMM one.
func (k *kernel) upper(v VecVirtual, join func(x, y, dst Op)) VecVirtual {
	if k.w == ymm {
		return v
	}
	h := YMM()
	VEXTRACTF64X4(Imm(1), v, h)
	join(h, v.AsY(), h)
	return h
}

// upperX takes the upper half of a YMM vector.
func (k *kernel) upperX(v, x VecVirtual) {
	if k.w == zmm { // any of 32 registers
		VEXTRACTF64X2(Imm(1), v, x)
		return
	}
	VEXTRACTF128(Imm(1), v, x)
}

func addPD(x, y, dst Op) { VADDPD(x, y, dst) }
func maxPD(x, y, dst Op) { VMAXPD(x, y, dst) }

// widen adds the float32 lanes of s to the float64 lanes of sum, and clears s.
func (k *kernel) widen(s, sum VecVirtual) {
	if k.w == zmm {
		h, x, y := YMM(), ZMM(), ZMM()
		VCVTPS2PD(s.AsY(), x)
		VEXTRACTF32X8(Imm(1), s, h)
		VCVTPS2PD(h, y)
		VADDPD(x, y, y)
		VADDPD(y, sum, sum)
	} else {
		h, x, y := XMM(), YMM(), YMM()
		VCVTPS2PD(s.AsX(), x)
		VEXTRACTF128(Imm(1), s, h)
		VCVTPS2PD(h, y)
		VADDPD(x, y, y)
		VADDPD(y, sum, sum)
	}
	zero(s)
}

// storeSums stores the sums over the lanes of two YMM vectors.
func (k *kernel) storeSums(dd, gg VecVirtual) {
	l, h, x := YMM(), YMM(), XMM()
	VUNPCKLPD(gg, dd, l) // d0 g0 d2 g2
	VUNPCKHPD(gg, dd, h) // d1 g1 d3 g3
	VADDPD(l, h, h)
	k.upperX(h, x)
	VADDPD(h.AsX(), x, x)
	VMOVUPD(x, Mem{Base: k.out})
}

// storeMax64 stores the largest lane of a YMM vector, storeMax32 widens it.
func (k *kernel) storeMax64(v VecVirtual) {
	x, y := XMM(), XMM()
	k.upperX(v, x)
	VMAXPD(v.AsX(), x, x)
	VPERMILPD(Imm(1), x, y)
	VMAXSD(x, y, x)
	VMOVSD(x, Mem{Base: k.out, Disp: 16})
}

func (k *kernel) storeMax32(v VecVirtual) {
	x, y := XMM(), XMM()
	k.upperX(v, x)
	VMAXPS(v.AsX(), x, x)
	VPERMILPS(Imm(0b01001110), x, y)
	VMAXPS(x, y, x)
	VPERMILPS(Imm(0b10110001), x, y)
	VMAXSS(x, y, x)
	VCVTSS2SD(x, x, x)
	VMOVSD(x, Mem{Base: k.out, Disp: 16})
}

func (k *kernel) store(v VecVirtual, offset int) {
	VMOVUPD(v, k.at(offset))
}

func (k *kernel) zeroed(n int) []VecVirtual {
	vs := make([]VecVirtual, n)
	for i := range vs {
		vs[i] = k.w.vector()
		zero(vs[i])
	}
	return vs
}

// above adds 1 to the lanes of n in which x > limit.
func (k *kernel) above(x, limit, n, one VecVirtual) {
	switch {
	case k.w == ymm && k.lane == 8:
		VCMPPD(Imm(greater), limit, x, limit)
		VPSUBQ(limit, n, n)
	case k.w == ymm:
		VCMPPS(Imm(greater), limit, x, limit)
		VPSUBD(limit, n, n)
	case k.lane == 8:
		m := K()
		VCMPPD(Imm(greater), limit, x, m)
		VPADDQ(one, n, m, n)
	default:
		m := K()
		VCMPPS(Imm(greater), limit, x, m)
		VPADDD(one, n, m, n)
	}
}

// ones is a vector of integers 1 for above.
func (k *kernel) ones() VecVirtual {
	if k.w == ymm {
		return nil
	}
	v := ZMM()
	if k.lane == 8 {
		VPBROADCASTQ(one64, v)
	} else {
		VPBROADCASTD(one32, v)
	}
	return v
}

// fast writes the form for finite values that beat no maximum of relative errors. lane is the size of the numbers it calculates with.
func fast(p [2]source, w width, lane int) {
	doc := "takes rows of STEP elements or more. rel > 0 where |d| > bound·max(|g|, 1e-10)."
	if lane == 4 {
		doc = "takes rows of STEP elements or more, in float32. rel > 0 where |d| > bound32·max(|g|, 1e-10); count and count2 are those above the low and the high tolerance."
	}
	k := begin("fast", doc, p, w, lane, 2)
	var abs Op = absMask64
	if lane == 4 {
		abs = absMask32
	}
	if w == ymm {
		v := YMM()
		VMOVDQU(abs, v)
		abs = v
	} else {
		abs = k.constant(abs.(Mem))
	}
	ones := k.ones()
	if lane == 8 {
		atol, rtol, bound := k.constant(k.at(atol)), k.constant(k.at(rtol)), k.constant(k.at(bound))
		least := k.constant(floor)
		v := k.zeroed(7)
		dd, gg, sa, sb, most, beat, n := v[0], v[1], v[2], v[3], v[4], v[5], v[6]
		k.eachRow(0, func(mask *Mem) {
			lanes := int(w) / 8
			for i := range 2 {
				m := maskOf(mask, i, w)
				g := k.load(p[0], Mem{Base: k.ptr[0], Disp: i * lanes * p[0].size}, m)[0]
				a := k.load(p[1], Mem{Base: k.ptr[1], Disp: i * lanes * p[1].size}, m)[0]
				d, t := k.w.vector(), k.w.vector()
				VSUBPD(g, a, d)
				VFMADD231PD(d, d, dd)
				VFMADD231PD(g, g, gg)
				VFMADD231PD(a, a, sa)
				VFMADD231PD(a, g, sb)
				and(abs, d, d)
				and(abs, g, g)
				VMAXPD(d, most, most)
				VMULPD(rtol, g, t) // no fused operation: counts are those of the scalar rule
				VADDPD(atol, t, t)
				k.above(d, t, n, ones)
				VMAXPD(least, g, g)
				VFNMADD231PD(bound, g, d)
				VMAXPD(d, beat, beat)
			}
		}, nil, func() {
			k.storeSums(k.upper(dd, addPD), k.upper(gg, addPD))
			k.storeMax64(k.upper(most, maxPD))
			zero(dd)
			zero(gg)
			zero(most)
		})
		k.store(sa, aa)
		k.store(sb, ab)
		k.store(beat, rel)
		k.store(n, count)
		VZEROUPPER()
		RET()
		return
	}
	lowA, lowR, highA, highR := k.constant(k.at(lowAtol)), k.constant(k.at(lowRtol)), k.constant(k.at(highAtol)), k.constant(k.at(highRtol))
	b32 := k.constant(k.at(bound32))
	high, least := k.constant(highHalf), k.constant(floor32)
	v := k.zeroed(8)
	sums, most, beat, n, n2 := v[:4], v[4], v[5], v[6], v[7]
	var wide []VecVirtual // float64 sums: d², g² of the row; a², a·g of the call
	if w == zmm {
		wide = k.zeroed(4)
	} else {
		for i := range 4 {
			VMOVUPD(v[0], k.at(wideSums+32*i))
		}
	}
	k.eachRow(terms/2, func(mask *Mem) {
		pair := func(g, a VecVirtual) {
			d, t := k.w.vector(), k.w.vector()
			VSUBPS(g, a, d)
			VFMADD231PS(d, d, sums[0])
			VFMADD231PS(g, g, sums[1])
			VFMADD231PS(a, a, sums[2])
			VFMADD231PS(a, g, sums[3])
			and(abs, d, d)
			and(abs, g, g)
			VMAXPS(d, most, most)
			limit := func(a, r Op) {
				if w == ymm {
					VMOVUPS(a, t)
				} else {
					VMOVAPS(a, t)
				}
				VFMADD231PS(r, g, t)
			}
			limit(lowA, lowR)
			k.above(d, t, n, ones)
			limit(highA, highR)
			k.above(d, t, n2, ones)
			VMAXPS(least, g, g)
			VFNMADD231PS(b32, g, d)
			VMAXPS(d, beat, beat)
		}
		if p[0] == bf16 {
			gs := k.load(bf16, Mem{Base: k.ptr[0]}, mask)
			as := k.load(bf16, Mem{Base: k.ptr[1]}, mask)
			pair(gs[0], as[0])
			and(high, gs[1], gs[1])
			and(high, as[1], as[1])
			pair(gs[1], as[1])
			return
		}
		for i := range 2 {
			m := maskOf(mask, i, w)
			disp := i * int(w) / 4 * 2
			g := k.load(p[0], Mem{Base: k.ptr[0], Disp: disp}, m)[0]
			a := k.load(p[1], Mem{Base: k.ptr[1], Disp: disp}, m)[0]
			pair(g, a)
		}
	}, func() {
		for i, s := range sums {
			if w == zmm {
				k.widen(s, wide[i])
				continue
			}
			y, m := YMM(), k.at(wideSums+32*i)
			VMOVUPD(m, y)
			k.widen(s, y)
			VMOVUPD(y, m)
		}
	}, func() {
		if w == zmm {
			k.storeSums(k.upper(wide[0], addPD), k.upper(wide[1], addPD))
			zero(wide[0])
			zero(wide[1])
			h := YMM()
			VEXTRACTF32X8(Imm(1), most, h)
			VMAXPS(h, most.AsY(), h)
			k.storeMax32(h)
		} else {
			dd, gg := YMM(), YMM()
			VMOVUPD(k.at(wideSums), dd)
			VMOVUPD(k.at(wideSums+32), gg)
			k.storeSums(dd, gg)
			zero(dd)
			VMOVUPD(dd, k.at(wideSums))
			VMOVUPD(dd, k.at(wideSums+32))
			k.storeMax32(most)
		}
		zero(most)
	})
	if w == zmm {
		k.store(wide[2], aa)
		k.store(wide[3], ab)
	} else {
		for i, offset := range []int{aa, ab} {
			s := YMM()
			VMOVUPD(k.at(wideSums+64+32*i), s)
			k.store(s, offset)
		}
	}
	k.store(beat, rel)
	k.store(n, count)
	k.store(n2, count2)
	VZEROUPPER()
	RET()
}

// exact writes the form for all values: pairs that are not finite are left out, and the largest relative error is divided.
func exact(p [2]source) {
	k := begin("exact", "takes rows of STEP elements or more, of any values. count2 are the finite pairs.", p, ymm, 8, 1)
	abs := YMM()
	VMOVDQU(absMask64, abs)
	v := k.zeroed(8)
	dd, gg, sa, sb, most, ratio, n, finite := v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
	k.eachRow(0, func(mask *Mem) {
		g := k.load(p[0], Mem{Base: k.ptr[0]}, nil)[0]
		a := k.load(p[1], Mem{Base: k.ptr[1]}, nil)[0]
		d, t := YMM(), YMM()
		VSUBPD(g, g, d)
		VSUBPD(a, a, t)
		VCMPPD(Imm(ordered), d, t, t)
		if mask != nil {
			VPAND(*mask, t, t)
		}
		VPSUBQ(t, finite, finite)
		VPAND(t, g, g)
		VPAND(t, a, a)
		VSUBPD(g, a, d)
		VFMADD231PD(d, d, dd)
		VFMADD231PD(g, g, gg)
		VFMADD231PD(a, a, sa)
		VFMADD231PD(a, g, sb)
		VPAND(abs, d, d)
		VPAND(abs, g, g)
		VMAXPD(d, most, most)
		VMULPD(k.at(rtol), g, t)
		VADDPD(k.at(atol), t, t)
		k.above(d, t, n, nil)
		VMAXPD(floor, g, g)
		VDIVPD(g, d, d)
		VMAXPD(d, ratio, ratio)
	}, nil, func() {
		k.storeSums(dd, gg)
		k.storeMax64(most)
		zero(dd)
		zero(gg)
		zero(most)
	})
	for i, offset := range []int{aa, ab, rel, count, count2} {
		k.store([]VecVirtual{sa, sb, ratio, n, finite}[i], offset)
	}
	VZEROUPPER()
	RET()
}

// same writes the form for a block whose two sides have the same bytes: it takes Σg² alone.
func same(p [2]source, w width, lane int) {
	k := begin("same", "takes rows of STEP elements or more, and of golden alone: only Σg² of rows is not zero.", p, w, lane, 2)
	k.sides = 1
	var high Op
	if lane == 4 {
		high = k.constant(highHalf)
	}
	v := k.zeroed(4)
	sums, wide, none := v[:2], v[2], v[3]
	square := func(i int, v VecVirtual) {
		if lane == 8 {
			VFMADD231PD(v, v, sums[i])
		} else {
			VFMADD231PS(v, v, sums[i])
		}
	}
	turn := func() {
		for _, s := range sums {
			k.widen(s, wide)
		}
	}
	perTurn := terms
	if lane == 8 {
		turn, perTurn = nil, 0
	}
	k.eachRow(perTurn, func(mask *Mem) {
		if p[0] == bf16 {
			v := k.load(bf16, Mem{Base: k.ptr[0]}, mask)
			square(0, v[0])
			and(high, v[1], v[1])
			square(1, v[1])
			return
		}
		for i := range 2 {
			square(i, k.load(p[0], Mem{Base: k.ptr[0], Disp: i * int(w) / lane * p[0].size}, maskOf(mask, i, w))[0])
		}
	}, turn, func() {
		if lane == 8 {
			VADDPD(sums[0], sums[1], wide)
			zero(sums[0])
			zero(sums[1])
		}
		k.storeSums(none.AsY().(VecVirtual), k.upper(wide, addPD))
		VMOVSD(none.AsX(), Mem{Base: k.out, Disp: 16})
		zero(wide)
	})
	VZEROUPPER()
	RET()
}
