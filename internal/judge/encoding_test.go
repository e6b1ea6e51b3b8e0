package judge_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
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
	v := make([]float32, x.Len())
	for i := range v {
		v[i] = float32(x.At(i) * (1 + by*float64(i*7%11-5)/5))
	}
	return toy.Of(t, v, x.Shape()...)
}

func TestEncodingJudges(t *testing.T) {
	type port func(*tensor.Tensor) *tensor.Tensor
	same := port(func(x *tensor.Tensor) *tensor.Tensor { return x })
	half := port(func(x *tensor.Tensor) *tensor.Tensor { return bf16(t, x) })
	island := port(func(x *tensor.Tensor) *tensor.Tensor { return noisy(t, x, 0.01) })
	coarse := port(func(x *tensor.Tensor) *tensor.Tensor { return e4m3(t, x) })
	wrong := port(func(x *tensor.Tensor) *tensor.Tensor { return noisy(t, x, 0.9) })
	whole := port(func(x *tensor.Tensor) *tensor.Tensor { return toy.Of(t, wholeNumbers(x.Len()), x.Shape()...) })
	wholeHalf := port(func(x *tensor.Tensor) *tensor.Tensor { return bf16(t, whole(x)) })
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
			k := judge.Case{Name: "short"}
			for _, side := range []struct {
				to    **dump.Run
				who   string
				ports [3]port
				asked dump.Encoding
			}{{&k.Golden, "torch", tt.g, tt.golden}, {&k.Actual, "max", tt.a, tt.actual}} {
				r := run(side.who, recordedChain(t, side.ports[0], side.ports[1], side.ports[2])...)
				r.Info.Encoding = side.asked
				*side.to = r
			}
			c, err := judge.Compare(context.Background(), []judge.Case{k}, judge.Options{
				Coarser: func(layer, _ string, d tensor.DType) bool { return layer == "m.b" && d == tt.coarser }})
			require.NoError(t, err)
			r := c.Report("toy", true)
			assert.Equal(t, tt.actual.KVCache == "int4", strings.Contains(strings.Join(r.Notes, "\n"), "keeps keys and values in int4"))
			assert.Equal(t, tt.golden.Compute == "bfloat16", strings.Contains(strings.Join(r.Notes, "\n"), "a cast is missing or elsewhere: m.a output (float32), m.b output (float32)"))
			assert.Equal(t, tt.judged, find(t, c, "m.c-output").DType.String())
			if tt.bad == "" {
				assert.Equal(t, report.Pass, r.Verdict, "%v", r.FirstDivergence)
				return
			}
			require.NotNil(t, r.FirstDivergence)
			assert.Equal(t, report.Fail, r.Verdict)
			assert.Equal(t, [2]string{"local", tt.bad}, [2]string{r.Kind, r.FirstDivergence.Layer}, r.FirstDivergence.Text)
		})
	}
}

// Outputs of another type than the reference has in the candidate's encoding are named, of a wider one and of a narrower.
func TestTypesOfOutputs(t *testing.T) {
	same := func(x *tensor.Tensor) *tensor.Tensor { return x }
	half := func(x *tensor.Tensor) *tensor.Tensor { return bf16(t, x) }
	const wider, narrower = "a cast is missing or elsewhere: ", "it casts too early, or what is recorded is cast: "
	type ports [3]func(*tensor.Tensor) *tensor.Tensor // of a, b and c
	side := func(engine, encoding string, p ports) *dump.Run {
		r := run(engine, recordedChain(t, p[0], p[1], p[2])...)
		r.Info.Encoding = dump.Encoding{Compute: encoding}
		return r
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
		c, err := judge.Compare(context.Background(), []judge.Case{{Name: "short", Golden: tt.golden, Actual: tt.actual, Encoded: tt.encoded}}, judge.Options{})
		require.NoError(t, err, tt.reason)
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

func wholeNumbers(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%97 - 48)
	}
	return v
}
