package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets in compare.statsCall.
const (
	statsData, statsN, statsPivot = 0, 8, 16
	statsLanes                    = 32 // Σd, Σd², Σx², min, max, bad: [4]float64 each
)

// stats writes the kernel of the figures of one tensor: n elements, a multiple of 8 and not 0.
func stats(s source) {
	name := "stats" + s.name + "AVX2"
	TEXT(name, NOSPLIT, "func(c *byte)")
	Doc(name+" adds up a multiple of 8 elements; bad has a bit set where one is not finite.", "c is a *statsCall.")
	Pragma("noescape")
	k := &kernel{w: ymm, lane: 8, c: Load(Param("c"), GP64())}
	data, n := GP64(), GP64()
	MOVQ(k.at(statsData), data)
	MOVQ(k.at(statsN), n)
	pivot := YMM()
	VBROADCASTSD(k.at(statsPivot), pivot)
	lane := func(i int) Mem { return k.at(statsLanes + 32*i) }
	// Two of each sum, for an addition takes longer than the rest of a step.
	var d, dd, xx [2]VecVirtual
	for i := range 2 {
		d[i], dd[i], xx[i] = YMM(), YMM(), YMM()
		zero(d[i])
		zero(dd[i])
		zero(xx[i])
	}
	least, most, bad := YMM(), YMM(), YMM()
	VMOVUPD(lane(3), least)
	VMOVUPD(lane(4), most)
	zero(bad)
	Label("loop")
	PREFETCHT0(Mem{Base: data, Disp: ahead})
	for i := range 2 {
		x := k.load(s, Mem{Base: data, Disp: 4 * i * s.size}, nil)[0]
		y := YMM()
		VMINPD(x, least, least)
		VMAXPD(x, most, most)
		VFMADD231PD(x, x, xx[i])
		VSUBPD(x, x, y) // 0, or NaN where x is not finite
		VORPD(y, bad, bad)
		VSUBPD(pivot, x, y)
		VADDPD(y, d[i], d[i])
		VFMADD231PD(y, y, dd[i])
	}
	ADDQ(Imm(uint64(8*s.size)), data)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("loop"))
	for i, sums := range [][2]VecVirtual{d, dd, xx} {
		VADDPD(sums[0], sums[1], sums[0])
		VMOVUPD(sums[0], lane(i))
	}
	VMOVUPD(least, lane(3))
	VMOVUPD(most, lane(4))
	VMOVUPD(bad, lane(5))
	VZEROUPPER()
	RET()
}
