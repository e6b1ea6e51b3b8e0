package session_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
)

// quantisedFixture makes a fixture of a model and a .gguf file, and its goldens.
func quantisedFixture(t *testing.T, model, file, encoding string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "live")
	require.NoError(t, os.CopyFS(filepath.Join(dir, "model"), os.DirFS(model)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, fixture.FileName), fmt.Appendf(nil, `
model: {path: ./model, task: text-generation, skip_sanity: the weights are random, encodings: {cpu: {candidate: %s}}}
references:
  - float32
  - {variant: dequantised, weights: ./model/%s}
  - {variant: dequantised, weights: ./model/%s, activations: int8/256}
cases:
  one: {token_ids: [72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100]}
`, encoding, file, file), 0o644))
	updated(t, dir)
	return dir
}

func quantisedModel(t *testing.T, kinds ...string) (model string) {
	t.Helper()
	model = filepath.Join(t.TempDir(), "model")
	script(t, livePython(t), "quantised.py", append([]string{model}, kinds...)...)
	return model
}

// judgeQuantised judges a run, or the engine live if replay is "".
func judgeQuantised(t *testing.T, dir, replay, record string) *report.Report {
	t.Helper()
	config := session.Config{Fixtures: []string{dir}, Replay: replay, Record: record}
	if replay == "" {
		config.Run = setting.RunCPU
	}
	s, err := session.Start(config)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	r, err := s.Default().Report()
	require.NoError(t, err)
	assert.Empty(t, problems(s))
	require.NoError(t, s.Finish(io.Discard))
	return r
}

// The reference on dequantised weights that rounds its inputs judges; what quantisation and rounding
// cost it is told by the others. A candidate with a weight that is too large is wrong there.
func TestLiveDequantised(t *testing.T) {
	model := quantisedModel(t, "q6_k", "q6_k*model.layers.1.mlp.down_proj.weight")
	dir := quantisedFixture(t, model, "q6_k.gguf", "q6_k")
	kept, err := store.Open(filepath.Join(dir, "golden"))
	require.NoError(t, err)
	uses := map[string]string{}
	for _, p := range kept.Runs() {
		uses[p.Variant] = p.Use
		assert.Equal(t, p.Variant == "dequantised-int8-256", p.Info.Activations != nil, p.Variant)
	}
	require.NoError(t, kept.Close())
	assert.Equal(t, map[string]string{"float32": fixture.UseCost, "dequantised": fixture.UseCost,
		"dequantised-int8-256": fixture.UseJudge}, uses)

	y, err := fixture.Load(dir)
	require.NoError(t, err)
	for _, tt := range []struct{ file, wrong string }{
		{"q6_k.gguf", ""},
		{"q6_k-wrong.gguf", "model.model.layers.1.mlp.down_proj"},
	} {
		// The candidate: torch with another kernel of the attention, so that some inputs are rounded
		// another way.
		weights, err := checkpoint.OpenQuantised(filepath.Join(model, tt.file))
		require.NoError(t, err)
		job := y.Job(engine.Torch, engine.CPU)
		job.Path, job.Out = filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "dump")
		require.NoError(t, weights.Write(job.Path, model))
		job.Encoding, job.Config = "float32", map[string]any{engine.AttnImplementation: "sdpa"}
		job.Activations = &engine.Activations{Rule: "int8/256", Weights: weights.Quantised()}
		require.NoError(t, weights.Close())
		made, err := engine.Run(t.Context(), job, engine.Options{Python: os.Getenv("PARITY_PYTHON")})
		require.NoError(t, err)
		require.NoError(t, made.Close())

		r := judgeQuantised(t, dir, job.Out, "")
		if tt.wrong != "" {
			assert.Equal(t, report.Fail, r.Verdict, report.Headline(r))
			require.NotNil(t, r.FirstDivergence)
			assert.Equal(t, tt.wrong, r.FirstDivergence.Layer)
			continue
		}
		assert.Equal(t, report.Pass, r.Verdict, report.Headline(r))
		told := 0
		for _, l := range r.Layers {
			if q := l.Quantisation; q != nil && strings.HasPrefix(l.Layer, "model.model.layers") {
				told++
				assert.Greater(t, float64(q.Cost), 0.0, l.Layer)
				assert.NotNil(t, q.Activations, l.Layer)
			}
		}
		assert.Greater(t, told, 20)
	}
}

// MAX with weights in K-quants against torch on what they stand for: what it adds is rounding alone.
// Against the reference of another file it is wrong where that is.
func TestLiveQuantisedMAX(t *testing.T) {
	livePython(t)
	const wrong = "model.layers.1.mlp.down_proj"
	for _, kind := range []string{"q4_k", "q6_k"} {
		t.Run(kind, func(t *testing.T) {
			model := quantisedModel(t, kind, kind+"*"+wrong+".weight")
			dir := quantisedFixture(t, model, kind+".gguf", kind)
			r := judgeQuantised(t, dir, "", "max")
			assert.Equal(t, report.Pass, r.Verdict, report.Headline(r))
			alone := 0 // outputs before any input that was rounded another way
			for _, l := range r.Layers {
				if l.Standard != nil && !l.Benign && float64(l.Standard.RowRelL2) < 1e-5 {
					alone++
				}
			}
			assert.Greater(t, alone, 10)

			other := quantisedFixture(t, model, kind+"-wrong.gguf", kind)
			r = judgeQuantised(t, other, filepath.Join(dir, "runs", "max"), "")
			assert.Equal(t, report.Fail, r.Verdict, report.Headline(r))
			require.NotNil(t, r.FirstDivergence)
			assert.Equal(t, "model."+wrong, r.FirstDivergence.Layer)
		})
	}
}
