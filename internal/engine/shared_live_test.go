package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
)

// inCall adds a method by which an edit takes effect only in the second of three calls.
const inCall = `

def _second(self):
    self.calls = getattr(self, "calls", 0) + 1
    return self.calls % 3 == 2
AlbertAttention.second = _second
AlbertLayer.second = _second
`

// ALBERT runs one layer three times. The candidate is torch as well, with an edited copy of
// ALBERT's code that is wrong in the second call.
func TestLiveSharedLayers(t *testing.T) {
	interpreter := live(t)
	model := filepath.Join(t.TempDir(), "model")
	python(t, interpreter, "testdata/tiny_albert.py", model)
	j := engine.Job{Engine: engine.Torch, Device: engine.CPU, Model: engine.Model{Path: model, Task: "embeddings"}, Local: true, Encoding: "float32",
		Cases: []engine.Case{{Name: "run", TokenIDs: [][]int{{2, 5, 6, 7, 8, 9, 10, 3}}, Steps: 1}}}
	j.Program = true
	golden := run(t, interpreter, j)
	j.Program = false
	ran, err := program.Read(golden.Runs[0].Program)
	require.NoError(t, err)

	source, version, err := engine.InstalledTransformers(t.Context(), interpreter)
	require.NoError(t, err)
	overlay, err := engine.MakeOverlay(filepath.Join(t.TempDir(), ".parity", "transformers"), source, version)
	require.NoError(t, err)
	file := filepath.Join(overlay.Package(), "models", "albert", "modeling_albert.py")
	original, err := os.ReadFile(file)
	require.NoError(t, err)
	weights, err := checkpoint.Open(model)
	require.NoError(t, err)
	defer weights.Close()
	config, err := checkpoint.ReadConfig(filepath.Join(model, "config.json"))
	require.NoError(t, err)

	for _, c := range []struct{ from, to, layer, cause, reason string }{
		{"scaling=self.scaling,", "scaling=self.scaling * (1.5 if self.second() else 1),", ".attention(2)",
			"attention/scale",
			"code between the layers of the second call"},
		{"self.full_layer_layer_norm(ffn_output + attention_output)",
			"self.full_layer_layer_norm(ffn_output + (0 if self.second() else 1) * attention_output)", "(2)",
			"residual/missing",
			"code of the container itself"},
	} {
		code := strings.Replace(string(original), c.from, c.to, 1) + inCall
		require.Contains(t, code, c.to, "transformers %s has other code: adapt the edit", version)
		require.NoError(t, os.WriteFile(file, []byte(code), 0o644))
		j.Out = filepath.Join(t.TempDir(), "dump")
		actual, err := engine.Run(t.Context(), j,
			engine.Options{Python: interpreter, Env: overlay.Environ(os.Environ())})
		require.NoError(t, err, c.reason)
		defer actual.Close()
		cmp, err := judge.Compare(t.Context(),
			[]judge.Case{{Name: "run", Golden: golden.Runs[0], Actual: actual.Runs[0], Program: ran}},
			judge.Options{Diagnosis: judge.Diagnosis{
				Evidence: func() (checkpoint.Weights, checkpoint.Config, error) {
					return weights.Tensors, config, nil
				},
			}})
		require.NoError(t, err)
		r := cmp.Report("albert", true)
		require.NotNil(t, r.FirstDivergence, c.reason)
		assert.Equal(t, "model.encoder.albert_layer_groups.0.albert_layers.0"+c.layer,
			r.FirstDivergence.Layer, c.reason)
		require.NotEmpty(t, r.Causes, c.reason)
		assert.Equal(t, [2]any{c.cause, true}, [2]any{r.Causes[0].ID, r.Causes[0].Proven}, c.reason)
	}
}
