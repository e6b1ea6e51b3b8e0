// Kernelgen writes the assembly of package compare: run make kernel.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
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
	Generate()
}

func repeat(n int, c Constant) []Constant {
	out := make([]Constant, n)
	for i := range out {
		out[i] = c
	}
	return out
}
