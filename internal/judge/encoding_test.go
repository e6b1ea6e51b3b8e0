package judge_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// e4m3 rounds to eight bits, by the nearest of all 256 numbers.
func e4m3(t *testing.T, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	codes := make([]byte, 256)
	for i := range codes {
		codes[i] = byte(i)
	}
	all, err := tensor.New(tensor.F8E4M3FN, []int{256}, codes)
	require.NoError(t, err)
	data := make([]byte, x.Len())
	for i := range data {
		best := math.Inf(1)
		for code := range codes {
			if d := math.Abs(all.At(code) - x.At(i)); d < best {
				best, data[i] = d, byte(code)
			}
		}
	}
	out, err := tensor.New(tensor.F8E4M3FN, x.Shape(), data)
	require.NoError(t, err)
	return out
}

// noisy makes every number wrong by up to a part of it, without a bias.
func noisy(t *testing.T, x *tensor.Tensor, by float64) *tensor.Tensor {
	t.Helper()
	return change(t, x, func(r, c int) float64 {
		i := r*x.RowLen() + c
		return x.At(i) * (1 + by*float64(i*7%11-5)/5)
	})
}

func TestEncodingJudges(t *testing.T) {
	type port = func(*tensor.Tensor) *tensor.Tensor
	same := asIs
	half := func(x *tensor.Tensor) *tensor.Tensor { return bf16(t, x) }
	island := func(x *tensor.Tensor) *tensor.Tensor { return noisy(t, x, 0.01) }
	coarse := func(x *tensor.Tensor) *tensor.Tensor { return e4m3(t, x) }
	wrong := func(x *tensor.Tensor) *tensor.Tensor { return noisy(t, x, 0.9) }
	whole := func(x *tensor.Tensor) *tensor.Tensor {
		return change(t, x, func(r, c int) float64 { return float64((r*x.RowLen()+c)%97 - 48) })
	}
	wholeHalf := func(x *tensor.Tensor) *tensor.Tensor { return bf16(t, whole(x)) }
	for _, tt := range []struct {
		reason         string
		golden, actual dump.Encoding
		g, a           [3]port // of a and b, and of the last, c
		coarser        tensor.DType
		bad            string // the layer that is accused
		judged         string // the type that judges c
	}{
		{"float32 logits of a bfloat16 run", dump.Encoding{}, dump.Encoding{Compute: "bfloat16"},
			[3]port{same, same, same}, [3]port{half, half, island}, 0, "", "bfloat16"},
		{"no run says it: most outputs do", dump.Encoding{}, dump.Encoding{},
			[3]port{same, same, same}, [3]port{half, half, island}, 0, "", "bfloat16"},
		{"a quantised encoding is no type: most outputs are", dump.Encoding{}, dump.Encoding{Compute: "q4_k"},
			[3]port{same, same, same}, [3]port{half, half, island}, 0, "", "bfloat16"},
		{"an error beyond bfloat16 in an island", dump.Encoding{}, dump.Encoding{Compute: "bfloat16"},
			[3]port{same, same, same}, [3]port{half, half, wrong}, 0, "m.c", "bfloat16"},
		{"the reference too ran in bfloat16", dump.Encoding{Compute: "bfloat16"}, dump.Encoding{Compute: "float32"},
			[3]port{half, half, same}, [3]port{same, same, island}, 0, "", "bfloat16"},
		{"a float32 run has no noise of bfloat16", dump.Encoding{}, dump.Encoding{Compute: "float32"},
			[3]port{same, same, same}, [3]port{same, same, island}, 0, "m.c", "float32"},
		{"a bfloat16 output in a float32 run", dump.Encoding{}, dump.Encoding{},
			[3]port{same, same, same}, [3]port{same, half, same}, 0, "m.b", "float32"},
		{"which the reference has there, too", dump.Encoding{}, dump.Encoding{},
			[3]port{same, half, same}, [3]port{same, half, same}, 0, "", "float32"},
		{"which is declared", dump.Encoding{}, dump.Encoding{},
			[3]port{same, same, same}, [3]port{same, half, same}, tensor.BF16, "", "float32"},
		{"which needs no more bits", dump.Encoding{}, dump.Encoding{},
			[3]port{same, whole, same}, [3]port{same, wholeHalf, same}, 0, "", "float32"},
		{"eight bits in a bfloat16 run, within its limits", dump.Encoding{}, dump.Encoding{Compute: "bfloat16"},
			[3]port{same, same, same}, [3]port{half, coarse, half}, 0, "m.b", "bfloat16"},
		{"a cache of eight bits makes no run one of eight", dump.Encoding{}, dump.Encoding{Compute: "bfloat16", KVCache: "float8_e4m3fn"},
			[3]port{same, same, same}, [3]port{half, coarse, half}, 0, "m.b", "bfloat16"},
		{"a cache of eight bits costs what 16 do", dump.Encoding{}, dump.Encoding{Compute: "float32", KVCache: "int8"},
			[3]port{same, same, same}, [3]port{same, same, island}, 0, "", "bfloat16"},
		{"and hides no error beyond that", dump.Encoding{}, dump.Encoding{Compute: "float32", KVCache: "int8"},
			[3]port{same, same, same}, [3]port{same, same, wrong}, 0, "m.c", "bfloat16"},
		{"one of four bits has no limits: it is said", dump.Encoding{}, dump.Encoding{Compute: "float32", KVCache: "int4"},
			[3]port{same, same, same}, [3]port{same, same, island}, 0, "m.c", "float32"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			k := judge.Case{Name: "short", Golden: run("torch", recordedChain(t, tt.g[:]...)...), Actual: run("max", recordedChain(t, tt.a[:]...)...)}
			k.Golden.Info.Encoding, k.Actual.Info.Encoding = tt.golden, tt.actual
			c := compared(t, k, judge.Options{
				Coarser: func(layer, _ string, d tensor.DType) bool { return layer == "m.b" && d == tt.coarser }})
			r := c.Report("toy", true)
			assert.Equal(t, tt.actual.KVCache == "int4", strings.Contains(strings.Join(r.Notes, "\n"), "keeps keys and values in int4"))
			assert.Equal(t, tt.golden.Compute == "bfloat16", strings.Contains(strings.Join(r.Notes, "\n"), "a cast is missing or elsewhere: m.a output (float32), m.b output (float32)"))
			assert.Equal(t, tt.judged, find(t, c, "m.c-output").DType.String())
			want := []any{report.Pass, "", ""}
			if tt.bad != "" {
				want = []any{report.Fail, "local", tt.bad}
			}
			assert.Equal(t, want, []any{r.Verdict, r.Kind, placeOf(r)}, "%v", r.FirstDivergence)
		})
	}
}

