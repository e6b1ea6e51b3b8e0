package compare_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// forEachISA runs a test with the kernels in assembly, where this machine has them, and with that in
// Go.
func forEachISA(t *testing.T, f func(t *testing.T)) {
	t.Run("go", func(t *testing.T) {
		defer compare.UseAssembly(compare.UseAssembly(false))
		f(t)
	})
	forEachKernel(t, f)
}

// forEachKernel runs a test with the kernels in assembly.
func forEachKernel(t *testing.T, f func(t *testing.T)) {
	t.Run("assembly", func(t *testing.T) {
		if !compare.Assembly() {
			t.Skip("this CPU, or GODEBUG, has no AVX2")
		}
		f(t)
	})
}

// sameAsReference compares every metric with that of the kernel in Go.
func sameAsReference(t testing.TB, g, a *tensor.Tensor, tol compare.Tolerance) {
	want, err := compare.Reference(g, a, tol)
	require.NoError(t, err)
	got := tensors(t, g, a, tol)
	relative := precision(g, a)
	for _, f := range []struct {
		name      string
		want, got *float64
		absolute  float64
	}{
		{"mse", &want.MSE, &got.MSE, 0},
		{"rel_l2", &want.RelL2, &got.RelL2, 0},
		{"snr", &want.SNR, &got.SNR, 10 * relative},
		{"norm of golden", &want.NormGolden, &got.NormGolden, 0},
		{"norm of actual", &want.NormActual, &got.NormActual, 0},
		{"norm of difference", &want.NormDiff, &got.NormDiff, 0},
		{"worst row", &want.WorstRow.RelL2, &got.WorstRow.RelL2, 0},
		{"cosine distance", &want.CosineDistance, &got.CosineDistance, 4 * relative},
	} {
		if !near(*f.want, *f.got, 2*relative, f.absolute) {
			require.Failf(t, "not the metric of the reference", "%s: want %v, got %v", f.name, *f.want, *f.got)
		}
		*f.got = *f.want
	}
	if w, g := want.WorstRow, got.WorstRow; w.Index != g.Index { // rounding decides between equally bad rows
		got.WorstRow = w
	}
	require.Equal(t, want, got)
}

var floats = []tensor.DType{tensor.F64, tensor.F32, tensor.BF16, tensor.F16, tensor.F8E4M3FN, tensor.F8E5M2, tensor.I8,
	tensor.U8, tensor.I16, tensor.I32, tensor.I64, tensor.Bool}

// made makes a pair of tensors, element by element.
func made(tb testing.TB, gd, ad tensor.DType, shape []int, next func() (g, a float64)) (golden, actual *tensor.Tensor) {
	n, err := tensor.NumElems(shape)
	require.NoError(tb, err)
	var gb, ab []byte
	for range n {
		g, a := next()
		gb, ab = appendValue(gb, gd, g), appendValue(ab, ad, a)
	}
	return fromBytes(tb, gd, shape, gb), fromBytes(tb, ad, shape, ab)
}

// fromBits makes a tensor of any type from random bits. Most of its values are ordinary.
func fromBits(tb testing.TB, rnd *rand.Rand, d tensor.DType, shape []int, near *tensor.Tensor,
	special bool) *tensor.Tensor {
	n, err := tensor.NumElems(shape)
	require.NoError(tb, err)
	b := make([]byte, 0, n*d.Size())
	for i := range n {
		v := rnd.NormFloat64()
		if near != nil {
			v = near.At(i) * (1 + 1e-2*float64(rnd.IntN(3)-1))
		}
		if special && rnd.IntN(300) == 0 {
			v = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1e-39, 3e38}[rnd.IntN(6)]
		}
		b = appendValue(b, d, v)
	}
	return fromBytes(tb, d, shape, b)
}

