package compare_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// scalar has the naive form of Tensors' metrics, one element after the other, without blocks.
type scalar struct {
	mismatches, first, finite, absAt, relAt int
	nan, inf                                [2]int
	abs, rel                                float64
	dd, gg                                  *big.Float
}

func naive(g, a *tensor.Tensor, tol compare.Tolerance) scalar {
	s := scalar{first: -1, absAt: -1, relAt: -1, abs: -1, rel: -1, dd: new(big.Float).SetPrec(2200),
		gg: new(big.Float).SetPrec(2200)}
	exact := !g.DType().IsFloat() || !a.DType().IsFloat()
	for i := range g.Len() {
		x, y := g.At(i), a.At(i)
		finite := x-x == 0 && y-y == 0
		d, diff := math.Abs(y-x), new(big.Float).SetPrec(2200)
		if finite {
			diff.Sub(real(a, i), real(g, i))
		}
		bad := x != y
		switch {
		case math.IsNaN(x) && math.IsNaN(y):
			bad = !tol.EqualNaN
		case finite && exact:
			bad = diff.Sign() != 0
			d, _ = new(big.Float).Abs(diff).Float64()
		case finite:
			bad = !(d <= tol.Atol+float64(tol.Rtol*math.Abs(x)))
		}
		if bad {
			s.mismatches++
			if s.first < 0 {
				s.first = i
			}
		}
		for side, v := range []float64{x, y} {
			if math.IsNaN(v) {
				s.nan[side]++
			}
			if math.IsInf(v, 0) {
				s.inf[side]++
			}
		}
		if !finite {
			continue
		}
		s.finite++
		if d > s.abs {
			s.abs, s.absAt = d, i
		}
		if r := d / max(math.Abs(x), 1e-10); r > s.rel {
			s.rel, s.relAt = r, i
		}
		golden := real(g, i)
		s.dd.Add(s.dd, diff.Mul(diff, diff))
		s.gg.Add(s.gg, golden.Mul(golden, golden))
	}
	return s
}

// real is an element as it is, which float64 need not have.
func real(t *tensor.Tensor, i int) *big.Float {
	x := new(big.Float).SetPrec(2200)
	if t.DType().IsFloat() {
		return x.SetFloat64(t.At(i))
	}
	var v [1]int64
	if t.Int64s(v[:], i); t.DType() == tensor.U64 {
		return x.SetUint64(uint64(v[0]))
	}
	return x.SetInt64(v[0])
}

// is64 reports whether distances may be rounded twice.
func is64(d tensor.DType) bool { return d == tensor.I64 || d == tensor.U64 }

