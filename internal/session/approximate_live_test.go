package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/report"
)

const approximate = `
model: {path: ./model, task: text-generation, skip_sanity: the weights are random%s}
references: [{variant: float32, %s}]
cases:
  one: {token_ids: [%s], steps: %d}
`

// approximateFixture makes a fixture whose reference does something as the candidate does.
func approximateFixture(t *testing.T, model, of, more, reference string, steps int) (dir string) {
	t.Helper()
	dir = filepath.Join(filepath.Dir(model), of)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "model"), os.DirFS(model)))
	var tokens []string
	for i := range 24 {
		tokens = append(tokens, fmt.Sprint((7*i+i*i)%256))
	}
	text := fmt.Sprintf(approximate, more, reference, strings.Join(tokens, ", "), steps)
	require.NoError(t, os.WriteFile(filepath.Join(dir, fixture.FileName), []byte(text), 0o644))
	return dir
}

// What a candidate does by intent, the reference does too: then a right candidate is within the noise of
// float32, and a wrong one is wrong where it is.
func TestLiveApproximate(t *testing.T) {
	model := quantisedModel(t)
	kv := approximateFixture(t, model, "kv", "", "kv_cache: {type: int4, group: 32, scheme: affine}", 1)
	lora := approximateFixture(t, model, "lora", "", "adapter: ./adapter", 1)
	mlx := approximateFixture(t, model, "mlx", ", encodings: {cpu: {candidate: float32}}, engine: {name: mlx, kv_bits: 8, kv_group_size: 64}",
		"kv_cache: {type: int8, group: 64, scheme: mlx}", 3)
	dumps := filepath.Join(filepath.Dir(model), "dumps")
	script(t, os.Getenv("PARITY_PYTHON"), "approximate.py", model, filepath.Join(lora, "adapter"), dumps)
	updated(t, kv, lora, mlx)

	const block = "model.model.layers."
	for _, tt := range []struct{ dir, dump, wrong, cause, reason string }{
		{kv, "kv-", "", "", "another way to write the same cache"},
		{kv, "kv-group", block + "0.self_attn", "", "groups of half the size"},
		{kv, "kv-scale", block + "0.self_attn", "", "steps read with tokens and heads exchanged"},
		{kv, "kv-zero", block + "0.self_attn", "quant/zero-point", "the sign of the zero point"},
		{kv, "kv-layer", block + "1.self_attn", "state/stale", "the keys of layer 0 in layer 1"},
		{lora, "lora-", "", "", "the adapter beside its products"},
		{lora, "lora-merged", "", "", "the adapter merged"},
		{lora, "lora-alpha", block + "0.self_attn.q_proj", "linear/adapter", "alpha for alpha/r"},
		{lora, "lora-layer", block + "1.self_attn.v_proj", "", "A of layer 0 in layer 1"},
		{lora, "lora-missing", block + "1.mlp.down_proj", "linear/adapter", "one product without it"},
		{lora, "lora-base", block + "0.self_attn.q_proj", "linear/adapter", "no adapter"},
		{mlx, "", "", "", "mlx-lm's own cache"},
		{mlx, "group", block + "0.self_attn", "", "mlx-lm with other groups, from the first decode step on"},
	} {
		replay := filepath.Join(dumps, tt.dump)
		if tt.dir == mlx {
			replay = ""
			yaml, err := os.ReadFile(filepath.Join(mlx, fixture.FileName))
			require.NoError(t, err)
			if tt.dump == "group" {
				yaml = []byte(strings.Replace(string(yaml), "kv_group_size: 64", "kv_group_size: 32", 1))
				require.NoError(t, os.WriteFile(filepath.Join(mlx, fixture.FileName), yaml, 0o644))
			}
		}
		r := judgeQuantised(t, tt.dir, replay, "")
		if tt.wrong == "" {
			assert.Equal(t, report.Pass, r.Verdict, "%s: %s", tt.reason, report.Headline(r))
			t.Log(report.Headline(r))
			continue
		}
		assert.Equal(t, report.Fail, r.Verdict, "%s: %s", tt.reason, report.Headline(r))
		if assert.NotNil(t, r.FirstDivergence, tt.reason) {
			assert.Equal(t, tt.wrong, r.FirstDivergence.Layer, tt.reason)
		}
		if tt.cause != "" {
			assert.True(t, len(r.Causes) > 0 && r.Causes[0].Proven && r.Causes[0].ID == tt.cause, "%s: %v", tt.reason, r.Causes)
		}
	}
}
