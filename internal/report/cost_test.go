package report_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/reporttest"
)

func TestCostString(t *testing.T) {
	for want, bytes := range map[string]int64{"1 MiB, 0 s": 1 << 20, "1.02e+03 KiB, 0 s": 1<<20 - 1024, "0.5 KiB, 0 s": 512} {
		assert.Equal(t, want, report.Cost{PeakBytes: bytes}.String())
	}
}

func TestCosts(t *testing.T) {
	r := reporttest.Deep(2, 1)
	r.Costs = []report.Cost{
		{Layer: "m.0", Seconds: 0.5, PeakBytes: 9 << 20},
		{Layer: "m.0.attn", Seconds: 0.25, PeakBytes: 3 << 20, Entropy: []report.Entropy{{Nats: 1, Part: 0.5}, {Nats: 2, Part: 1, Uniform: true}, {Nats: nan()}}},
		{Layer: "m.0.attn.q", Seconds: 0.125, PeakBytes: 512},
		{Layer: "m.0.mlp", Seconds: 0.125, PeakBytes: 4 << 20},
	}
	for _, tt := range []struct {
		verbose bool
		want    []string
		reason  string
	}{
		{false, []string{"m.0.mlp", "m.0.attn", "m.0.attn.q"}, "a container takes what is in it; most memory first"},
		{true, []string{"m.0", "m.0.attn", "m.0.attn.q", "m.0.mlp"}, "all, as they ran"},
	} {
		var out strings.Builder
		require.NoError(t, report.Text(&out, r, report.TextOptions{Width: 120, Verbose: tt.verbose}))
		_, text, found := strings.Cut(out.String(), "What the candidate's layers took")
		require.True(t, found, tt.reason)
		var got []string
		for _, line := range strings.Split(text, "\n")[1:] {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] == "…" {
				break
			}
			got = append(got, words[0])
		}
		assert.Equal(t, tt.want, got, tt.reason)
		assert.Contains(t, text, "3 MiB, 0.25 s, 1.5 nats, 0.75 of ln n, 1 of 3 heads uniform")
	}
}

// What a run's engine has measured, each layer once, with the attention that was recorded.
func TestCostsOf(t *testing.T) {
	weights := floats(t, []int{1, 1, 5, 2}, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
	run := &dump.Run{Entries: []dump.Entry{{Layer: "m.attn", Port: "output_1", Step: "0", Tensor: weights}, {Layer: "m.attn", Port: "output_0", Step: "0"},
		{Layer: "m.norm", Port: "output", Step: "0"}, {Layer: "m.mlp", Port: "output", Step: "0"}, {Layer: "m.mlp", Port: "output", Step: "1"}}}
	require.NoError(t, json.Unmarshal([]byte(`{"costs": {"m.attn": [0.5, 7], "m.mlp": [0.25, 9]}}`), &run.Info))
	assert.Equal(t, []report.Cost{
		{Case: "hello", Layer: "m.attn", Seconds: 0.5, PeakBytes: 7, Entropy: []report.Entropy{{Nats: report.Float(math.Ln2), Part: 1, Uniform: true}}},
		{Case: "hello", Layer: "m.mlp", Seconds: 0.25, PeakBytes: 9}}, report.CostsOf("hello", run))
	assert.Nil(t, report.CostsOf("hello", &dump.Run{Entries: run.Entries}), "nothing was measured")
}
