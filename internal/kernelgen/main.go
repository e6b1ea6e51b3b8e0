// Kernelgen writes the assembly of packages compare and replay, whichever -pkg names: run make kernel.
package main

import (
	"flag"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets in compare.call.
const (
	golden, actual   = 0, 8
	rows, cols       = 16, 24
	out              = 32
	atol, rtol       = 64, 96   // [4]float64
	lowAtol, lowRtol = 128, 160 // [8]float32
	highAtol         = 192      // [8]float32
	highRtol         = 224      // [8]float32
	aa, ab           = 256, 288 // [4]float64
	most, ratio      = 320, 352 // [8]float32, or [4]float64
	count            = 384      // [8]int32, or [4]int64
	doubt            = 416      // [8]int32
	finite           = 448      // [8]int32, or [4]int64
	nanG, infG, nanA = 480, 512, 544
	infA, bad        = 576, 608 // [8]int32, or [4]int64
	wide, nanEqual   = 640, 736 // [3][4]float64; [8]uint32
	known, count2    = 768, 800 // [8]float32; [8]int32
)

// rowSize is the size of compare.rowSums: Σd², Σg².
const rowSize = 16

// terms is how many vectors a float32 sum takes before it goes to float64. Its relative error is
// below terms·2^−24, and for terms of one size below half of that, 1e-6.
const terms = 32

// ahead is the distance, in bytes, at which memory is prefetched: the processor's own prefetch is
// too short here. 1024 to 4096 are about as good.
const ahead = 2048

// Predicates of comparisons.
const (
	equal     = 0
	unordered = 3
	ordered   = 7
	greater   = 30
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
var absMask64, absMask32, infinity64, infinity32, floor64, floor32, tail Mem

func main() {
	ConstraintExpr("amd64")
	if flag.Parse(); flag.Lookup("pkg").Value.String() == "replay" {
		tile("tile32AVX2", "float32", 4, VBROADCASTSS, VFMADD231PS, VADDPS)
		tile("tile64AVX2", "float64", 8, VBROADCASTSD, VFMADD231PD, VADDPD)
	} else {
		comparisons()
	}
	Generate()
}

// comparisons writes the kernels of package compare.
func comparisons() {
	data := func(name string, values ...Constant) Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i, v := range values {
			DATA(i*v.Bytes(), v)
		}
		return m
	}
	absMask64 = data("absMask64", repeat(4, U64(1<<63-1))...)
	absMask32 = data("absMask32", repeat(8, U32(1<<31-1))...)
	infinity64 = data("infinity64", repeat(4, U64(0x7ff<<52))...)
	infinity32 = data("infinity32", repeat(8, U32(0xff<<23))...)
	floor64 = data("floor64", repeat(4, F64(1e-10))...)
	floor32 = data("floor32", repeat(8, F32(1e-10))...)
	tail = data("tailMask", append(repeat(16, U64(0)), repeat(16, U64(1<<64-1))...)...)

	for _, s := range []source{f32, bf16, f16} {
		quick(s, false)
		quick(s, true)
	}
	careful(f32)
	careful(f64)
	odd(f32)
	odd(f64)
	widen(bf16)
	widen(f16)
	squares()
}

func repeat(n int, c Constant) []Constant { return slices.Repeat([]Constant{c}, n) }

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

// oneRow writes the loop over one row of whole steps, after each of which pointers move by some bytes.
func (k *kernel) oneRow(body func(), by ...int) {
	Label("loop")
	body()
	for i, n := range by {
		ADDQ(Imm(uint64(n)), k.ptr[i])
	}
	SUBQ(Imm(uint64(k.step)), k.cols)
	JNZ(LabelRef("loop"))
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
