package smallfloat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/goparity/goparity/internal/smallfloat"
)

// x448/float16, which others use, is the judge of binary16: of every value, of numbers beside each of
// them and each middle between two, and of random ones.
func TestAnotherLibraryAgrees(t *testing.T) {
	same := func(want, got float32) bool {
		return math.Float32bits(want) == math.Float32bits(got) || want != want && got != got
	}
	table := smallfloat.F16()
	for i, v := range table {
		require.True(t, same(float16.Frombits(uint16(i)).Float32(), v), "%#x is %v", i, v)
	}
	check := func(v float32) {
		want := float16.Fromfloat32(v)
		got := smallfloat.RoundF16(v)
		require.True(t, same(want.Float32(), got), "%v is rounded to %v, not to %v", v, got, want)
		if v == v {
			require.Equal(t, want.Bits(), smallfloat.PutF16(got), "bits of %v", v)
		}
	}
	for i := range table[:0x7c00] {
		middle := (table[i] + table[i+1]) / 2
		if i == 0x7bff {
			middle = 65520 // on the way to infinity
		}
		for _, v := range []float32{table[i], middle} {
			for _, w := range []float32{math.Nextafter32(v, -1), v, math.Nextafter32(v, math.MaxFloat32)} {
				check(w)
				check(-w)
			}
		}
	}
	require.Equal(t, uint16(0x7e00), smallfloat.PutF16(float32(math.NaN()))&0x7fff)
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		check(math.Float32frombits(r.Uint32()))
	}
}

// Each value of 8 bits is itself, and what lies between two is the nearer one, in the middle the even one.
func TestRoundE4M3FN(t *testing.T) {
	table := smallfloat.F8().E4M3FN
	for i, v := range table[:0x7e] {
		next := table[i+1]
		middle := (v + next) / 2
		even := v
		if i%2 == 1 {
			even = next
		}
		for _, tt := range []struct{ x, want float32 }{{v, v}, {middle, even}, {math.Nextafter32(middle, 0), v}, {math.Nextafter32(middle, 500), next}} {
			require.Equal(t, tt.want, smallfloat.RoundE4M3FN(tt.x), "%v", tt.x)
			require.Equal(t, -tt.want, smallfloat.RoundE4M3FN(-tt.x), "%v", -tt.x)
		}
	}
	for _, x := range []float32{448, 460, 1e9, float32(math.Inf(1))} {
		require.EqualValues(t, 448, smallfloat.RoundE4M3FN(x))
	}
	require.True(t, math.IsNaN(float64(smallfloat.RoundE4M3FN(float32(math.NaN())))))
}
