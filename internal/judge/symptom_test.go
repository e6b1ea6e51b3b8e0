package judge_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
)

// noise is a tensor of numbers that follow no rule.
func noise(t *testing.T, seed int, shape ...int) *tensor.Tensor {
	t.Helper()
	n, err := tensor.NumElems(shape)
	require.NoError(t, err)
	v := make([]float32, n)
	for i := range v {
		x := math.Sin(float64(i*7919+seed*104729)) * 43758.5453
		v[i] = float32(4*(x-math.Floor(x)) - 2)
	}
	return of(t, v, shape...)
}

// changed is a tensor with another value in each place.
func changed(t *testing.T, x *tensor.Tensor, f func(index []int, v float64) float64) *tensor.Tensor {
	t.Helper()
	v := make([]float32, x.Len())
	for i := range v {
		v[i] = float32(f(x.Index(i), x.At(i)))
	}
	return of(t, v, x.Shape()...)
}

// attentionOf are causal ones of two heads of n tokens: how much more than the others the first key gets, by
// head.
func attentionOf(t *testing.T, n int, first ...float64) *tensor.Tensor {
	t.Helper()
	var v []float32
	for _, f := range first {
		for q := range n {
			for k := range n {
				w := 0.0
				switch {
				case k == 0:
					w = f / (f + float64(q))
				case k <= q:
					w = 1 / (f + float64(q))
				}
				v = append(v, float32(w))
			}
		}
	}
	return of(t, v, 1, len(first), n, n)
}

// evidence is that of the report of a run in a layer that is given the right input, and gives what two
// functions make of x.
func evidence(t *testing.T, layer string, mode setting.Diagnose, golden, actual []port) string {
	t.Helper()
	x := noise(t, 1, 1, 12, 64)
	in := port{layer + "-input_0", x}
	c, err := judge.Compare(t.Context(), []judge.Case{{Name: "short", Golden: run("torch", append([]port{in}, golden...)...),
		Actual: run("max", append([]port{in}, actual...)...)}}, judge.Options{Diagnosis: judge.Diagnosis{Mode: mode}})
	require.NoError(t, err)
	d := c.Report("toy", true).FirstDivergence
	require.NotNil(t, d)
	return strings.Join(d.Evidence, "\n")
}

func TestEvidence(t *testing.T) {
	const attn, up = "model.layers.1.self_attn", "model.layers.1.mlp.up_proj"
	y := noise(t, 2, 1, 12, 64)
	from := func(first int, f func(v float64) float64) *tensor.Tensor {
		return changed(t, y, func(i []int, v float64) float64 {
			if i[1] < first {
				return v
			}
			return f(v)
		})
	}
	off := func(v float64) float64 { return v + math.Sin(1e4*v) } // nothing known
	spike := changed(t, y, func(i []int, v float64) float64 {
		if i[1] == 0 && i[2] == 14 {
			return 1415
		}
		return v
	})
	for _, tt := range []struct {
		reason, layer string
		golden, more  *tensor.Tensor // more: attention weights
		actual, also  *tensor.Tensor
		want, not     []string
	}{
		{reason: "token 0 is right", layer: attn, golden: y, actual: from(1, off), more: attentionOf(t, 12, 3, 5), also: attentionOf(t, 12, 3, 5),
			want: []string{"token 0 is right, 11 of 11 later tokens are wrong: the mask is causal"}},
		{reason: "token 0 is wrong, too", layer: attn, golden: y, actual: from(0, off), more: attentionOf(t, 12, 3, 5), also: attentionOf(t, 12, 3, 5),
			want: []string{"token 0 is wrong, too: the mask is causal", "no row, column or head stands out"}},
		{reason: "without weights it is not known whether attention is causal", layer: attn, golden: y, actual: from(1, off),
			want: []string{"token 0 is right, 11 of 11 later tokens are wrong: under a causal mask"}},
		{reason: "attention that looks at later tokens says nothing", layer: attn, golden: y, actual: from(1, off),
			more: of(t, bytesOf(2*144, 1.0/12), 1, 2, 12, 12), also: of(t, bytesOf(2*144, 1.0/12), 1, 2, 12, 12), not: []string{"token 0"}},
		{reason: "a linear layer lets no tokens see each other", layer: up, golden: y, actual: from(0, off), not: []string{"token 0"}},
		{reason: "token 0 alone", layer: up, golden: y, actual: changed(t, y, func(i []int, v float64) float64 {
			if i[1] == 0 {
				return off(v)
			}
			return v
		}), want: []string{"token 0 alone is wrong", "wrong: row 0, of 12"}},
		{reason: "an anchor that is lost", layer: attn, golden: y, actual: from(1, off), more: attentionOf(t, 12, 2, 100), also: attentionOf(t, 12, 2, 1),
			want: []string{"the anchor at key 0 is lost: it gets 0.94 of head 1 in the golden, 0.19 in the candidate",
				"golden head 1 0.31 nats, 0.16 of ln n, candidate 1.82 nats, 1.00 of ln n (uniform); 1 of 2 heads are alike"}},
		{reason: "a spike that is lost", layer: up, golden: spike, actual: y,
			want: []string{"spikes: the golden has 1415 at token 0, channel 14, its largest value; the candidate is flat there"}},
		{reason: "each column by a factor", layer: up, golden: y, actual: changed(t, y, func(i []int, v float64) float64 { return v * (1.5 + float64(i[2])/64) }),
			want: []string{"the numbers of the golden make the candidate's: each column is multiplied by a factor of its own"}},
		{reason: "turned", layer: up, golden: y, actual: changed(t, y, func(i []int, v float64) float64 {
			other := y.At(i[1]*64 + (i[2] ^ 1))
			if i[2]%2 == 0 {
				return 0.8*v - 0.6*other
			}
			return 0.8*v + 0.6*other
		}), want: []string{"the rows keep their lengths and the angles between them"}},
		{reason: "another function", layer: up, golden: y, actual: from(0, func(v float64) float64 { return v + 0.1*math.Sin(3*v) }),
			want: []string{"each element is off by what its own value says (100 % of the squared error)"}},
		{reason: "two heads are mixed", layer: up, golden: y, actual: changed(t, y, func(i []int, v float64) float64 {
			if i[2] < 16 {
				return 0.7*v + 0.3*y.At(i[1]*64+i[2]+16)
			}
			return v
		}), want: []string{"wrong: columns 0–15, of 64"}},
		{reason: "a proven cause needs no shape", layer: up, golden: y, actual: from(0, func(v float64) float64 { return -v }), not: []string{"stands out", "orthogonal"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			golden, actual := []port{{tt.layer + "-output_0", tt.golden}}, []port{{tt.layer + "-output_0", tt.actual}}
			if tt.more != nil {
				golden, actual = append(golden, port{tt.layer + "-output_1", tt.more}), append(actual, port{tt.layer + "-output_1", tt.also})
			}
			got := evidence(t, tt.layer, setting.DiagnoseFull, golden, actual)
			for _, want := range tt.want {
				assert.Contains(t, got, want)
			}
			for _, not := range tt.not {
				assert.NotContains(t, got, not)
			}
			assert.NotContains(t, evidence(t, tt.layer, setting.DiagnoseOff, golden, actual), "token 0", "no one asked")
		})
	}
}

