package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const carefulDoc = "of any values: pairs that are not finite are left out. finite is the number of the others, and count " +
	"of those outside the tolerance."

// carefulForm adds and counts in float64.
type carefulForm struct {
	*kernel
	dd, gg, sa, sb, n, kept, most, ratios VecVirtual
}

func newCareful(s source) *carefulForm {
	k, v := begin("careful", carefulDoc, s), zeroed(8)
	return &carefulForm{k, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]}
}

// careful32 has maxima of float32, ratios rounded up.
func careful32() {
	c := newCareful(f32)
	c.write(VSUBPS, VCMPPS, VPSUBD, func(g, a VecVirtual) {
		for i := range 2 {
			c.sums(half(g, nil, i), half(a, nil, i))
		}
		VSUBPS(g, a, a)
		VPAND(absMask, a, a)
		VPAND(absMask, g, g)
		VPMAXUD(a, c.most, c.most)
		VPMAXUD(floor, g, g)
		q := YMM()
		VDIVPS(g, a, q)
		VFMSUB132PS(q, a, g) // negative where the ratio was rounded down: up, so that quick can tell
		VPSRAD(Imm(31), g, g)
		VPSUBD(g, q, q)
		VPMINUD(infinity, q, q)
		VPMAXUD(q, c.ratios, c.ratios)
	})
}

// careful64 does everything in float64.
func careful64() {
	c := newCareful(f64)
	c.write(VSUBPD, VCMPPD, VPSUBQ, func(g, a VecVirtual) {
		c.sums(g, a)
		VMAXPD(a, c.most, c.most)
		VMAXPD(floor64, g, g)
		VDIVPD(g, a, a)
		VMAXPD(a, c.ratios, c.ratios)
	})
}

// write writes the kernel. take is given the pairs of finite values, and zeros for the others.
func (c *carefulForm) write(subtract, compare, less func(...Op), take func(g, a VecVirtual)) {
	c.eachRow(0, c.lane, func(mask *Mem) {
		g, _ := c.load(0, 0)
		a, _ := c.load(1, 0)
		d, t := YMM(), YMM()
		subtract(g, g, d)
		subtract(a, a, t)
		compare(Imm(ordered), d, t, t)
		if mask != nil {
			VPAND(*mask, t, t)
		}
		less(t, c.kept, c.kept)
		VPAND(t, g, g)
		VPAND(t, a, a)
		take(g, a)
	}, nil, func() { c.storeSums(c.dd, c.gg) })
	VMOVUPD(c.sa, c.at(aa))
	VMOVUPD(c.sb, c.at(ab))
	VMOVUPD(c.most, c.at(most))
	VMOVUPD(c.ratios, c.at(ratio))
	VMOVUPD(c.n, c.at(count))
	VMOVUPD(c.kept, c.at(finite))
	VZEROUPPER()
	RET()
}

// sums takes a pair of finite values, spoils it and leaves |d| in a and |g| in g.
func (c *carefulForm) sums(g, a VecVirtual) {
	VFMADD231PD(g, g, c.gg)
	VFMADD231PD(a, a, c.sa)
	VFMADD231PD(a, g, c.sb)
	VSUBPD(g, a, a)
	VFMADD231PD(a, a, c.dd)
	VPAND(absMask64, a, a)
	VPAND(absMask64, g, g)
	t := YMM()
	VMULPD(c.at(rtol), g, t) // no fused operation: counts are those of the scalar rule
	VADDPD(c.at(atol), t, t)
	VCMPPD(Imm(greater), t, a, t)
	VPSUBQ(t, c.n, c.n)
}
