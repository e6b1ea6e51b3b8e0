package report_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/reporttest"
)

func TestCosts(t *testing.T) {
	r := reporttest.Deep(2, 1)
	r.Costs = []report.Cost{
		{Layer: "m.0", Seconds: 0.5, PeakBytes: 9 << 20},
		{Layer: "m.0.attn", Seconds: 0.25, PeakBytes: 3 << 20, Entropy: []report.Entropy{{Nats: 1, Part: 0.5}, {Nats: 2, Part: 1, Uniform: true}, {Nats: report.Float(math.NaN())}}},
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
