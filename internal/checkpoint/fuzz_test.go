package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Whatever the header and config.json say, there is an error that names the tensor, or all elements
// can be read.
func FuzzJoin(f *testing.F) {
	for _, folder := range folders {
		data, err := os.ReadFile(filepath.Join("testdata", "quantised", folder, "model.safetensors"))
		require.NoError(f, err)
		config, err := os.ReadFile(filepath.Join("testdata", "quantised", folder, "config.json"))
		if err != nil {
			config = []byte("{}")
		}
		f.Add(data, config)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data, text []byte) {
		file, err := safetensors.Decode("x.safetensors", data)
		if err != nil {
			return
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600))
		config, err := checkpoint.ReadQuantisation(dir)
		if err != nil {
			config = nil
		}
		got, _, err := checkpoint.Join(file.Tensors, config, nil)
		if err != nil {
			var fe *tensor.FormatError
			require.ErrorAs(t, err, &fe)
			return
		}
		for _, x := range got {
			buf := make([]float64, min(x.Len(), 1<<16))
			require.Equal(t, len(buf), x.Float64s(buf, 0))
		}
	})
}
