package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Rows of a tile: with two vectors of columns these are 12 sums, which with their operands fill the
// sixteen registers.
const tileRows = 6

// tile writes dst += aᵀ·b of tileRows × two vectors, for package replay.
func tile(name, number string, bytes int, broadcast, multiply, add func(...Op)) {
	TEXT(name, NOSPLIT, "func(dst *"+number+", stride int, a *"+number+", b *"+number+", k int)")
	Doc(name + " is tile in assembly.")
	Pragma("noescape")
	load := func(p string) Register { return Load(Param(p), GP64()) }
	dst, stride, a, b, k := load("dst"), load("stride"), load("a"), load("b"), load("k")
	var sums [tileRows][2]VecVirtual
	for i := range sums {
		for j := range sums[i] {
			sums[i][j] = YMM()
			VXORPS(sums[i][j], sums[i][j], sums[i][j])
		}
	}
	y := [2]VecVirtual{YMM(), YMM()}
	Label("loop")
	for j, v := range y {
		VMOVUPS(Mem{Base: b, Disp: 32 * j}, v)
	}
	for i := range sums {
		x := YMM()
		broadcast(Mem{Base: a, Disp: bytes * i}, x)
		for j, v := range y {
			multiply(v, x, sums[i][j])
		}
	}
	ADDQ(Imm(uint64(tileRows*bytes)), a)
	ADDQ(Imm(64), b)
	DECQ(k)
	JNZ(LabelRef("loop"))
	for i := range sums {
		for j, v := range sums[i] {
			at := Mem{Base: dst, Disp: 32 * j}
			add(at, v, v)
			VMOVUPS(v, at)
		}
		if i < tileRows-1 {
			LEAQ(Mem{Base: dst, Index: stride, Scale: uint8(bytes)}, dst)
		}
	}
	VZEROUPPER()
	RET()
}