func appendValue(b []byte, d tensor.DType, v float64) []byte {
	little := func(bits uint64) []byte {
		for i := range d.Size() {
			b = append(b, byte(bits>>(8*i)))
		}
		return b
	}
	f := math.Float32bits(float32(v))
	switch d {
	case tensor.F64:
		return little(math.Float64bits(v))
	case tensor.F32:
		return little(uint64(f))
	case tensor.BF16:
		return little(uint64(f >> 16))
	case tensor.F16: // truncated, from its normal range
		e := int(f>>23&0xff) - 127 + 15
		switch {
		case f>>23&0xff == 0xff && f&(1<<23-1) != 0:
			return little(0x7e00)
		case e >= 31:
			return little(uint64(f>>16&0x8000 | 0x7c00))
		case e <= 0:
			return little(uint64(f >> 16 & 0x8000))
		}
		return little(uint64(f>>16&0x8000) | uint64(e)<<10 | uint64(f>>13&0x3ff))
	case tensor.F8E4M3FN, tensor.F8E5M2:
		return little(uint64(f>>24&0x80 | f>>20&0x3f))
	case tensor.Bool:
		return little(uint64(f >> 31))
	default:
		return little(uint64(int64(math.Float64bits(20*min(max(v, -5), 5)) >> 40)))
	}
}

// Every kernel returns the metrics of the reference, for all pairs of types, and for every length
// from one element to more than four vectors.
func TestKernelsEqualTheReference(t *testing.T) {
	forEachKernel(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(3, 4))
		for _, gd := range floats {
			for _, ad := range floats {
				for _, shape := range [][]int{{1}, {3, 5}, {70, 129}, {2, 5000}} {
					for _, special := range []bool{false, true} {
						g := fromBits(t, rnd, gd, shape, nil, special)
						a := fromBits(t, rnd, ad, shape, g, special)
						for _, tol := range []compare.Tolerance{{}, {Atol: 1e-3, Rtol: 1e-2, EqualNaN: true},
							{Atol: 0.125, Rtol: 0.25}} {
							sameAsReference(t, g, a, tol)
						}
					}
				}
			}
		}
		for _, d := range []tensor.DType{tensor.F64, tensor.F32, tensor.BF16, tensor.F16} {
			for n := 1; n <= 4*32+1; n++ {
				shape := []int{compare.PieceLen/n + 1, n} // more than one block
				g := fromBits(t, rnd, d, shape, nil, false)
				sameAsReference(t, g, fromBits(t, rnd, d, shape, g, false), compare.Tolerance{Rtol: 1e-2})
			}
		}
	})
}

// Elements exactly on the tolerance, or a step from it, are counted according to the rule.
func TestTies(t *testing.T) {
	forEachISA(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(5, 6))
		for _, d := range []tensor.DType{tensor.F64, tensor.F32, tensor.BF16, tensor.F16} {
			for _, tol := range []compare.Tolerance{{}, {Atol: 0.25}, {Rtol: 1. / 128}, {Atol: 1. / 64, Rtol: 1. / 64},
				{Atol: 1e-30}, {Rtol: 1e300}} {
				for _, shape := range [][]int{{compare.PieceLen + 640}, {compare.PieceLen/64 + 10, 64}} {
					g, a := made(t, d, d, shape, func() (g, a float64) {
						v := float64(rnd.IntN(64)-32) / 16
						return v, v + (tol.Atol+tol.Rtol*math.Abs(v))*float64(rnd.IntN(3)-1)
					})
					sameAsReference(t, g, a, tol)
					s := naive(g, a, tol)
					r := tensors(t, g, a, tol)
					require.Equal(t, []int{s.mismatches, s.first, s.absAt, s.relAt},
						[]int{r.Mismatches, r.FirstMismatch, r.MaxAbs.Index, r.MaxRel.Index})
				}
			}
		}
	})
}

