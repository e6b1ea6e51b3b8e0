package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const carefulDoc = "takes rows of STEP elements or more, of any values: pairs that are not finite are left out. finite is " +
	"the number of the others, and count of those outside the tolerance."

// careful adds and counts in float64. Maxima are of the source's own type; ratios of float32 are rounded up.
func careful(s source) {
	k := begin("careful", carefulDoc, s, s.size, 1)
	v := zeroed(8)
	dd, gg, sa, sb, n, kept, biggest, ratios := v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
	minus, compare, sub := VSUBPS, VCMPPS, VPSUBD
	if s == f64 {
		minus, compare, sub = VSUBPD, VCMPPD, VPSUBQ
	}
	k.eachRow(0, s.size, func(mask *Mem) {
		g, _ := k.load(0, 0)
		a, _ := k.load(1, 0)
		d, t := YMM(), YMM()
		minus(g, g, d)
		minus(a, a, t)
		compare(Imm(ordered), d, t, t)
		if mask != nil {
			VPAND(*mask, t, t)
		}
		sub(t, kept, kept)
		VPAND(t, g, g)
		VPAND(t, a, a)
		if s == f64 {
			k.sums(g, a, dd, gg, sa, sb, n)
			VMAXPD(a, biggest, biggest)
			VMAXPD(floor64, g, g)
			VDIVPD(g, a, a)
			VMAXPD(a, ratios, ratios)
			return
		}
		for i := range 2 {
			x, y := half(g, nil, i), half(a, nil, i)
			k.sums(x, y, dd, gg, sa, sb, n)
		}
		VSUBPS(g, a, a)
		VPAND(absMask32, a, a)
		VPAND(absMask32, g, g)
		VPMAXUD(a, biggest, biggest)
		VPMAXUD(floor32, g, g)
		q := YMM()
		VDIVPS(g, a, q)
		VFMSUB132PS(q, a, g) // negative where the ratio was rounded down: up, so that quick can tell
		VPSRAD(Imm(31), g, g)
		VPSUBD(g, q, q)
		VPMINUD(infinity32, q, q)
		VPMAXUD(q, ratios, ratios)
	}, nil, func() { k.storeSums(dd, gg) })
	k.storeAll(map[int]VecVirtual{aa: sa, ab: sb, most: biggest, ratio: ratios, count: n, finite: kept})
}

// sums takes a pair of finite values, spoils it and leaves |d| in a and |g| in g.
func (k *kernel) sums(g, a, dd, gg, sa, sb, n VecVirtual) {
	VFMADD231PD(g, g, gg)
	VFMADD231PD(a, a, sa)
	VFMADD231PD(a, g, sb)
	VSUBPD(g, a, a)
	VFMADD231PD(a, a, dd)
	VPAND(absMask64, a, a)
	VPAND(absMask64, g, g)
	t := YMM()
	VMULPD(k.at(rtol), g, t) // no fused operation: counts are those of the scalar rule
	VADDPD(k.at(atol), t, t)
	VCMPPD(Imm(greater), t, a, t)
	VPSUBQ(t, n, n)
}

// odd writes the form that counts the values that are not finite, and the pairs of such a value that
// do not match.
func odd(s source) {
	k := begin("odd", "takes cols elements, a multiple of STEP, in one row: NaN and infinities of both sides, and in bad the "+
		"pairs with one that do not match.", s, s.size, 1)
	v := zeroed(5)
	offsets := []int{nanG, infG, nanA, infA, bad}
	compare, sub := VCMPPS, VPSUBD
	abs, infinity := absMask32, infinity32
	if s == f64 {
		compare, sub = VCMPPD, VPSUBQ
		abs, infinity = absMask64, infinity64
	}
	k.oneRow(func() {
		var x, nan, inf [2]VecVirtual
		for side := range x {
			x[side], _ = k.load(side, 0)
			nan[side], inf[side] = YMM(), YMM()
			compare(Imm(unordered), x[side], x[side], nan[side])
			VPAND(abs, x[side], inf[side])
			compare(Imm(equal), infinity, inf[side], inf[side])
			sub(nan[side], v[2*side], v[2*side])
			sub(inf[side], v[2*side+1], v[2*side+1])
			VPOR(nan[side], inf[side], inf[side])
		}
		same := YMM()
		compare(Imm(equal), x[0], x[1], same)
		VPAND(nan[0], nan[1], nan[0])
		VPAND(k.at(nanEqual), nan[0], nan[0])
		VPOR(same, nan[0], nan[0])
		VPOR(inf[0], inf[1], inf[1])
		VPANDN(inf[1], nan[0], nan[0])
		sub(nan[0], v[4], v[4])
	}, width, width)
	to := map[int]VecVirtual{}
	for i, o := range offsets {
		to[o] = v[i]
	}
	k.storeAll(to)
}

// widen writes the form that makes float32 of a type of 16 bits.
func widen(s source) {
	k := begin("widen", "makes float32, at actual, of cols elements at golden, a multiple of STEP.", s, 4, 1)
	k.oneRow(func() {
		v, _ := k.load(0, 0)
		VMOVUPS(v, Mem{Base: k.ptr[1]})
	}, k.step*s.size, width)
	VZEROUPPER()
	RET()
}

// squares writes the form for integers of 32 bits that are equal on both sides.
func squares() {
	k := begin("squares", "adds the squares of cols elements at golden, a multiple of STEP.", source{"I32", 4}, 8, 2)
	v := zeroed(2)
	k.oneRow(func() {
		for i := range v {
			x := YMM()
			VCVTDQ2PD(Mem{Base: k.ptr[0], Disp: i * width / 2}, x)
			VFMADD231PD(x, x, v[i])
		}
	}, width)
	VADDPD(v[0], v[1], v[0])
	k.storeAll(map[int]VecVirtual{aa: v[0]})
}
