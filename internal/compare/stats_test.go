package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// plainStats are the definitions of compare.Stats, in the order in which they are written down.
func plainStats(values []float64) compare.Stats {
	s := compare.Stats{Min: math.Inf(1), Max: math.Inf(-1)}
	var kept []float64
	for _, x := range values {
		switch {
		case math.IsNaN(x):
			s.NaN++
		case math.IsInf(x, 0):
			s.Inf++
		default:
			kept = append(kept, x)
			s.Min, s.Max = min(s.Min, x), max(s.Max, x)
		}
	}
	if len(kept) == 0 {
		return compare.Stats{NaN: s.NaN, Inf: s.Inf}
	}
	_, exp := math.Frexp(max(-s.Min, s.Max))
	n := float64(len(kept))
	var sum, square, variance float64
	for _, x := range kept {
		x = math.Ldexp(x, -exp)
		sum += x
		square += x * x
	}
	for _, x := range kept {
		x = math.Ldexp(x, -exp) - sum/n
		variance += x * x
	}
	s.Mean, s.Std = math.Ldexp(sum/n, exp), math.Ldexp(math.Sqrt(variance/n), exp)
	s.L2 = min(math.Ldexp(math.Sqrt(square), exp), math.MaxFloat64)
	return s
}

func TestStats(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	normal := func(n int, mean, std float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = mean + std*rng.NormFloat64()
		}
		return out
	}
	with := func(values []float64, at int, x float64) []float64 {
		values[at] = x
		return values
	}
	rows := []struct {
		values []float64
		reason string
	}{
		{nil, "empty"},
		{[]float64{3}, "one"},
		{normal(7, 0, 1), "less than a step"},
		{normal(8, 0, 1), "a step"},
		{normal(8192+13, 0, 1), "more than a block"},
		{normal(30000, 1000, 1e-3), "far from zero: a variance from squares has no digit left"},
		{normal(30000, -5, 0), "constant"},
		{with(normal(30000, 1, 1e-6), 0, 1e6), "an outlier is the pivot"},
		{with(normal(30000, 0, 1), 29999, math.NaN()), "NaN at the end"},
		{with(with(normal(30000, 0, 1), 0, math.Inf(-1)), 9000, math.NaN()), "an infinity first"},
		{[]float64{math.NaN(), math.Inf(1), math.Inf(-1)}, "nothing is finite"},
		{normal(100, 0, 1e300), "squares overflow"},
		{normal(100, 0, 1e-300), "squares vanish"},
		{with(normal(9000, 0, 1e-3), 17, 1e200), "one square overflows"},
		{[]float64{math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}, "differences overflow"},
		{make([]float64, 100), "zeros"},
	}
	for _, r := range rows {
		t.Run(r.reason, func(t *testing.T) {
			for _, d := range []tensor.DType{tensor.F64, tensor.F32, tensor.BF16, tensor.F16, tensor.I64, tensor.U8} {
				x := cast(t, r.values, d)
				values := make([]float64, x.Len())
				x.Float64s(values, 0)
				views := map[string]*tensor.Tensor{"as it lies": x}
				if x.Len()%3 == 0 && x.Len() > 0 {
					m, err := x.Reshape(3, x.Len()/3)
					require.NoError(t, err)
					turned, err := m.Transpose()
					require.NoError(t, err)
					views["turned"] = turned
				}
				for view, x := range views {
					got, err := compare.StatsOf(x)
					require.NoError(t, err)
					name := fmt.Sprint(d, " ", view)
					want := plainStats(values)
					scale := max(-want.Min, want.Max)
					near := 1e-12 + float64(len(values))*0x1p-53 // a sum rounds with each term
					assert.Equal(t, []any{want.Min, want.Max, want.NaN, want.Inf}, []any{got.Min, got.Max, got.NaN, got.Inf}, name)
					assert.InDelta(t, 0, (got.Mean-want.Mean)/max(scale, 1e-310), near, name)
					assert.InDelta(t, 0, (got.Std-want.Std)/max(scale, 1e-310), near, name)
					assert.InDelta(t, 0, (got.L2-want.L2)/max(want.L2, 1e-310), near, name)
				}
			}
		})
	}
}

// BenchmarkStats reads 16 MiB.
func BenchmarkStats(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64, tensor.I32} {
		b.Run(d.String(), func(b *testing.B) {
			data := make([]byte, 16<<20)
			for i := range data {
				data[i] = byte(i % 61)
			}
			x, err := tensor.New(d, []int{len(data) / d.Size()}, data)
			require.NoError(b, err)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				_, err := compare.StatsOf(x)
				require.NoError(b, err)
			}
		})
	}
}

func cast(t *testing.T, values []float64, d tensor.DType) *tensor.Tensor {
	t.Helper()
	var data []byte
	for _, v := range values {
		data = appendValue(data, d, v)
	}
	x, err := tensor.New(d, []int{len(values)}, data)
	require.NoError(t, err)
	return x
}
