package main

import (
	"math/bits"
	"strconv"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

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
	lane   int  // bytes of a number in arithmetic: 8 or 4
	step   int  // elements of an iteration
	sides  int  // that are read
	wide   bool // a side has more than 16 bits: sums are of float64
	c      Register
	ptr    [2]Register
	rows   Register
	cols   Register
	out    Register
}

func begin(name, doc string, p [2]source, w width, lane, vectors int) *kernel {
	name += p[0].name + p[1].name + map[width]string{ymm: "AVX2", zmm: "AVX512"}[w]
	TEXT(name, NOSPLIT, "func(c *byte)")
	k := &kernel{source: p, w: w, lane: lane, step: vectors * int(w) / lane, sides: 2, wide: p[0].size+p[1].size > 4}
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

// constant returns a vector of a constant that is stored as 32 bytes of copies: in a register for
// AVX-512, which has enough of them.
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

// load returns the numbers that start at m: a vector, or two of bfloat16 in float32 arithmetic, of
// which the second has yet to be cleaned. mask, if any, points at that of the first number.
func (k *kernel) load(s source, m Mem, mask *Mem) []VecVirtual {
	v := k.w.vector()
	if s == bf16 && k.lane == 4 && !k.wide {
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
	case k.lane == 4 && s == f32:
		VMOVUPS(m, v)
	case k.lane == 4 && s == f16:
		VCVTPH2PS(m, v)
	case k.lane == 4:
		VPMOVZXWD(m, v)
		VPSLLD(Imm(16), v, v)
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

// eachRow writes the loops. body takes the elements at the pointers; in the last, partial step of a
// row they point at the last full vectors of the row, and mask clears what was taken before.
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
	for side := range k.sides {
		PREFETCHT0(Mem{Base: k.ptr[side], Disp: ahead})
	}
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
	if k.lane == 4 && k.source[0] == bf16 && !k.wide {
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

// folded adds the halves of a ZMM vector; the result is a YMM one.
func (k *kernel) folded(v VecVirtual) VecVirtual {
	if k.w == ymm {
		return v
	}
	h := YMM()
	VEXTRACTF64X4(Imm(1), v, h)
	VADDPD(h, v.AsY(), h)
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

// half returns a half of the float32 lanes of x as float64.
func (k *kernel) half(x VecVirtual, half int) VecVirtual {
	v := k.w.vector()
	switch {
	case half == 0 && k.w == zmm:
		VCVTPS2PD(x.AsY(), v)
	case half == 0:
		VCVTPS2PD(x.AsX(), v)
	case k.w == zmm:
		h := YMM()
		VEXTRACTF32X8(Imm(1), x, h)
		VCVTPS2PD(h, v)
	default:
		h := XMM()
		VEXTRACTF128(Imm(1), x, h)
		VCVTPS2PD(h, v)
	}
	return v
}

// widen adds the float32 lanes of s to the float64 lanes of sum, and clears s.
func (k *kernel) widen(s, sum VecVirtual) {
	x, y := k.half(s, 0), k.half(s, 1)
	VADDPD(x, y, y)
	VADDPD(y, sum, sum)
	zero(s)
}

// storeSums stores the sums over the lanes of two vectors as those of the row.
func (k *kernel) storeSums(dd, gg VecVirtual) {
	dd, gg = k.folded(dd), k.folded(gg)
	l, h, x := YMM(), YMM(), XMM()
	VUNPCKLPD(gg, dd, l) // d0 g0 d2 g2
	VUNPCKHPD(gg, dd, h) // d1 g1 d3 g3
	VADDPD(l, h, h)
	k.upperX(h, x)
	VADDPD(h.AsX(), x, x)
	VMOVUPD(x, Mem{Base: k.out})
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

// countAbove adds 1 to the lanes of n in which x > limit, and spoils limit.
func (k *kernel) countAbove(x, limit, n, one VecVirtual) {
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

// ones is a vector of integers 1 for countAbove.
func (k *kernel) ones() VecVirtual {
	if k.w == ymm {
		return nil
	}
	if k.lane == 8 {
		return k.constant(one64).(VecVirtual)
	}
	return k.constant(one32).(VecVirtual)
}

// abs is the mask of absolute values, in a register.
func (k *kernel) abs() VecVirtual {
	m := absMask64
	if k.lane == 4 {
		m = absMask32
	}
	if k.w == zmm {
		return k.constant(m).(VecVirtual)
	}
	v := YMM()
	VMOVDQU(m, v)
	return v
}
