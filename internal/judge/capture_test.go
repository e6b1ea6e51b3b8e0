package judge_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
)

// The outputs of blocks alone, under names that are off by one, or of which the last one is normed.
func TestHeldByNeighbours(t *testing.T) {
	const n = 5
	block := func(i int) string { return fmt.Sprintf("model.layers.%d-output", i) }
	state := func(i int) *tensor.Tensor { return normal(t, uint64(i), 1, 48, 32) }
	normed := func(x *tensor.Tensor) *tensor.Tensor {
		return change(t, x, func(row, column int) float64 {
			sum := 0.0
			for c := range 32 {
				sum += x.At(row*32+c) * x.At(row*32+c)
			}
			return x.At(row*32+column) / math.Sqrt(sum/32) * (1 + float64(column)/32)
		})
	}
	golden := func(last *tensor.Tensor) (out []port) {
		for i := range n {
			out = append(out, port{block(i), state(i + 1)})
		}
		out[n-1].Tensor = last
		return out
	}
	shifted := func(by int) (out []port) {
		for i := range n {
			out = append(out, port{block(i), state(i + 1 + by)})
		}
		return out
	}
	logits := func(seed int) port { return port{"lm_head-output", normal(t, uint64(seed), 1, 48, 50)} }
	last := state(n)
	for _, tt := range []struct {
		reason         string
		golden, actual []port
		kind, cause    string
		text           string
	}{
		{"the block behind", golden(last), shifted(1), localise.KindCapture, "capture/neighbour", "number i has what the reference has in number i+1, in 4 of 4"},
		{"what is behind them is right", append(golden(last), logits(9)), append(shifted(1), logits(9)), localise.KindCapture, "capture/neighbour", "off by one"},
		{"what is behind them is wrong, too: then the model is", append(golden(last), logits(9)), append(shifted(1), logits(8)), localise.KindLocal, "", ""},
		{"other numbers", golden(last), func() (out []port) {
			for i := range n {
				out = append(out, port{block(i), normal(t, uint64(50+i), 1, 48, 32)})
			}
			return out
		}(), localise.KindLocal, "", ""},
		{"the last is normed", golden(last), golden(normed(last)), localise.KindCapture, "capture/normed", "the last of the candidate's model.layers.#-output is already normed"},
		{"that of the reference", golden(normed(last)), golden(last), localise.KindCapture, "capture/normed", "the last of the reference's model.layers.#-output is already normed"},
		{"the last is wrong", golden(last), golden(normal(t, 77, 1, 48, 32)), localise.KindLocal, "", ""},
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
		})
	}
}
