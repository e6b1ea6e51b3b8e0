package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// The reference in float32 and in 16 bits, both with the eager attention; the candidate is torch in
// 16 bits with SDPA. It passes by what the encoding costs the reference, decode steps included. A
// weight that is 5 % too large is found by that, and by the defaults.
func TestLiveMeasuredFloor(t *testing.T) {
	interpreter := livePython(t)
	for _, tt := range []struct {
		encoding, script, yaml string
		guilty                 string // a layer with a weight that is too large; "" for none
	}{
		{"bfloat16", "tiny_llama.py", `
model: {path: ./model, task: text-generation, skip_sanity: the weights are random}
references: [float32, bfloat16]
cases:
  one: {prompt: The meaning of life, steps: 4}
  two: {token_ids: [[72, 101, 108, 108, 111], [5, 6]], steps: 2}
`, "model.layers.1.mlp.down_proj"},
		{"float16", "tiny_bert.py", `
model: {path: ./model, task: embeddings, allow_missing: ["**"]}
references: [float32, float16]
cases:
  one: {prompt: abc}
  two: {prompt: [abc, z]}
`, ""},
	} {
		t.Run(tt.encoding, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "live")
			model := func(name string, change ...string) {
				script(t, interpreter, tt.script, append([]string{filepath.Join(dir, name)}, change...)...)
			}
			model("model")
			require.NoError(t, os.WriteFile(filepath.Join(dir, fixture.FileName), []byte(tt.yaml), 0o644))
			forced := liveGoldens(t, dir, tt.encoding)

			judged := func(model string) (c, byDefault *judge.Comparison, r *report.Report) {
				y, err := fixture.Load(dir)
				require.NoError(t, err)
				job := y.Job(engine.Torch, engine.CPU)
				job.Path, job.Out = filepath.Join(dir, model), filepath.Join(t.TempDir(), "dump")
				job.Encoding, job.Config = tt.encoding, map[string]any{engine.AttnImplementation: "sdpa"}
				for i := range job.Cases {
					job.Cases[i].Forced = forced[i]
				}
				made, err := engine.Run(t.Context(), job, engine.Options{Python: interpreter})
				require.NoError(t, err)
				require.NoError(t, made.Close())
				s, err := session.Start(session.Config{Fixtures: []string{dir}, Replay: job.Out})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, s.Close()) })
				c, err = s.Default().Comparison()
				require.NoError(t, err)
				r, err = s.Default().Report()
				require.NoError(t, err)
				assert.Empty(t, problems(s))
				var plain []judge.Case
				for _, k := range c.Cases {
					require.NotNil(t, k.Encoded)
					assert.Equal(t, "eager", k.Encoded.Info.Attention)
					assert.Equal(t, "sdpa", k.Actual.Info.Attention)
					k.Encoded = nil
					plain = append(plain, k)
				}
				byDefault, err = judge.Compare(t.Context(), plain,
					judge.Options{Match: match.Options{Generating: y.Model.Task == fixture.TextGeneration}})
				require.NoError(t, err)
				return c, byDefault, r
			}
			_, _, r := judged("model")
			assert.Equal(t, report.Pass, r.Verdict, report.Headline(r))
			measured, worst := 0, 0.0
			for _, l := range r.Layers {
				if l.Standard != nil && l.Standard.Costs != nil {
					measured++
					worst = max(worst, float64(l.Standard.RowCost), float64(l.Standard.Cost))
				}
			}
			t.Logf("%d ports are measured, the worst costs %.2f", measured, worst)
			assert.Greater(t, measured, 50)
			if tt.guilty == "" {
				return
			}
			model("wrong", "scale", tt.guilty+".weight", "1.05")
			c, byDefault, r := judged("wrong")
			assert.Equal(t, report.Fail, r.Verdict)
			for name, by := range map[string]*judge.Comparison{"the measured cost": c, "the defaults": byDefault} {
				if assert.NotNil(t, by.Verdict, name) {
					assert.Equal(t, "model."+tt.guilty, by.Verdict.Layer, name)
				}
			}
		})
	}
}

// liveGoldens runs the reference in each of its types, and returns the tokens of the decode steps, by
// case.
func liveGoldens(t *testing.T, dir, encoding string) (forced [][][]int) {
	t.Helper()
	s, err := session.Start(session.Config{Fixtures: []string{dir}, Update: setting.UpdateAll})
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Output()))
	c, err := s.Default().CompareFunc(func(p engine.Pass) (map[string]*tensor.Tensor, error) {
		return map[string]*tensor.Tensor{p.Golden[0].Label(): p.Golden[0].Tensor}, nil
	})
	require.NoError(t, err)
	for _, k := range c.Cases {
		forced = append(forced, k.Golden.Decoded())
	}
	require.NoError(t, s.Close())

	kept, err := store.Open(filepath.Join(dir, "golden"))
	require.NoError(t, err)
	problems, err := kept.Verify(t.Context())
	require.NoError(t, err)
	assert.Empty(t, problems)
	for _, p := range kept.Runs() {
		assert.Equal(t, "eager", p.Info.Attention)
		assert.Equal(t, p.Variant == encoding, p.Use == fixture.UseCost)
		assert.Equal(t, kept.Steps("float32", p.Info.Case), kept.Steps(encoding, p.Info.Case))
	}
	require.NoError(t, kept.Close())
	return forced
}
