package main

import (
	"math/bits"
	"strconv"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const width = 32 // bytes of a vector

// kernel is what the forms share. Both sides have one type.
type kernel struct {
	source source
	lane   int // bytes of a number in arithmetic: 8 or 4
	step   int // elements of an iteration
	c      Register
	ptr    [2]Register
	rows   Register
	cols   Register
	out    Register
}

func begin(name, doc string, s source, lane, vectors int) *kernel {
	name += s.name
	TEXT(name, NOSPLIT, "func(c *byte)")
	k := &kernel{source: s, lane: lane, step: vectors * width / lane}
	Doc(name + " " + strings.ReplaceAll(doc, "STEP", strconv.Itoa(k.step)))
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

func zero(v VecVirtual) { VPXOR(v, v, v) }

func zeroed(n int) []VecVirtual {
	vs := make([]VecVirtual, n)
	for i := range vs {
		vs[i] = YMM()
		zero(vs[i])
	}
	return vs
}

// load returns the number of the i-th vector at one side, as float64 or float32.
func (k *kernel) load(side, i int) (VecVirtual, Mem) {
	m := Mem{Base: k.ptr[side], Disp: i * width / k.lane * k.source.size}
	v := YMM()
	switch {
	case k.source == f16:
		VCVTPH2PS(m, v)
	case k.source == bf16:
		VPMOVZXWD(m, v)
		VPSLLD(Imm(16), v, v)
	case k.source == f32:
		VMOVUPS(m, v)
	case k.source == f64:
		VMOVUPD(m, v)
	}
	return v, m
}

// eachRow writes the loops. body takes the elements at the pointers; in the last, partial step of a
// row they point at the last full vectors of the row, and mask clears what was taken before.
func (k *kernel) eachRow(perTurn, maskLane int, body func(mask *Mem), turn, end func()) {
	left, n := GP64(), GP64()
	Label("row")
	MOVQ(k.cols, left)
	Label("turn")
	MOVQ(left, n)
	SHRQ(Imm(uint64(log2(k.step))), n)
	JZ(LabelRef("tail"))
	m := GP64()
	if perTurn > 0 {
		MOVQ(U32(perTurn), m)
		CMPQ(n, m)
		CMOVQGT(m, n)
	}
	MOVQ(n, m)
	SHLQ(Imm(uint64(log2(k.step))), m)
	SUBQ(m, left)
	Label("loop")
	for _, p := range k.ptr {
		PREFETCHT0(Mem{Base: p, Disp: ahead})
	}
	body(nil)
	bytes := Imm(uint64(k.step * k.source.size))
	for _, p := range k.ptr {
		ADDQ(bytes, p)
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
	back, at := GP64(), GP64()
	MOVQ(left, back)
	SHLQ(Imm(uint64(log2(k.source.size))), back)
	for _, p := range k.ptr {
		ADDQ(back, p)
		SUBQ(bytes, p)
	}
	LEAQ(tail, at)
	SHLQ(Imm(uint64(log2(maskLane))), left)
	ADDQ(left, at)
	body(&Mem{Base: at, Disp: 128 - k.step*maskLane})
	for _, p := range k.ptr {
		ADDQ(bytes, p)
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

// half returns a half of the float32 lanes of x as float64: from memory, where m is not nil and has
// them as they are, because that takes no shuffle.
func half(x VecVirtual, m *Mem, i int) VecVirtual {
	v := YMM()
	switch {
	case m != nil:
		VCVTPS2PD(m.Offset(i*width/2), v)
	case i == 0:
		VCVTPS2PD(x.AsX(), v)
	default:
		h := XMM()
		VEXTRACTF128(Imm(1), x, h)
		VCVTPS2PD(h, v)
	}
	return v
}

// storeSums stores the sums over the lanes of two vectors as those of the row, and clears them.
func (k *kernel) storeSums(dd, gg VecVirtual) {
	l, h, x := YMM(), YMM(), XMM()
	VUNPCKLPD(gg, dd, l) // d0 g0 d2 g2
	VUNPCKHPD(gg, dd, h) // d1 g1 d3 g3
	VADDPD(l, h, h)
	VEXTRACTF128(Imm(1), h, x)
	VADDPD(h.AsX(), x, x)
	VMOVUPD(x, Mem{Base: k.out})
	zero(dd)
	zero(gg)
}

func (k *kernel) storeAll(to map[int]VecVirtual) {
	for _, offset := range []int{aa, ab, most, ratio, count, count2, doubt, finite, nanG, infG, nanA, infA, bad} {
		if v, ok := to[offset]; ok {
			VMOVUPD(v, k.at(offset))
		}
	}
	VZEROUPPER()
	RET()
}
