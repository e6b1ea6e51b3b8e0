package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// same writes the form for a block whose two sides have the same bytes: it takes Σg² alone.
func same(p [2]source, w width) {
	lane := 8
	if p[0].size == 2 {
		lane = 4
	}
	k := begin("same", "takes rows of STEP elements or more, and of golden alone: only Σg² of rows is not zero.", p,
		w, lane, 2)
	k.sides = 1
	var high Op
	if lane == 4 {
		high = k.constant(highHalf)
	}
	v := k.zeroed(4)
	sums, wide, none := v[:2], v[2], v[3]
	square := func(i int, v VecVirtual) {
		if lane == 8 {
			VFMADD231PD(v, v, sums[i])
		} else {
			VFMADD231PS(v, v, sums[i])
		}
	}
	turn := func() {
		for _, s := range sums {
			k.widen(s, wide)
		}
	}
	perTurn := terms
	if lane == 8 {
		turn, perTurn = nil, 0
	}
	k.eachRow(perTurn, func(mask *Mem) {
		if p[0] == bf16 {
			v := k.load(bf16, Mem{Base: k.ptr[0]}, mask)
			square(0, v[0])
			and(high, v[1], v[1])
			square(1, v[1])
			return
		}
		for i := range 2 {
			square(i, k.load(p[0], Mem{Base: k.ptr[0], Disp: i * int(w) / lane * p[0].size}, maskOf(mask, i, w))[0])
		}
	}, turn, func() {
		if lane == 8 {
			VADDPD(sums[0], sums[1], wide)
			zero(sums[0])
			zero(sums[1])
		}
		k.storeSums(none, wide)
		zero(wide)
	})
	VZEROUPPER()
	RET()
}