// bytesOf is n times one value.
func bytesOf(n int, v float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// The outputs of blocks alone, under names that are off by one, or of which the last one is normed.
func TestHeldByNeighbours(t *testing.T) {
	const n = 5
	block := func(i int) string { return fmt.Sprintf("model.layers.%d-output", i) }
	state := func(i int) *tensor.Tensor { return noise(t, i, 1, 48, 32) }
	normed := func(x *tensor.Tensor) *tensor.Tensor {
		return changed(t, x, func(i []int, v float64) float64 {
			sum := 0.0
			for c := range 32 {
				sum += x.At(i[1]*32+c) * x.At(i[1]*32+c)
			}
			return v / math.Sqrt(sum/32) * (1 + float64(i[2])/32)
		})
	}
	golden := func(last *tensor.Tensor) (out []port) {
		for i := range n {
			out = append(out, port{block(i), state(i + 1)})
		}
		out[n-1].t = last
		return out
	}
	shifted := func(by int) (out []port) {
		for i := range n {
			out = append(out, port{block(i), state(i + 1 + by)})
		}
		return out
	}
	logits := func(seed int) port { return port{"lm_head-output", noise(t, seed, 1, 48, 50)} }
	last := state(n)
	for _, tt := range []struct {
		reason         string
		golden, actual []port
		kind, cause    string
		text           string
	}{
		{"the block before", golden(last), shifted(-1), localise.KindCapture, "capture/neighbour", "number i has what the reference has in number i-1, in 4 of 4"},
		{"the block behind", golden(last), shifted(1), localise.KindCapture, "capture/neighbour", "number i has what the reference has in number i+1, in 4 of 4"},
		{"what is behind them is right", append(golden(last), logits(9)), append(shifted(1), logits(9)), localise.KindCapture, "capture/neighbour", "off by one"},
		{"what is behind them is wrong, too: then the model is", append(golden(last), logits(9)), append(shifted(1), logits(8)), localise.KindLocal, "", ""},
		{"other numbers", golden(last), func() (out []port) {
			for i := range n {
				out = append(out, port{block(i), noise(t, 50+i, 1, 48, 32)})
			}
			return out
		}(), localise.KindLocal, "", ""},
		{"one of them: a block may be skipped", golden(last), func() []port {
			out := golden(last)
			out[2].t = out[1].t
			return out
		}(), localise.KindLocal, "", ""},
		{"the last is normed", golden(last), golden(normed(last)), localise.KindCapture, "capture/normed", "the last of the candidate's model.layers.#-output is already normed"},
		{"that of the reference", golden(normed(last)), golden(last), localise.KindCapture, "capture/normed", "the last of the reference's model.layers.#-output is already normed"},
		{"the last is wrong", golden(last), golden(noise(t, 77, 1, 48, 32)), localise.KindLocal, "", ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c, err := judge.Compare(t.Context(), []judge.Case{{Name: "short", Golden: run("torch", tt.golden...), Actual: run("max", tt.actual...)}},
				judge.Options{Diagnosis: judge.Diagnosis{Mode: setting.DiagnoseFull}})
			require.NoError(t, err)
			r := c.Report("toy", true)
			assert.Equal(t, tt.kind, r.Kind)
			if tt.cause == "" {
				for _, k := range r.Causes {
					assert.False(t, k.Proven, k.ID)
				}
				return
			}
			require.NotEmpty(t, r.Causes)
			assert.Equal(t, tt.cause, r.Causes[0].ID)
			assert.True(t, r.Causes[0].Proven)
			assert.Contains(t, r.FirstDivergence.Text, tt.text)
			assert.Empty(t, r.FirstDivergence.Evidence)
		})
	}
}
