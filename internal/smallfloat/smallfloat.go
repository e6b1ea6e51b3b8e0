// Package smallfloat has the values of floating-point numbers of at most 16 bits, as tables.
package smallfloat

import (
	"math"
	"sync"
)

// F16 returns the value of each IEEE binary16.
var F16 = sync.OnceValue(func() *[1 << 16]float32 {
	var t [1 << 16]float32
	for i := range t {
		t[i] = decode(uint16(i), 16, 10, 15)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	t[0x7c00], t[0xfc00] = inf, -inf
	for i := 0x7c01; i <= 0x7fff; i++ {
		t[i], t[0x8000|i] = nan, nan
	}
	return &t
})

// Table has the value of each byte.
type Table = [256]float32

// Bytes are the values of types of 8 bits.
type Bytes struct {
	E4M3FN   Table // 1-4-3, bias 7, no infinity, 0x7f and 0xff are NaN
	E4M3FNUZ Table // 1-4-3, bias 8, no infinity, 0x80 is NaN
	E5M2     Table // 1-5-2, bias 15, IEEE infinities and NaN
	E5M2FNUZ Table // 1-5-2, bias 16, no infinity, 0x80 is NaN
	E8M0FNU  Table // 2^(x−127), 0xff is NaN
}

// F8 returns the tables of all types of 8 bits.
var F8 = sync.OnceValue(func() *Bytes {
	t := &Bytes{}
	nan := float32(math.NaN())
	for i := range 256 {
		b := uint16(i)
		t.E4M3FN[i] = decode(b, 8, 3, 7)
		t.E4M3FNUZ[i] = decode(b, 8, 3, 8)
		t.E5M2[i] = decode(b, 8, 2, 15)
		t.E5M2FNUZ[i] = decode(b, 8, 2, 16)
		t.E8M0FNU[i] = float32(math.Ldexp(1, i-127))
	}
	t.E4M3FNUZ[0x80], t.E5M2FNUZ[0x80] = nan, nan
	t.E4M3FN[0x7f], t.E4M3FN[0xff] = nan, nan
	for i, v := range []float32{float32(math.Inf(1)), nan, nan, nan} {
		t.E5M2[0x7c+i], t.E5M2[0xfc+i] = v, -v
	}
	t.E8M0FNU[0xff] = nan
	return t
})

// E2M1 has the values of floats of 4 bits: 1-2-1, bias 1, no infinity, no NaN. The sign is bit 3.
var E2M1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6,
	float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// decode returns the value of a float with sign, exponent and mantissa. The caller sets the special
// values.
func decode(b uint16, size, mantissa, bias int) float32 {
	sign := uint16(1) << (size - 1)
	m := float64(b & (1<<mantissa - 1))
	e := int(b&(sign-1)) >> mantissa
	scale := float64(int(1) << mantissa)
	v := math.Ldexp(m/scale, 1-bias)
	if e > 0 {
		v = math.Ldexp(1+m/scale, e-bias)
	}
	if b&sign != 0 {
		v = -v
	}
	return float32(v)
}

// PutF16 returns the bits of a float32 that is exact in binary16; NaN becomes the quiet one.
func PutF16(v float32) uint16 {
	b := math.Float32bits(v)
	sign, exp, m := uint16(b>>16)&0x8000, int(b>>23&0xff)-127, b&0x7fffff
	switch {
	case v != v:
		return sign | 0x7e00
	case exp == 128:
		return sign | 0x7c00
	case exp >= -14:
		return sign | uint16(exp+15)<<10 | uint16(m>>13)
	case exp < -24:
		return sign
	}
	return sign | uint16((m|1<<23)>>(-exp-1))
}

// RoundF16 rounds to a binary16, to nearest and ties to even. What is beyond 65504 becomes
// infinite.
func RoundF16(v float32) float32 {
	const least = 0x1p-14 // the smallest normal number
	b := math.Float32bits(v)
	switch a := math.Float32frombits(b &^ (1 << 31)); {
	case a < least: // multiples of 2⁻²⁴, as those of float32 between 1/2 and 1
		a = float32(a+0.5) - 0.5
		return math.Float32frombits(math.Float32bits(a) | b&(1<<31))
	case a < 65520:
		return math.Float32frombits((b + 0xfff + b>>13&1) &^ 0x1fff)
	case v != v:
		return v
	}
	return math.Float32frombits(b&(1<<31) | 0x7f800000)
}

// RoundBF16 rounds to a bfloat16, to nearest and ties to even.
func RoundBF16(v float32) float32 {
	if v != v {
		return v
	}
	b := math.Float32bits(v)
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

// RoundE4M3FN rounds to a float of 1-4-3, to nearest and ties to even. What is beyond 448 becomes that: it
// has no infinity.
func RoundE4M3FN(v float32) float32 {
	const least, most = 0x1p-6, 448 // the smallest normal number, and the largest
	b := math.Float32bits(v)
	switch a := math.Float32frombits(b &^ (1 << 31)); {
	case a < least: // multiples of 2⁻⁹, as those of float32 between 2¹⁴ and 2¹⁵
		a = float32(a+0x1p14) - 0x1p14
		return math.Float32frombits(math.Float32bits(a) | b&(1<<31))
	case a < most:
		return math.Float32frombits((b + 0x7ffff + b>>20&1) &^ 0xfffff)
	case v != v:
		return v
	}
	return float32(math.Copysign(most, float64(v)))
}
