// Quant writes the assembly of package internal/quant: run make kernel.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Constants in memory.
var (
	low4, eight Mem // 15 and 8 in each lane
	half, one   Mem // 0x7fff and 1 in each lane
	upper       Mem // 0xffff0000 in each lane
	shift       Mem // what moves code i of a word down
	types       = []string{"F32", "F16", "BF16"}
)

func main() {
	ConstraintExpr("amd64")
	words := func(name string, value func(i int) uint32) Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(value(i)))
		}
		return m
	}
	low4 = words("low4", func(int) uint32 { return 15 })
	eight = words("eight", func(int) uint32 { return 8 })
	half = words("halfway", func(int) uint32 { return 0x7fff })
	one = words("one", func(int) uint32 { return 1 })
	upper = words("upper", func(int) uint32 { return 0xffff0000 })
	shift = words("shifts4", func(i int) uint32 { return uint32(4 * i) })

	q4_0()
	q8_0()
	affine4()
	for _, bits := range []int{4, 8} {
		for _, t := range types {
			affine(bits, t)
		}
	}
	chosen()
	Generate()
}

// function begins a function, and returns where its pointers are.
func function(name, signature, doc string, params ...string) []Register {
	TEXT(name, NOSPLIT, signature)
	Doc(name + " " + doc)
	Pragma("noescape")
	var out []Register
	for _, p := range params {
		out = append(out, Load(Param(p), GP64()))
	}
	return out
}

func end() {
	VZEROUPPER()
	RET()
}

// load returns a constant in a register.
func load(m Mem) VecVirtual {
	v := YMM()
	VMOVDQU(m, v)
	return v
}

// scale loads a binary16 into all lanes.
func scale(m Mem) VecVirtual {
	x, y, bits := XMM(), YMM(), GP32()
	MOVWLZX(m, bits)
	VMOVD(bits, x)
	VPBROADCASTW(x, x)
	VCVTPH2PS(x, y)
	return y
}

func q4_0() {
	p := function("q4_0AVX2", "func(dst *float32, src *byte, blocks int)", "is q4_0 for at least one block.", "dst", "src", "blocks")
	mask, zero := load(low4), load(eight)
	Label("loop")
	d := scale(Mem{Base: p[1]})
	for i := range 2 {
		q := YMM()
		VPMOVZXBD(Mem{Base: p[1], Disp: 2 + 8*i}, q)
		for half := range 2 {
			v := YMM()
			if half == 0 {
				VPAND(mask, q, v)
			} else {
				VPSRLD(Imm(4), q, v)
			}
			VPSUBD(zero, v, v)
			VCVTDQ2PS(v, v)
			VMULPS(d, v, v)
			VMOVUPS(v, Mem{Base: p[0], Disp: 64*half + 32*i})
		}
	}
	ADDQ(Imm(128), p[0])
	ADDQ(Imm(18), p[1])
	DECQ(p[2])
	JNZ(LabelRef("loop"))
	end()
}

func q8_0() {
	p := function("q8_0AVX2", "func(dst *float32, src *byte, blocks int)", "is q8_0 for at least one block.", "dst", "src", "blocks")
	Label("loop")
	d := scale(Mem{Base: p[1]})
	for i := range 4 {
		v := YMM()
		VPMOVSXBD(Mem{Base: p[1], Disp: 2 + 8*i}, v)
		VCVTDQ2PS(v, v)
		VMULPS(d, v, v)
		VMOVUPS(v, Mem{Base: p[0], Disp: 32 * i})
	}
	ADDQ(Imm(128), p[0])
	ADDQ(Imm(34), p[1])
	DECQ(p[2])
	JNZ(LabelRef("loop"))
	end()
}