// Outputs of another type than the reference has in the candidate's encoding are named, of a wider one and of a narrower.
func TestTypesOfOutputs(t *testing.T) {
	same, half := asIs, func(x *tensor.Tensor) *tensor.Tensor { return bf16(t, x) }
	const wider, narrower = "a cast is missing or elsewhere: ", "it casts too early, or what is recorded is cast: "
	type ports [3]func(*tensor.Tensor) *tensor.Tensor // of a, b and c
	side := func(engine, encoding string, p ports) *dump.Run {
		return in(encoding, run(engine, recordedChain(t, p[:]...)...))
	}
	for _, tt := range []struct {
		encoded, golden, actual *dump.Run
		says                    string // empty: nothing
		reason                  string
	}{
		{side("torch", "bfloat16", ports{half, half, same}), side("torch", "float32", ports{same, same, same}),
			side("max", "bfloat16", ports{half, half, same}), "", "float32 where the reference has it in bfloat16, too"},
		{side("torch", "bfloat16", ports{half, half, half}), side("torch", "float32", ports{same, same, same}),
			side("max", "bfloat16", ports{half, same, half}), wider + "m.b output (float32)", "float32 where bfloat16 was meant"},
		{side("torch", "bfloat16", ports{half, half, same}), side("torch", "float32", ports{same, same, same}),
			side("max", "bfloat16", ports{half, half, half}), narrower + "m.c output (bfloat16)", "bfloat16 where float32 was meant"},
		{nil, side("torch", "bfloat16", ports{half, same, half}), side("max", "bfloat16", ports{half, half, half}), narrower + "m.b output (bfloat16)",
			"by a golden that is in bfloat16 itself"},
		{nil, side("torch", "float32", ports{same, same, same}), side("max", "bfloat16", ports{half, half, same}), "",
			"no run of the reference in bfloat16 says which types it has"},
	} {
		c := compared(t, judge.Case{Name: "short", Golden: tt.golden, Actual: tt.actual, Encoded: tt.encoded}, judge.Options{})
		r := c.Report("toy", true)
		said := strings.Join(r.Notes, "\n")
		assert.Equal(t, report.Pass, r.Verdict, tt.reason)
		assert.Contains(t, said, tt.says, tt.reason)
		assert.Equal(t, strings.HasPrefix(tt.says, wider), strings.Contains(said, wider), "%s: %s", tt.reason, said)
		assert.Equal(t, strings.HasPrefix(tt.says, narrower), strings.Contains(said, narrower), "%s: %s", tt.reason, said)
	}
}

