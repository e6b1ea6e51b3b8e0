package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// fast writes a form for finite values that beat no maximum of relative errors. It compares in
// float32 and adds in float32 or, if a side has more than 16 bits, in float64. A form that counts
// takes the pairs above each of two tolerances; another one tells only that there are some above
// the low one.
func fast(p [2]source, w width, counts bool) {
	name, doc := "fast", "takes rows of STEP elements or more. above has a sign where |d| > bound32·max(|g|, 2^-34), "+
		"count where |d| > the low tolerance."
	if counts {
		name = "count"
		doc = "takes rows of STEP elements or more. above has a sign where |d| > bound32·max(|g|, 2^-34); count and " +
			"count2 are those above the low and the high tolerance."
	}
	units := int(zmm / w) // of a step: with these it is a cache line of the larger type
	vectors := units
	if p[0].size+p[1].size == 4 {
		vectors *= 2
	}
	k := begin(name, doc, p, w, 4, vectors)
	f := &fastForm{kernel: k, units: units, counts: counts, abs: k.abs(), ones: k.ones()}
	f.lowA, f.lowR, f.highA, f.highR = k.constant(k.at(lowAtol)), k.constant(k.at(lowRtol)),
		k.constant(k.at(highAtol)), k.constant(k.at(highRtol))
	f.bound, f.least, f.high = k.constant(k.at(bound32)), k.constant(floor32), k.constant(highHalf)
	v := k.zeroed(3)
	f.most, f.above, f.n = v[0], v[1], v[2]
	if counts {
		f.n2 = k.zeroed(1)[0]
	}
	if f.wide {
		f.rows64()
	} else {
		f.rows32()
	}
	k.store(f.above, above)
	k.store(f.most, most)
	k.store(f.n, count)
	if counts {
		k.store(f.n2, count2)
	}
	VZEROUPPER()
	RET()
}

type fastForm struct {
	*kernel
	units                    int // of a step, each as many elements as float32 in a vector, or twice as many of 16 bits
	counts                   bool
	abs, ones                VecVirtual
	lowA, lowR, highA, highR Op
	bound, least, high       Op
	most, above, n, n2       VecVirtual
}

// compare takes golden values and differences of float32, and spoils them.
func (f *fastForm) compare(g, d VecVirtual) {
	and(f.abs, d, d)
	and(f.abs, g, g)
	VMAXPS(d, f.most, f.most)
	VMAXPS(f.least, g, g)
	t := f.w.vector()
	limit := func(a, r Op) {
		VMOVUPS(a, t)
		VFMADD231PS(r, g, t)
	}
	limit(f.lowA, f.lowR)
	if f.counts {
		f.countAbove(d, t, f.n, f.ones)
		limit(f.highA, f.highR)
		f.countAbove(d, t, f.n2, f.ones)
	} else {
		VSUBPS(d, t, t)
		or(t, f.n)
	}
	VFMSUB132PS(f.bound, d, g) // bound·g − d
	or(g, f.above)
}

func or(x, dst VecVirtual) {
	if dst.Size() == 64 {
		VPORD(x, dst, dst)
		return
	}
	VPOR(x, dst, dst)
}

// rows64 adds in float64.
func (f *fastForm) rows64() {
	// The halves of a vector have sums of their own: one chain would have to wait for itself.
	v := f.zeroed(6)
	dd, gg, sum := v[:2], v[2:4], v[4:]
	f.eachRow(0, func(mask *Mem) {
		for i := range f.units {
			var x [2]VecVirtual
			var at [2]Mem
			for side, s := range f.source {
				at[side] = Mem{Base: f.ptr[side], Disp: i * int(f.w) / 4 * s.size}
				x[side] = f.load(s, at[side], maskOf(mask, i, f.w))[0]
			}
			for half := range 2 {
				g, a := f.halfOf(0, x[0], at[0], half, mask), f.halfOf(1, x[1], at[1], half, mask)
				VSUBPD(g, a, a)
				VFMADD231PD(a, a, dd[half])
				VFMADD231PD(g, g, gg[half])
				VFMADD231PD(a, g, sum[half])
			}
			VSUBPS(x[0], x[1], x[1])
			f.compare(x[0], x[1])
		}
	}, nil, func() {
		VADDPD(dd[0], dd[1], dd[0])
		VADDPD(gg[0], gg[1], gg[0])
		f.storeSums(dd[0], gg[0])
		for _, s := range v[:4] {
			zero(s)
		}
	})
	VADDPD(sum[0], sum[1], sum[0])
	f.store(sum[0], gd)
}

// halfOf is half, from memory where that has float32: it takes no shuffle. x was loaded from at.
func (f *fastForm) halfOf(side int, x VecVirtual, at Mem, half int, mask *Mem) VecVirtual {
	if f.source[side] != f32 || mask != nil {
		return f.half(x, half)
	}
	v := f.w.vector()
	VCVTPS2PD(at.Offset(half*int(f.w)/2), v)
	return v
}

// rows32 adds in float32, and every few terms in float64.
func (f *fastForm) rows32() {
	sums, wide := f.zeroed(3), f.zeroed(3) // d², g², g·d
	pair := func(g, a VecVirtual) {
		VSUBPS(g, a, a)
		VFMADD231PS(a, a, sums[0])
		VFMADD231PS(g, g, sums[1])
		VFMADD231PS(a, g, sums[2])
		f.compare(g, a)
	}
	f.eachRow(terms/2/f.units, func(mask *Mem) {
		if f.source[0] == bf16 {
			for i := range f.units {
				m := maskOf(mask, i, f.w)
				g := f.load(bf16, Mem{Base: f.ptr[0], Disp: i * int(f.w)}, m)
				a := f.load(bf16, Mem{Base: f.ptr[1], Disp: i * int(f.w)}, m)
				pair(g[0], a[0])
				and(f.high, g[1], g[1])
				and(f.high, a[1], a[1])
				pair(g[1], a[1])
			}
			return
		}
		for i := range 2 * f.units {
			m := maskOf(mask, i, f.w)
			disp := i * int(f.w) / 4 * 2
			pair(f.load(f16, Mem{Base: f.ptr[0], Disp: disp}, m)[0], f.load(f16, Mem{Base: f.ptr[1], Disp: disp}, m)[0])
		}
	}, func() {
		for i, s := range sums {
			f.widen(s, wide[i])
		}
	}, func() {
		f.storeSums(wide[0], wide[1])
		zero(wide[0])
		zero(wide[1])
	})
	f.store(wide[2], gd)
}