// FuzzTensors compares any bytes, as any types, in rows of any length. Counts, indices and maxima
// must equal the naive form exactly, norms up to rounding. No metric may be NaN.
func FuzzTensors(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63, 0, 0, 192, 127}, []byte{0, 0, 128, 63, 0, 0, 128, 127}, uint8(17), uint8(17), uint16(1),
		1e-3, 1e-3, false)
	f.Add([]byte("sixteen bytes ....sixteen bytes ...."), []byte("sixteen bytes ,,,,sixteen bytes ...,"), uint8(18),
		uint8(18), uint16(2), 0.0, 1.0, true)
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255}, []byte{255, 255, 255, 255, 255, 255, 255, 255}, uint8(8),
		uint8(7), uint16(1), 0.0, 0.0, true)
	f.Add(make([]byte, 9000), make([]byte, 9000), uint8(16), uint8(15), uint16(64), 0.0, 0.0, false)
	f.Add([]byte{1, 0}, []byte("0000000000000000"), uint8(0), uint8(8), uint16(0), 0.0, 1.0, true)
	f.Add([]byte("0000"), []byte("0000000a"), uint8(16), uint8(17), uint16(0), 0.0, 0.0, false) // 6.4e-10 beside 6.9e159
	far := make([]byte, 8000)                                                                   // 1.6e29 and 2.5e30, both too large for float32 where they are divided by 1e-10
	far[3001], far[7001] = 0x70, 0x72
	f.Add(make([]byte, 8000), far, uint8(15), uint8(15), uint16(128), 0.0, 0.0, false)
	f.Add([]byte{0x7f, 0xff, 0x80, 1}, []byte{0x7f, 0x7c, 0xfe, 1}, uint8(9), uint8(11), uint16(4), 0.5, 0.5, false)
	f.Fuzz(func(t *testing.T, gb, ab []byte, gd, ad uint8, rowLen uint16, atol, rtol float64, equalNaN bool) {
		tol := compare.Tolerance{Atol: atol, Rtol: rtol, EqualNaN: equalNaN}
		if tol.Validate() != nil {
			return
		}
		g, a := tensor.Bool+tensor.DType(gd%18), tensor.Bool+tensor.DType(ad%18)
		n := min(len(gb)/g.Size(), len(ab)/a.Size(), 20000)
		columns := int(rowLen)%(n+1) + 1
		shape := []int{n / columns, columns}
		n = shape[0] * columns
		gt := fromBytes(t, g, shape, gb[:n*g.Size()])
		at := fromBytes(t, a, shape, ab[:n*a.Size()])
		r := tensors(t, gt, at, tol)
		if n == 0 {
			require.Zero(t, r.N)
			return
		}
		s := naive(gt, at, tol)
		if is64(g) || is64(a) {
			require.True(t, s.finite == 0 || near(s.abs, r.MaxAbs.Value, 1e-15, 5e-324), "%v %v", s.abs, r.MaxAbs.Value)
			s.abs, s.absAt, s.rel, s.relAt = r.MaxAbs.Value, r.MaxAbs.Index, r.MaxRel.Value, r.MaxRel.Index
		}
		require.Equal(t, []int{n, s.mismatches, s.first, s.finite, s.absAt, s.relAt, s.nan[0], s.nan[1],
			s.inf[0], s.inf[1]},
			[]int{r.N, r.Mismatches, r.FirstMismatch, r.Finite, r.MaxAbs.Index, r.MaxRel.Index, r.NaNGolden,
				r.NaNActual, r.InfGolden, r.InfActual})
		if s.finite > 0 {
			require.Equal(t, []float64{s.abs, s.rel}, []float64{r.MaxAbs.Value, r.MaxRel.Value})
		}
		root := func(x *big.Float) float64 {
			v, _ := new(big.Float).Sqrt(x).Float64()
			return v
		}
		require.True(t, near(root(s.gg), r.NormGolden, precision(gt, at), 5e-324), "norm of golden: %v %v",
			root(s.gg), r.NormGolden)
		require.True(t, near(root(s.dd), r.NormDiff, precision(gt, at), 5e-324), "norm of difference: %v %v",
			root(s.dd), r.NormDiff)
		for _, v := range []float64{r.MSE, r.RelL2, r.CosineDistance, r.SNR, r.WorstRow.RelL2, r.NormActual} {
			require.False(t, math.IsNaN(v), "%+v", r)
		}
		require.False(t, r.CosineDistance < 0 || r.CosineDistance > 2)

		d, err := compare.Explain(gt, at, tol)
		require.NoError(t, err)
		assert.Equal(t, r.Mismatches > 0, d.BadRows.Count > 0 && d.BadColumns.Count > 0)
		for _, x := range []compare.Tolerance{{Atol: d.SmallestAtol, Rtol: rtol, EqualNaN: equalNaN},
			{Atol: atol, Rtol: d.SmallestRtol, EqualNaN: equalNaN}} {
			if x.Validate() == nil {
				again := tensors(t, gt, at, x)
				require.Zero(t, again.Mismatches, "%+v should pass", x)
			}
		}
		c := compare.Criteria{compare.Atol: atol, compare.Rtol: rtol, compare.RelL2: 0.9, compare.Cosine: 0.9,
			compare.MSE: 1, compare.ULP: 4, compare.SNR: 10, compare.KL: 1,
			compare.TopK: 1, compare.Noise: 2}
		if equalNaN {
			c[compare.EqualNaN] = 1
		}
		if c.Validate() != nil {
			return // the tolerance accepts zeros
		}
		v, err := c.Judge(gt, at, compare.References{Float64: gt})
		var short *compare.MisuseError // the rows, or the steps of the type
		if errors.As(err, &short) {
			return
		}
		require.NoError(t, err)
		if r.Mismatches > 0 {
			require.False(t, v.Pass)
		}
		for _, x := range v.Violations {
			require.False(t, math.IsNaN(x.Got), "%+v", x)
		}
	})
}
