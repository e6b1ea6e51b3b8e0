package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// exact writes the form for all values: pairs that are not finite are left out, and the largest
// relative error is divided.
func exact(p [2]source) {
	k := begin("exact", "takes rows of STEP elements or more, of any values. count2 are the finite pairs.", p,
		ymm, 8, 1)
	abs := k.abs()
	v := k.zeroed(8)
	dd, gg, sa, sb, biggest, ratio, n, finite := v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
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
		VMAXPD(d, biggest, biggest)
		VMULPD(k.at(rtol), g, t)
		VADDPD(k.at(atol), t, t)
		k.countAbove(d, t, n, nil)
		VMAXPD(floor, g, g)
		VDIVPD(g, d, d)
		VMAXPD(d, ratio, ratio)
	}, nil, func() {
		k.storeSums(dd, gg)
		zero(dd)
		zero(gg)
	})
	for i, offset := range []int{aa, ab, above, most, count, count2} {
		k.store([]VecVirtual{sa, sb, ratio, biggest, n, finite}[i], offset)
	}
	VZEROUPPER()
	RET()
}
