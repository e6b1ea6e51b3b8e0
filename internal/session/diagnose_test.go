package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// recorded compares two dumps of testdata/causes: blocks of small models with one planted bug, as torch's hooks and MAX wrote them.
func recorded(t *testing.T, golden, actual string, d session.Diagnosis) *session.Comparison {
	t.Helper()
	open := func(dir string) *dump.Run {
		runs, err := dump.OpenCases(filepath.Join("testdata", "causes", dir), dump.Options{})
		require.NoError(t, err)
		require.Len(t, runs, 1)
		t.Cleanup(func() { assert.NoError(t, runs[0].Close()) })
		return runs[0]
	}
	c, err := session.Compare(context.Background(), []session.Case{{Name: "a", Golden: open(golden), Actual: open(actual)}}, session.Options{Diagnosis: d})
	require.NoError(t, err)
	return c
}

func TestCausesOfRecordedRuns(t *testing.T) {
	for _, c := range []struct {
		dir, id, layer string
		proven         bool
		reason         string
	}{
		{"quick-gelu", "activation/quick-gelu", "model.encoder.layer.1.intermediate.intermediate_act_fn", true, "of the layer's own input and output"},
		{"missing-residual", "residual/missing", "model.model.layers.2", true, "of neighbours; real MAX, with its own names and ragged rows"},
		{"rows-from", "rows/from", "model.model.layers.1.self_attn.o_proj", false, "garbage: the place is known, no number is"},
	} {
		r := recorded(t, c.dir+"/ref", c.dir+"/cand", session.Diagnosis{}).Report(c.dir, true)
		require.Equal(t, report.Fail, r.Verdict, c.reason)
		require.NotEmpty(t, r.Causes, c.reason)
		first := r.Causes[0]
		assert.Equal(t, [3]any{c.id, c.layer, c.proven}, [3]any{first.ID, first.Layer, first.Proven}, c.reason)
		if c.proven {
			assert.Less(t, float64(first.Fit), 3e-5, c.reason)
			assert.Greater(t, float64(first.FitGolden), 8*float64(first.Fit), c.reason)
		}
		for _, more := range r.Causes[1:] {
			assert.False(t, more.Proven, "%s: at most one is proven", c.dir)
		}

		clean := recorded(t, c.dir+"/ref", c.dir+"/ref", session.Diagnosis{}).Report(c.dir, true)
		assert.Equal(t, report.Pass, clean.Verdict)
		assert.Nil(t, clean.Causes, "nobody looks for the cause of a pass")
	}
}

func TestDiagnosis(t *testing.T) {
	off := recorded(t, "quick-gelu/ref", "quick-gelu/cand", session.Diagnosis{Mode: session.DiagnoseOff})
	assert.Nil(t, off.Report("x", true).Causes, "nobody asked")
	require.Error(t, session.CheckDiagnose("never"))
	for _, mode := range []string{"", session.DiagnoseOff, session.DiagnoseFast, session.DiagnoseFull} {
		require.NoError(t, session.CheckDiagnose(mode))
	}

	lost := recorded(t, "quick-gelu/ref", "quick-gelu/cand", session.Diagnosis{
		Evidence: func() (diagnose.Weights, diagnose.Config, error) { return nil, nil, errors.New("the disk is gone") },
	}).Report("x", true)
	assert.Equal(t, "activation/quick-gelu", lost.Causes[0].ID, "found without weights too")
	assert.Contains(t, lost.Notes, "the cause was looked for without weights or config: the disk is gone")

	own := diagnose.Func(func(s *diagnose.Scene) []diagnose.Prediction {
		return []diagnose.Prediction{{ID: "house/rule", Text: "what the house knows", Rank: -10, Value: s.Actual(s.Target)}}
	})
	broken := diagnose.Func(func(*diagnose.Scene) []diagnose.Prediction { panic("no") })
	r := recorded(t, "quick-gelu/ref", "quick-gelu/cand", session.Diagnosis{Extra: []diagnose.Hypothesis{broken, own}}).Report("x", true)
	assert.Contains(t, r.Notes, "a hypothesis failed: no", "a hypothesis that panics is told of, and the others go on")
	assert.Equal(t, report.Cause{ID: "house/rule", Layer: r.FirstDivergence.Layer, Proven: true, Fit: 0, FitGolden: r.Causes[0].FitGolden, Text: "what the house knows"}, r.Causes[0])
}

func TestTrials(t *testing.T) {
	c := recorded(t, "missing-residual/ref", "missing-residual/cand", session.Diagnosis{Mode: session.DiagnoseOff})
	trials, err := c.Trials("self_attn.o_proj", "")
	require.NoError(t, err)
	require.Len(t, trials, 1)
	in := trials[0].Inputs(trials[0].ActualRun)
	require.Len(t, in, 1)
	assert.Equal(t, trials[0].Golden.Shape()[:2], in["input_0"].Shape()[:2], "MAX's ragged rows in the golden's shape")
	assert.Contains(t, trials[0].GoldenRun, "model.model.layers.2.self_attn.q_proj-output", "siblings are there")
	f, err := trials[0].Judge(trials[0].Actual, trials[0].Golden)
	require.NoError(t, err)
	assert.True(t, f.Right)
	assert.False(t, f.Proven, "the layer is clean: nothing is explained")
	_, err = trials[0].Judge(in["input_0"], trials[0].Golden)
	assert.NoError(t, err, "another width is no error where the sizes are equal")
	small, err := tensor.Of([]float64{1}, 1)
	require.NoError(t, err)
	_, err = trials[0].Judge(small, small)
	assert.ErrorContains(t, err, "the calculation gave [1]")

	_, err = c.Trials("self_attn.o_proj", "output_7")
	assert.ErrorContains(t, err, `no output "output_7" that both sides recorded: the golden has output`)
	_, err = c.Trials("nothing", "")
	assert.ErrorContains(t, err, "the golden has no layer")
}

