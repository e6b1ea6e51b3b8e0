package judge_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

func normal(t *testing.T, seed uint64, shape ...int) *tensor.Tensor {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 14))
	n, err := tensor.NumElems(shape)
	require.NoError(t, err)
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return toy.Of(t, v, shape...)
}

// plus adds noise of a size to every element.
func plus(t *testing.T, x *tensor.Tensor, seed uint64, size float64) *tensor.Tensor {
	t.Helper()
	noise := normal(t, seed, x.Shape()...)
	w := x.RowLen()
	return change(t, x, func(r, c int) float64 { return x.At(r*w+c) + size*noise.At(r*w+c) })
}

// What the encoding costs the reference judges, where it was measured: less than the defaults let
// pass is found, and more than they do passes.
func TestMeasuredCost(t *testing.T) {
	const eps = 1.0 / 256
	for _, tt := range []struct {
		reason       string
		cost, error  float64 // of the reference in bfloat16, and of the candidate, in roundings of an element
		verdict      report.Verdict
		withoutNoise report.Verdict
	}{
		{"as far as the reference in bfloat16", 2, 2, report.Pass, report.Pass},
		{"seven roundings, where the reference has one, are within the defaults", 1, 7, report.Fail, report.Pass},
		{"more than the defaults, as the reference", 15, 15, report.Pass, report.Fail},
		{"never above what roundings add up to", 100, 100, report.Fail, report.Fail},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			in, out := normal(t, 1, 1, 12, 64), normal(t, 2, 1, 12, 64)
			side := func(engine, encoding string, x, y *tensor.Tensor) *dump.Run {
				r := run(engine, port{"m.a-input_0", x}, port{"m.a-output", y})
				r.Info.Encoding = dump.Encoding{Compute: encoding}
				return r
			}
			k := judge.Case{Name: "short", Golden: side("torch", "float32", in, out),
				Actual:  side("max", "bfloat16", in, plus(t, out, 3, tt.error*eps)),
				Encoded: side("torch", "bfloat16", in, plus(t, out, 4, tt.cost*eps))}
			judged := func(k judge.Case) *report.Report {
				c, err := judge.Compare(context.Background(), []judge.Case{k}, judge.Options{})
				require.NoError(t, err)
				return c.Report("toy", true)
			}
			r := judged(k)
			assert.Equal(t, tt.verdict, r.Verdict)
			assert.Contains(t, row(t, r, "m.a-output").Tolerance.Source, "3 × what bfloat16 costs the reference")
			if tt.verdict == report.Fail {
				assert.Equal(t, "m.a", r.FirstDivergence.Layer, "it is no noise, however small")
			}
			k.Encoded = nil
			assert.Equal(t, tt.withoutNoise, judged(k).Verdict, "by the defaults")
		})
	}
}

// T5 adds its mask to the bias of the scores and returns both.
func TestMaskInABias(t *testing.T) {
	bias := func(hidden float64, off float64, last bool) *tensor.Tensor {
		v := make([]float32, 2*6*6)
		for i := range v {
			row, c := i/6%6, i%6
			if v[i] = float32(math.Sin(float64(i)) + off); c > row && (last || row < 5) {
				v[i] = float32(hidden)
			}
		}
		return toy.Of(t, v, 1, 2, 6, 6)
	}
	lowest := -math.MaxFloat32
	in := normal(t, 1, 1, 6, 16)
	for _, tt := range []struct {
		reason string
		actual *tensor.Tensor
		want   report.Verdict
	}{
		{"hidden by the lowest number of float16", bias(-65504, 1e-4, true), report.Pass},
		{"and the bias is wrong", bias(-65504, 0.5, true), report.Fail},
		{"nothing is hidden", bias(0, 0, true), report.Fail},
	} {
		g := run("torch", port{"m.attn-input_0", in}, port{"m.attn-output_1", bias(lowest, 0, true)})
		a := run("max", port{"m.attn-input_0", in}, port{"m.attn-output_1", tt.actual})
		a.Info.Encoding = dump.Encoding{Compute: "float16"}
		assert.Equal(t, tt.want, compareRuns(t, g, a).Report("toy", true).Verdict, tt.reason)
	}
}
