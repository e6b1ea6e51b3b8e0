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
	return of(t, v, shape...)
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

// A product rounds its operands to 10 bits where TF32 is allowed; norms do not.
func TestTF32(t *testing.T) {
	for _, tt := range []struct {
		reason string
		by     map[string]float64 // relative noise of a layer's output
		pass   bool
	}{
		{"all products", map[string]float64{"q_proj": 3e-4, "k_proj": 3e-4, "v_proj": 2.7e-4}, true},
		{"one of three: a layer in float16", map[string]float64{"q_proj": 4e-4}, false},
		{"a norm too", map[string]float64{"q_proj": 3e-4, "k_proj": 3e-4, "v_proj": 3e-4, "norm": 3e-4}, false},
		{"more than 10 bits make", map[string]float64{"q_proj": 3e-3, "k_proj": 3e-3, "v_proj": 3e-3}, false},
	} {
		var g, a []port
		in := normal(t, 1, 1, 12, 64)
		for i, name := range []string{"norm", "q_proj", "k_proj", "v_proj"} {
			x := normal(t, uint64(i+10), 1, 12, 64)
			y := change(t, x, func(r, c int) float64 {
				return x.At(r*64+c) * (1 + tt.by[name]*math.Sqrt2*math.Sin(float64(r*r*7+c*c*3+i*5)))
			})
			g = append(g, port{"m." + name + "-input_0", in}, port{"m." + name + "-output", x})
			a = append(a, port{"m." + name + "-input_0", in}, port{"m." + name + "-output", y})
		}
		r := compareRuns(t, run("torch", g...), run("max", a...)).Report("toy", true)
		if tt.pass {
			assert.Equal(t, report.Pass, r.Verdict, "%s: %v", tt.reason, r.FirstDivergence)
			assert.Contains(t, r.Notes[len(r.Notes)-1], "the 10 bits of TF32")
		} else {
			assert.Equal(t, report.Fail, r.Verdict, tt.reason)
		}
	}
}

// A single number that is small by chance is as uncertain as its like in the other forward passes.
func TestOneNumberOfADecodeStep(t *testing.T) {
	golden := []float64{3, 0.02, -5}
	steps := func(engine string, off float64, only int) *dump.Run {
		var entries []dump.Entry
		for i, x := range golden {
			in := normal(t, uint64(i), 1, 1, 64)
			if i == 1 || only < 0 {
				x += off
			}
			if only >= 0 && i != only {
				continue
			}
			entries = append(entries, dump.Entry{Step: string(rune('0' + i)), Layer: "m.gate", Port: "input_0", Seq: 2 * i, Tensor: in},
				dump.Entry{Step: string(rune('0' + i)), Layer: "m.gate", Port: "output", Seq: 2*i + 1, Tensor: of(t, []float32{float32(x)}, 1, 1, 1)})
		}
		return dump.New(engine, dump.Info{Engine: engine, Case: "short", Encoding: dump.Encoding{Compute: "bfloat16"}}, dump.OrderRunFile, entries)
	}
	for _, tt := range []struct {
		reason string
		off    float64
		only   int // the only step; −1: all
		want   report.Verdict
	}{
		{"a third of what it is, a hundredth of what it is usually", 0.01, -1, report.Pass},
		{"far more than what it is usually allows", 3, -1, report.Fail},
		{"nothing else says how large it usually is", 0.01, 1, report.Fail},
	} {
		r := compareRuns(t, steps("torch", 0, tt.only), steps("max", tt.off, tt.only)).Report("toy", true)
		assert.Equal(t, tt.want, r.Verdict, tt.reason)
	}
}

func TestProbabilitiesErrByTheirScores(t *testing.T) {
	softmax := func(size, error float64) *tensor.Tensor {
		v := make([]float32, 2*6*8)
		for row := range 12 {
			sum := 0.0
			p := make([]float64, 8)
			for i := range p {
				s := size * math.Sin(float64(row*3+i*i))
				p[i] = math.Exp(s + error*size*math.Cos(float64(row*row+5*i)))
				sum += p[i]
			}
			for i := range p {
				v[row*8+i] = float32(p[i] / sum)
			}
		}
		return of(t, v, 1, 2, 6, 8)
	}
	in := normal(t, 1, 1, 6, 16)
	judged := func(size, error float64) *report.Report {
		g := run("torch", port{"m.attn-input_0", in}, port{"m.attn-output_1", softmax(size, 0)})
		a := run("max", port{"m.attn-input_0", in}, port{"m.attn-output_1", softmax(size, error)})
		a.Info.Encoding = dump.Encoding{Compute: "bfloat16"}
		return compareRuns(t, g, a).Report("toy", true)
	}
	const eps = 1.0 / 256
	r := judged(30, 1.4*eps)
	assert.Equal(t, report.Pass, r.Verdict, "scores up to 30, each off by little more than a rounding")
	l := row(t, r, "m.attn-output_1")
	assert.Greater(t, float64(l.Standard.RowRelL2), 0.08, "which the defaults let no row have")
	assert.Contains(t, l.Tolerance.Source, "roundings of scores")
	assert.Equal(t, report.Fail, judged(30, 12*eps).Verdict, "twelve roundings")
	assert.Equal(t, report.Fail, judged(1, 60*eps).Verdict, "small scores do not excuse it")
}

// Where two large scores are near each other, one token's attention may be off by far more than
// what came in. Faults of the attention show in many rows.
func TestFewRowsOfAnAttention(t *testing.T) {
	judged := func(rows int) *report.Report {
		var g, a []port
		in := normal(t, 1, 1, 12, 64)
		for i, name := range []string{"q_proj", "k_proj", "v_proj"} {
			x := normal(t, uint64(i+2), 1, 12, 64)
			g = append(g, port{"m.attn." + name + "-input_0", in}, port{"m.attn." + name + "-output", x})
			a = append(a, port{"m.attn." + name + "-input_0", in}, port{"m.attn." + name + "-output", plus(t, x, 30, 0.01)})
		}
		heads, out := normal(t, 9, 1, 12, 64), normal(t, 10, 1, 12, 64)
		off := func(x *tensor.Tensor, seed uint64) *tensor.Tensor {
			noise := normal(t, seed, 1, 12, 64)
			return change(t, x, func(r, c int) float64 {
				size := 0.01
				if r < rows {
					size = 0.13
				}
				return x.At(r*64+c) + size*noise.At(r*64+c)
			})
		}
		for _, side := range []struct {
			ports      *[]port
			heads, out *tensor.Tensor
		}{{&g, heads, out}, {&a, off(heads, 20), off(out, 21)}} {
			*side.ports = append(*side.ports, port{"m.attn.o_proj-input_0", side.heads}, port{"m.attn.o_proj-output", side.out},
				port{"m.attn-input_0", in}, port{"m.attn-output", side.out})
		}
		actual := run("max", a...)
		actual.Info.Encoding = dump.Encoding{Compute: "bfloat16"}
		return compareRuns(t, run("torch", g...), actual).Report("toy", true)
	}
	assert.Equal(t, report.Pass, judged(2).Verdict, "two of twelve")
	r := judged(8)
	require.Equal(t, report.Fail, r.Verdict, "eight of twelve")
	assert.Equal(t, "m.attn", r.FirstDivergence.Layer)
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
		return of(t, v, 1, 2, 6, 6)
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
