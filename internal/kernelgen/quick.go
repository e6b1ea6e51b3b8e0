package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// quick writes a form for finite values. |d| is of float32; sums are of float64, or of float32 where
// both sides have 16 bits. One that counts takes the pairs above each of two tolerances.
func quick(s source, counts bool) {
	name, doc := "quick", "takes rows of STEP elements or more, all finite. count is the number of |d| above the low tolerance; "+
		"doubt has a sign where one is above known times |g|."
	if counts {
		name, doc = "count", "is quick, and count2 is the number above the high tolerance."
	}
	vectors := 1
	if s != f32 {
		vectors = 2
	}
	q := &quickForm{kernel: begin(name, doc, s, 4, vectors), abs: YMM(), floor: YMM()}
	VMOVDQU(absMask32, q.abs)
	VMOVDQU(floor32, q.floor)
	v := zeroed(3)
	q.most, q.n, q.above = v[0], v[1], v[2]
	if counts {
		q.n2 = zeroed(1)[0]
	}
	if s == f32 {
		q.rows64()
	} else {
		q.rows32()
	}
}

type quickForm struct {
	*kernel
	abs, floor         VecVirtual
	most, n, n2, above VecVirtual // n2 is nil in a form that does not count
}

// take takes golden values and differences of float32, and spoils them. Numbers ≥ 0 are compared as
// integers, for which there are more units.
func (q *quickForm) take(g, d VecVirtual) {
	VPAND(q.abs, d, d)
	VPAND(q.abs, g, g)
	VPMAXUD(d, q.most, q.most)
	VPMAXUD(q.floor, g, g)
	t := YMM()
	above := func(atol, rtol int, n VecVirtual) {
		VMOVUPS(q.at(atol), t)
		VFMADD231PS(q.at(rtol), g, t)
		VPCMPGTD(t, d, t)
		VPSUBD(t, n, n)
	}
	above(lowAtol, lowRtol, q.n)
	if q.n2 != nil {
		above(highAtol, highRtol, q.n2)
	}
	VFMSUB132PS(q.at(known), d, g) // known·g − d
	VPOR(g, q.above, q.above)
}

func (q *quickForm) store(sa VecVirtual) {
	to := map[int]VecVirtual{aa: sa, most: q.most, count: q.n, doubt: q.above}
	if q.n2 != nil {
		to[count2] = q.n2
	}
	q.storeAll(to)
}

// rows64 adds in float64.
func (q *quickForm) rows64() {
	// The halves of a vector have sums of their own: one chain would have to wait for itself.
	v := zeroed(6)
	dd, gg, sa := v[:2], v[2:4], v[4:]
	q.eachRow(0, 4, func(mask *Mem) {
		g, mg := q.load(0, 0)
		a, ma := q.load(1, 0)
		at := [2]*Mem{&mg, &ma}
		if mask != nil {
			VPAND(*mask, g, g)
			VPAND(*mask, a, a)
			at = [2]*Mem{}
		}
		for j := range 2 {
			x, y := half(g, at[0], j), half(a, at[1], j)
			VFMADD231PD(x, x, gg[j])
			VFMADD231PD(y, y, sa[j])
			VSUBPD(x, y, y)
			VFMADD231PD(y, y, dd[j])
		}
		VSUBPS(g, a, a)
		q.take(g, a)
	}, nil, func() {
		VADDPD(dd[0], dd[1], dd[0])
		VADDPD(gg[0], gg[1], gg[0])
		q.storeSums(dd[0], gg[0])
		zero(dd[1])
		zero(gg[1])
	})
	VADDPD(sa[0], sa[1], sa[0])
	q.store(sa[0])
}

// rows32 adds in float32, and every few terms in float64.
func (q *quickForm) rows32() {
	sums := zeroed(3) // d², g², a²
	pair := func(g, a VecVirtual) {
		VFMADD231PS(g, g, sums[1])
		VFMADD231PS(a, a, sums[2])
		VSUBPS(g, a, a)
		VFMADD231PS(a, a, sums[0])
		q.take(g, a)
	}
	wide := func(i int) Mem { return q.at(wide + i*width) }
	clear := func(n int) {
		z := YMM()
		zero(z)
		for i := range n {
			VMOVUPD(z, wide(i))
		}
	}
	clear(3)
	q.eachRow(terms/2, 4, func(mask *Mem) {
		for i := range 2 {
			g, _ := q.load(0, i)
			a, _ := q.load(1, i)
			if mask != nil {
				m := mask.Offset(i * width)
				VPAND(m, g, g)
				VPAND(m, a, a)
			}
			pair(g, a)
		}
	}, func() {
		for i, s := range sums {
			x, y := half(s, nil, 0), half(s, nil, 1)
			VADDPD(x, y, y)
			VADDPD(wide(i), y, y)
			VMOVUPD(y, wide(i))
			zero(s)
		}
	}, func() {
		dd, gg := YMM(), YMM()
		VMOVUPD(wide(0), dd)
		VMOVUPD(wide(1), gg)
		q.storeSums(dd, gg)
		clear(2)
	})
	sa := YMM()
	VMOVUPD(wide(2), sa)
	q.store(sa)
}
