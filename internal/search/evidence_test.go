package search_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/search"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Weights come from the checkpoint; a small buffer, which it may lack, from what the reference had.
func TestOutside(t *testing.T) {
	folder := t.TempDir()
	f, err := os.Create(filepath.Join(folder, "program.safetensors"))
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(f, []tensor.Named{{Name: "buffer:m.bias", Tensor: tensorOf(t, 1, 2)}}, nil))
	require.NoError(t, f.Close())
	file := filepath.Join(folder, "program.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"schema":1,"engine":"torch","case":"c","values":[
		{"id":0,"shape":[2],"dtype":"float32","from":{"weight":"m.bias","buffer":"buffer:m.bias"}},
		{"id":1,"shape":[2],"dtype":"float32","from":{"weight":"m.weight"}},
		{"id":2,"shape":[2],"dtype":"float32","from":{"op":0}},
		{"id":3,"shape":[2],"dtype":"float32","from":{"weight":"m.gone","buffer":"buffer:m.gone"}}],
		"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":"%1"},"out":["%2"],"layer":"m","call":1}],
		"passes":[{"step":"0","ops":[0,1],"ports":{"m-output":["%2",1,1]}}]}`), 0o600))
	p, err := program.Read(file)
	require.NoError(t, err)
	defer p.Close()
	none := func() (checkpoint.Weights, checkpoint.Config, error) { return nil, nil, nil }
	has := func() (checkpoint.Weights, checkpoint.Config, error) {
		return checkpoint.Weights{"m.bias": tensorOf(t, 5, 6), "m.weight": tensorOf(t, 3, 4)}, nil, nil
	}
	for _, tt := range []struct {
		evidence search.Evidence
		value    int
		want     []float64
		errs     []string
		reason   string
	}{
		{has, 0, []float64{5, 6}, nil, "the checkpoint has it"},
		{has, 1, []float64{3, 4}, nil, "a parameter"},
		{none, 0, []float64{1, 2}, nil, "what was kept of a buffer"},
		{none, 1, nil, []string{"its weights are not at hand"}, "of a parameter nothing is kept"},
		{has, 3, nil, []string{"m.gone", "nor is it a buffer of the program", "buffer:m.gone"}, "neither has it"},
	} {
		load, done := tt.evidence.Outside(p)
		a, err := load(&p.Values[tt.value])
		if done(); tt.want == nil {
			for _, text := range tt.errs {
				assert.ErrorContains(t, err, text, tt.reason)
			}
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, a.Floats(), tt.reason)
	}
}

func tensorOf(t *testing.T, x ...float64) *tensor.Tensor {
	t.Helper()
	of, err := tensor.Of(x, len(x))
	require.NoError(t, err)
	return of
}
