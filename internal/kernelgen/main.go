// Kernelgen writes the assembly of package compare: run make kernel.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// Offsets in compare.call.
const (
	golden, actual = 0, 8
	rows, cols     = 16, 24
	out            = 32
	atol, rtol     = 64, 96        // [4]float64
	bound          = 128           // [4]float64
	lowAtol        = 160           // [8]float32
	lowRtol        = 192           // [8]float32
	highAtol       = 224           // [8]float32
	highRtol       = 256           // [8]float32
	bound32        = 288           // [8]float32
	aa, ab, gd     = 320, 384, 448 // [8]float64
	above, most    = 512, 576      // [8]float64 or [16]float32
	count, count2  = 640, 704      // [8]int64 or [16]int32
	found          = 768           // uint32
)

// rowSize is the size of compare.rowFigures: Σd², Σg².
const rowSize = 16

// terms is how many vectors a float32 sum takes before it goes to float64. Its relative error is
// below terms·2^−24, and for terms of one size below half of that, 1e-6.
const terms = 32

// ahead is the distance, in bytes, at which memory is prefetched: the processor's own prefetch is
// too short here. 1024 to 4096 are about as good.
const ahead = 2048

// Predicates of comparisons.
const (
	greater    = 30
	ordered    = 7
	notLess    = 21
	notGreater = 26
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
	floor32 = data("floor32", repeat(8, F32(0x1p-34))...) // less than 1e-10, and exact in products
	one64 = data("one64", U64(1))
	one32 = data("one32", U32(1))
	tail = data("tailMask", append(repeat(16, U64(0)), repeat(16, U64(1<<64-1))...)...)

	for _, p := range [][2]source{{f32, f32}, {f64, f64}, {bf16, bf16}, {f16, f16}, {bf16, f32}, {f32, bf16},
		{f16, f32}, {f32, f16}} {
		for _, w := range []width{ymm, zmm} {
			if p[0] == f64 {
				count64(p, w)
			} else {
				fast(p, w, false)
				fast(p, w, true)
			}
			if p[0] == p[1] {
				same(p, w)
			}
		}
		exact(p)
		if p[0] != f64 {
			reach(p)
		}
	}
	for _, src := range []source{f32, f64, bf16, f16} {
		stats(src)
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