// The metrics depend on a few elements of each block: the largest difference again, or one that is
// larger by less than float32 can tell; the largest relative error; an element on the tolerance, or
// a step from it.
func TestFewThatMatter(t *testing.T) {
	forEachKernel(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(13, 14))
		tol := compare.Tolerance{Atol: 1. / 64, Rtol: 1. / 64}
		special := [][2]float64{
			{0, 0.0625}, {1, 1.0625}, {-1, -1.0625}, // the same difference
			{0x1p-30, 0.0625}, {0.0625, -0x1p-30}, {-0x1p-40, 0.0625},
			{-0x1p-20, 0.0625},                                  // the same in float32, or almost
			{0x1p-20, 0.0625}, {0x1p-21, 0.03125}, {0, 0x1p-30}, // the same relative error
			{1, 1.03125}, {1, 0.96875}, {-1, -1.03125}, {0.5, 0.5234375}, {0, 0.015625}, // on the tolerance
			{1, 1.0390625}, {0.25, 0.26953125}, {0, 0.01568603515625}, // a step above
			{1, 1}, {0, 0}, {1e30, 1e30}, {1e-40, 1e-40},
		}
		types := []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64}
		for _, gd := range types {
			for _, ad := range types {
				for _, each := range []int{100, 2000, 2000, 2000} { // more and fewer than are examined one by one
					for _, shape := range [][]int{{3*compare.PieceLen + 5}, {3 * compare.PieceLen / 64, 64},
						{3 * compare.PieceLen / 72, 72}} {
						rnd.Shuffle(len(special), func(i, j int) { special[i], special[j] = special[j], special[i] })
						g, a := made(t, gd, ad, shape, func() (g, a float64) {
							if rnd.IntN(each) == 0 {
								x := special[rnd.IntN(4)]
								return x[0], x[1]
							}
							v := float64(rnd.IntN(64)-32) / 32
							return v, v
						})
						sameAsReference(t, g, a, tol)
						sameAsReference(t, g, a, compare.Tolerance{})
						sameAsReference(t, g, a, compare.Tolerance{Rtol: 1. / 16})
					}
				}
			}
		}
	})
}

// Equal bytes on both sides are recognised block by block, and the metrics are those of the
// reference.
func TestSameBytes(t *testing.T) {
	forEachISA(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(11, 12))
		for _, d := range floats {
			for _, shape := range [][]int{{5000}, {90, 64}, {50, 129}, {3, 9000}} {
				for _, special := range []bool{false, true} {
					g := fromBits(t, rnd, d, shape, nil, special)
					a := g.Copy()
					sameAsReference(t, g, a, compare.Tolerance{})
					b, ok := a.Bytes()
					require.True(t, ok)
					b[len(b)/2] ^= 1 // one block differs
					sameAsReference(t, g, a, compare.Tolerance{EqualNaN: true})
				}
			}
		}
	})
}

// Sums in float32 are moved to float64 before their roundings, which all have the same sign here,
// add up to more than 1e-6.
func TestRoundingsOfHalves(t *testing.T) {
	forEachKernel(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(15, 16))
		for _, d := range []tensor.DType{tensor.BF16, tensor.F16} {
			for range 40 {
				n := 2 * compare.PieceLen
				one := func() []byte { return bytes.Repeat(appendValue(nil, d, 1+rnd.Float64()), n) }
				g := fromBytes(t, d, []int{2, compare.PieceLen}, one())
				a := fromBytes(t, d, []int{2, compare.PieceLen}, one())
				sameAsReference(t, g, a, compare.Tolerance{Rtol: 0.1})
			}
		}
	})
}

// Blocks with small or large numbers, which float32 cannot square, are read by the exact form.
func TestRangeOfHalves(t *testing.T) {
	forEachKernel(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(7, 8))
		for _, unit := range []float64{1e-40, 1e-38, 1e-30, 1e-20, 1e-10, 1, 1e10, 1e20, 1e30, 1e38} {
			g, a := made(t, tensor.BF16, tensor.BF16, []int{100, 100}, func() (g, a float64) {
				v := unit * (rnd.Float64() - 0.5)
				return v, v * (1 + 0.01*float64(rnd.IntN(3)))
			})
			for _, tol := range []compare.Tolerance{{}, {Rtol: 0.29}, {Rtol: 1e-2}, {Atol: unit * 1e-3},
				{Atol: 1e-50, Rtol: 1e-40}} {
				sameAsReference(t, g, a, tol)
			}
		}
	})
}

// The metrics are the same to the last bit whatever the number of cores, for tensors of many
// chunks, with long and with short rows.
func TestCoresDoNotMatter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	forEachISA(t, func(t *testing.T) {
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
			for _, shape := range [][]int{{2*compare.ChunkLen + 77}, {2, compare.ChunkLen + 3}, {9000, 64},
				{80, 5000}} {
				g, a := pairOf(t, d, shape...)
				first := ""
				for range 2 {
					for _, procs := range []int{1, 2, 7} {
						runtime.GOMAXPROCS(procs)
						r := tensors(t, g, a, compare.Tolerance{Rtol: 1e-3})
						if first == "" {
							first = fmt.Sprintf("%+v", r)
						}
						assert.Equal(t, first, fmt.Sprintf("%+v", r))
					}
				}
				sameAsReference(t, g, a, compare.Tolerance{Rtol: 1e-3})
			}
		}
	})
}
