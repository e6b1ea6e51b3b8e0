package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// count64 writes the form for finite float64 values that beat no maximum of relative errors.
func count64(p [2]source, w width) {
	k := begin("count",
		"takes rows of STEP elements or more. above > 0 where |d| > bound·max(|g|, 1e-10).", p, w, 8, 2)
	abs, ones := k.abs(), k.ones()
	atol, rtol, bound, least := k.constant(k.at(atol)), k.constant(k.at(rtol)), k.constant(k.at(bound)),
		k.constant(floor)
	v := k.zeroed(6)
	dd, gg, sum, biggest, beat, n := v[0], v[1], v[2], v[3], v[4], v[5]
	k.eachRow(0, func(mask *Mem) {
		for i := range 2 {
			m := maskOf(mask, i, w)
			g := k.load(p[0], Mem{Base: k.ptr[0], Disp: i * int(w)}, m)[0]
			a := k.load(p[1], Mem{Base: k.ptr[1], Disp: i * int(w)}, m)[0]
			d, t := k.w.vector(), k.w.vector()
			VSUBPD(g, a, d)
			VFMADD231PD(d, d, dd)
			VFMADD231PD(g, g, gg)
			VFMADD231PD(d, g, sum)
			and(abs, d, d)
			and(abs, g, g)
			VMAXPD(d, biggest, biggest)
			VMULPD(rtol, g, t) // no fused operation: counts are those of the scalar rule
			VADDPD(atol, t, t)
			k.countAbove(d, t, n, ones)
			VMAXPD(least, g, g)
			VFNMADD231PD(bound, g, d)
			VMAXPD(d, beat, beat)
		}
	}, nil, func() {
		k.storeSums(dd, gg)
		zero(dd)
		zero(gg)
	})
	k.store(sum, gd)
	k.store(beat, above)
	k.store(biggest, most)
	k.store(n, count)
	VZEROUPPER()
	RET()
}