// recordedChain makes the ports of three layers, each of which is given what the one before returns.
func recordedChain(t *testing.T, as ...func(*tensor.Tensor) *tensor.Tensor) (ports []port) {
	t.Helper()
	x := wave(t, 1, 0, 1, 6, 64)
	for i, layer := range []string{"m.a", "m.b", "m.c"} {
		y := as[i](wave(t, 1, float64(i+1), 1, 6, 64))
		ports = append(ports, port{layer + "-input_0", x}, port{layer + "-output", y})
		x = y
	}
	return ports
}

// A block of which every number has 11 bits is downcast; where all blocks are like that, errors add up,
// and no one of them is proven to have made them.
func TestDowncastOfAllBlocks(t *testing.T) {
	const blocks = 3
	rounded := func(x float64) float64 {
		return float64(math.Float32frombits((math.Float32bits(float32(x)) + 1<<12) &^ (1<<13 - 1)))
	}
	model := func(rounds func(block int) bool) *dump.Run {
		x := normal(t, 3, 12, 8)
		ports := []port{{"m.embed-output", x}}
		for i := range blocks {
			in := x
			ports = append(ports, port{fmt.Sprintf("m.layers.%d-input_0", i), in})
			x = change(t, in, func(r, c int) float64 {
				y := 1.1*in.At(8*r+c) + 0.013*math.Sin(7*in.At(8*r+c))
				if rounds(i) {
					return rounded(y)
				}
				return y
			})
			ports = append(ports, port{fmt.Sprintf("m.layers.%d-output", i), x})
		}
		return run("torch", ports...)
	}
	golden := model(func(int) bool { return false })
	for _, c := range []struct {
		rounds func(int) bool
		proven bool
		reason string
	}{
		{func(i int) bool { return i == 0 }, true, "one block alone"},
		{func(int) bool { return true }, false, "how the run computes"},
	} {
		r := compareRuns(t, golden, model(c.rounds)).Report("x", true)
		proven := slices.ContainsFunc(r.Causes, func(k report.Cause) bool { return k.Proven && k.ID == "dtype/downcast" })
		assert.Equal(t, report.Fail, r.Verdict, c.reason)
		assert.Equal(t, c.proven, proven, "%s: %v", c.reason, r.Causes)
	}
}

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
			x, out := normal(t, 1, 1, 12, 64), normal(t, 2, 1, 12, 64)
			side := func(engine, encoding string, x, y *tensor.Tensor) *dump.Run {
				return in(encoding, run(engine, port{"m.a-input_0", x}, port{"m.a-output", y}))
			}
			k := judge.Case{Name: "short", Golden: side("torch", "float32", x, out),
				Actual:  side("max", "bfloat16", x, plus(t, out, 3, tt.error*eps)),
				Encoded: side("torch", "bfloat16", x, plus(t, out, 4, tt.cost*eps))}
			r := compared(t, k, judge.Options{}).Report("toy", true)
			assert.Equal(t, tt.verdict, r.Verdict)
			assert.Contains(t, row(t, r, "m.a-output").Tolerance.Source, "3 × what bfloat16 costs the reference")
			if tt.verdict == report.Fail {
				assert.Equal(t, "m.a", r.FirstDivergence.Layer, "it is no noise, however small")
			}
			k.Encoded = nil
			assert.Equal(t, tt.withoutNoise, compared(t, k, judge.Options{}).Report("toy", true).Verdict, "by the defaults")
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
	x := normal(t, 1, 1, 6, 16)
	for _, tt := range []struct {
		reason string
		actual *tensor.Tensor
		want   report.Verdict
	}{
		{"hidden by the lowest number of float16", bias(-65504, 1e-4, true), report.Pass},
		{"and the bias is wrong", bias(-65504, 0.5, true), report.Fail},
		{"nothing is hidden", bias(0, 0, true), report.Fail},
	} {
		g := run("torch", port{"m.attn-input_0", x}, port{"m.attn-output_1", bias(lowest, 0, true)})
		a := in("float16", run("max", port{"m.attn-input_0", x}, port{"m.attn-output_1", tt.actual}))
		assert.Equal(t, tt.want, compareRuns(t, g, a).Report("toy", true).Verdict, tt.reason)
	}
}