func affine4() {
	p := function("affine4AVX2", "func(dst *float32, q *byte, scales *float32)", "is affine4; scales are d0, m0, d1, m1.", "dst", "q", "scales")
	mask := load(low4)
	var s [4]VecVirtual
	for i := range s {
		s[i] = YMM()
		VBROADCASTSS(Mem{Base: p[2], Disp: 4 * i}, s[i])
	}
	for i := range 4 {
		q := YMM()
		VPMOVZXBD(Mem{Base: p[1], Disp: 8 * i}, q)
		for half := range 2 {
			v := YMM()
			if half == 0 {
				VPAND(mask, q, v)
			} else {
				VPSRLD(Imm(4), q, v)
			}
			VCVTDQ2PS(v, v)
			VMULPS(s[2*half], v, v)
			VSUBPS(s[2*half+1], v, v)
			VMOVUPS(v, Mem{Base: p[0], Disp: 128*half + 32*i})
		}
	}
	end()
}

// affine writes the kernel of MLX's codes of some bits: round(round(q·s) + b).
func affine(bits int, t string) {
	name := map[int]string{4: "affine4", 8: "affine8"}[bits] + t + "AVX2"
	p := function(name, "func(dst *float32, codes *byte, n, groups int, scales, biases *float32)",
		"writes at least one group of n numbers, a positive multiple of 32.", "dst", "codes", "n", "groups", "scales", "biases")
	s, b := YMM(), YMM()
	var down, mask VecVirtual
	if bits < 8 {
		down, mask = load(shift), load(low4)
	}
	var c [3]VecVirtual
	if t == "BF16" {
		c = [3]VecVirtual{load(half), load(one), load(upper)}
	}
	Label("group")
	VBROADCASTSS(Mem{Base: p[4]}, s)
	VBROADCASTSS(Mem{Base: p[5]}, b)
	left := GP64()
	MOVQ(p[2], left)
	Label("loop")
	for i := range 4 {
		v := YMM()
		switch code := (Mem{Base: p[1], Disp: i * bits}); bits {
		case 8:
			VPMOVZXBD(code, v)
		case 4:
			VPBROADCASTD(code, v)
			VPSRLVD(down, v, v)
			VPAND(mask, v, v)
		}
		VCVTDQ2PS(v, v)
		VMULPS(s, v, v)
		round(t, v, c)
		VADDPS(b, v, v)
		round(t, v, c)
		VMOVUPS(v, Mem{Base: p[0], Disp: 32 * i})
	}
	ADDQ(Imm(128), p[0])
	ADDQ(Imm(uint64(4*bits)), p[1])
	SUBQ(Imm(32), left)
	JNZ(LabelRef("loop"))
	ADDQ(Imm(4), p[4])
	ADDQ(Imm(4), p[5])
	DECQ(p[3])
	JNZ(LabelRef("group"))
	end()
}

// round rounds to a type, to nearest and ties to even. NaN stays NaN, for the lower bits of those
// that come from bfloat16 are 0.
func round(t string, v VecVirtual, c [3]VecVirtual) {
	switch t {
	case "F16":
		x := XMM()
		VCVTPS2PH(Imm(0), v, x)
		VCVTPH2PS(x, v)
	case "BF16":
		odd := YMM()
		VPSRLD(Imm(16), v, odd)
		VPAND(c[1], odd, odd)
		VPADDD(c[0], v, v)
		VPADDD(odd, v, v)
		VPAND(c[2], v, v)
	}
}

func chosen() {
	p := function("chosenAVX2", "func(dst *float32, codes *byte, n int, table *float32)",
		"is chosen for n numbers, a positive multiple of 8.", "dst", "codes", "n", "table")
	down := load(shift)
	first, second := YMM(), YMM()
	VMOVUPS(Mem{Base: p[3]}, first)
	VMOVUPS(Mem{Base: p[3], Disp: 32}, second)
	Label("loop")
	v, a, b := YMM(), YMM(), YMM()
	VPBROADCASTD(Mem{Base: p[1]}, v)
	VPSRLVD(down, v, v)
	VPERMPS(first, v, a) // by the lowest three bits
	VPERMPS(second, v, b)
	VPSLLD(Imm(28), v, v)
	VBLENDVPS(v, b, a, a)
	VMOVUPS(a, Mem{Base: p[0]})
	ADDQ(Imm(32), p[0])
	ADDQ(Imm(4), p[1])
	SUBQ(Imm(8), p[2])
	JNZ(LabelRef("loop"))
	end()
}
