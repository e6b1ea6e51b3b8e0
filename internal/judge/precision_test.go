package judge_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
)

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
		open := func(name string) *dump.Run {
			runs, err := dump.OpenCases(filepath.Join(dir, name), dump.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, runs[0].Close()) })
			return runs[0]
		}
		p, err := program.Read(filepath.Join(dir, "ref", "program.json"))
		require.NoError(t, err)
		k := judge.Case{Name: "run", Golden: open("ref"), Actual: open(r.candidate), Program: p}
		cmp, err := judge.Compare(t.Context(), []judge.Case{k}, judge.Options{Diagnosis: judge.Diagnosis{Evidence: evidence}})
		require.NoError(t, err)
		report := cmp.Report(r.candidate, true)
		place := ""
		if report.FirstDivergence != nil {
			place = report.FirstDivergence.Layer
		}
		assert.Equal(t, r.place, place, "%s: %s", r.candidate, r.reason)
		assert.Contains(t, strings.Join(report.Notes, "\n"), r.note, r.candidate)
	}
}