// What quantisation and the rounding of inputs cost the reference stands beside each output.
func TestCostsOfQuantisation(t *testing.T) {
	y := normal(t, 2, 1, 12, 32)
	side := func(path string, y *tensor.Tensor) *dump.Run {
		r := run(path, port{"m.a-output", y})
		r.Path = path
		return r
	}
	c := compareRuns(t, side("torch", y), side("max", y), func(k *judge.Case) {
		k.Unquantised, k.Unrounded = side("full", scaled(t, y, 1.5)), side("plain", plus(t, y, 3, 0.01))
	})
	q := row(t, c.Report("toy", true), "m.a-output").Quantisation
	require.NotNil(t, q)
	require.NotNil(t, q.Activations)
	assert.InDelta(t, 1.0/3, float64(q.Cost), 1e-6)
	assert.InDelta(t, 0.01, float64(*q.Activations), 0.002)
}

// Runs of ONNX Runtime 1.31, which testdata/int8/generate.py wrote: what 8 bits make is the run's
// precision, and what is wrong besides is placed as in float32.
func TestPrecision(t *testing.T) {
	dir := filepath.Join("testdata", "int8")
	weights, err := checkpoint.Open(filepath.Join(dir, "weights.safetensors"))
	require.NoError(t, err)
	defer weights.Close()
	evidence := func() (checkpoint.Weights, checkpoint.Config, error) {
		return weights.Tensors, checkpoint.Config{}, nil
	}
	const whole = "asymmetric 8 bits of the whole tensor (255 steps)"
	for _, r := range []struct{ candidate, place, note, reason string }{
		{"float32", "", "", "nothing is rounded"},
		{"dynamic", "", "products with weights take " + whole + " times symmetric 8 bits of the whole tensor (254 steps), and embeddings are " + whole, ""},
		{"channels", "", "products with weights take " + whole + " times symmetric 8 bits of each line (128 steps), and embeddings are " + whole, "7 bits"},
		{"static", "", "products with weights take float32 times symmetric 8 bits of the whole tensor", "what they take was recorded in 8 bits"},
		{"mlp.up_proj", "model.model.layers.0.mlp.up_proj", "times symmetric 8 bits", "a weight that is 5 % too large"},
		{"self_attn.q_proj", "model.model.layers.0.self_attn.q_proj", "times symmetric 8 bits", "a weight that is 5 % too large"},
	} {
		p, err := program.Read(filepath.Join(dir, "ref", "program.json"))
		require.NoError(t, err)
		k := judge.Case{Name: "run", Golden: opened(t, dir, "ref"), Actual: opened(t, dir, r.candidate), Program: p}
		cmp := compared(t, k, judge.Options{Diagnosis: judge.Diagnosis{Evidence: evidence}})
		report := cmp.Report(r.candidate, true)
		assert.Equal(t, r.place, placeOf(report), "%s: %s", r.candidate, r.reason)
		assert.Contains(t, strings.Join(report.Notes, "\n"), r.note, r.candidate)
	}
}