// weightFile writes a file of one tensor.
func weightFile(t *testing.T, path, key string) {
	t.Helper()
	x, err := tensor.Of([]float32{1, 2}, 2)
	require.NoError(t, err)
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(f, []tensor.Named{{Name: key, Tensor: x}}, nil))
	require.NoError(t, f.Close())
}

func TestOpenWeights(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[1]") // a folder's name is no pattern
	require.NoError(t, os.Mkdir(dir, 0o755))
	one, two := filepath.Join(dir, "model-1.safetensors"), filepath.Join(dir, "model-2.safetensors")
	weightFile(t, one, "a.weight")
	weightFile(t, two, "b.weight")
	index := filepath.Join(dir, "model.safetensors.index.json")
	for _, c := range []struct {
		index  string
		paths  []string
		want   []string
		err    string
		reason string
	}{
		{"", nil, nil, "", "none"},
		{"", []string{one}, []string{"a.weight"}, "", "a file"},
		{"", []string{one, two}, []string{"a.weight", "b.weight"}, "", "two files"},
		{"", []string{dir}, []string{"a.weight", "b.weight"}, "", "a folder"},
		{`{"weight_map": {"a.weight": "model-1.safetensors"}}`, []string{dir}, []string{"a.weight"}, "", "a folder with an index: only what it names"},
		{`{"weight_map": {"a.weight": "model-1.safetensors", "b.weight": "model-2.safetensors"}}`, []string{index}, []string{"a.weight", "b.weight"}, "", "an index"},
		{"", []string{one, one}, nil, "a.weight is in another of the files too", "the same twice"},
		{"", []string{filepath.Join(dir, "none.safetensors")}, nil, "none.safetensors", "no such file"},
		{`{"weight_map": {"a.weight": "../model-1.safetensors"}}`, []string{index}, nil, "want the name of a file beside the index", "a path out of the folder"},
		{`{"weight_map": {"a.weight": "/etc/passwd"}}`, []string{index}, nil, "want the name of a file beside the index", "an absolute path"},
		{`{"weight_map": {}}`, []string{index}, nil, "the weight_map is empty", "an empty index"},
		{`[`, []string{index}, nil, "want an index with a weight_map", "no index"},
	} {
		require.NoError(t, os.RemoveAll(index))
		if c.index != "" {
			require.NoError(t, os.WriteFile(index, []byte(c.index), 0o644))
		}
		w, err := session.OpenWeights(c.paths...)
		if c.err != "" {
			assert.ErrorContains(t, err, c.err, c.reason)
			continue
		}
		require.NoError(t, err, c.reason)
		var got []string
		for key := range w.Tensors {
			got = append(got, key)
		}
		assert.ElementsMatch(t, c.want, got, c.reason)
		require.NoError(t, w.Close())
	}
}

func TestReadModelConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"hidden_size": 64, "text_config": {"hidden_size": 8, "rope_theta": 1e6}}`), 0o644))
	c, err := session.ReadModelConfig(path)
	require.NoError(t, err)
	size, ok := c.Int("hidden_size")
	assert.True(t, ok)
	assert.Equal(t, 64, size, "the outer level counts")
	theta, ok := c.Float("rotary_base", "rope_theta")
	assert.True(t, ok)
	assert.Equal(t, 1e6, theta, "the inner one where the outer lacks the key")
	require.NoError(t, os.WriteFile(path, []byte(`{"text_config": {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}}`), 0o644))
	c, err = session.ReadModelConfig(path)
	require.NoError(t, err)
	theta, ok = c.Float("rope_theta")
	assert.True(t, ok)
	assert.Equal(t, 5e5, theta, "where transformers 5 writes it")
	require.NoError(t, os.WriteFile(path, []byte(`[]`), 0o644))
	_, err = session.ReadModelConfig(path)
	assert.ErrorContains(t, err, "config.json: want a JSON object")
}

// Whatever an index says, nothing outside of its folder is opened and nothing panics.
func FuzzOpenWeightsIndex(f *testing.F) {
	f.Add([]byte(`{"weight_map": {"a": "b.safetensors"}}`))
	f.Add([]byte(`{"weight_map": {"a": "../b"}}`))
	f.Add([]byte(`{"weight_map": null}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "model.safetensors.index.json")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		if w, err := session.OpenWeights(path); err == nil {
			assert.NoError(t, w.Close())
			assert.Fail(t, "there is no weight in this folder", string(data))
		}
	})
}
