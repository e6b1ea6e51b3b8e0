package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// reach writes the form that finds elements: it leaves out those below a line of |g|, in float32.
func reach(p [2]source) {
	k := begin("reach",
		"sets found to the lanes of the first STEP elements whose |d| is neither below the low tolerance nor above "+
			"the high one, or to 0, and cols to what is left then; that is STEP times a number.", p, ymm, 4, 1)
	k.wide = true // one vector at a time, in order
	abs := k.abs()
	lanes := GP32()
	Label("loop")
	g := k.load(p[0], Mem{Base: k.ptr[0]}, nil)[0]
	d := k.load(p[1], Mem{Base: k.ptr[1]}, nil)[0]
	VSUBPS(g, d, d)
	VPAND(abs, d, d)
	VPAND(abs, g, g)
	VMAXPS(floor32, g, g)
	t := YMM()
	VMOVUPS(k.at(lowAtol), t)
	VFMADD231PS(k.at(lowRtol), g, t)
	VCMPPS(Imm(notLess), t, d, t)
	most := YMM()
	VMOVUPS(k.at(highAtol), most)
	VFMADD231PS(k.at(highRtol), g, most)
	VCMPPS(Imm(notGreater), most, d, most)
	VPAND(most, t, t)
	VMOVMSKPS(t, lanes)
	for side := range k.ptr {
		ADDQ(Imm(uint64(k.step*p[side].size)), k.ptr[side])
	}
	SUBQ(Imm(uint64(k.step)), k.cols)
	TESTL(lanes, lanes)
	JNZ(LabelRef("end"))
	TESTQ(k.cols, k.cols)
	JNZ(LabelRef("loop"))
	Label("end")
	MOVQ(k.cols, k.at(cols))
	MOVL(lanes, k.at(found))
	VZEROUPPER()
	RET()
}
