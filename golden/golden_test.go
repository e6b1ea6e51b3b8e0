package golden_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/golden"
)

const blocks = "../examples/layercomparison/fixtures/blocks/golden"

func open(t *testing.T, dir string) *golden.Store {
	t.Helper()
	s, err := golden.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestTensors(t *testing.T) {
	_, err := golden.Open(t.TempDir())
	require.ErrorIs(t, err, golden.ErrNotFound)
	s := open(t, blocks)
	for _, tt := range []struct {
		variant, name, step string
		found               bool
		reason              string
	}{
		{"float32", "ids", "0", true, "the prefill"},
		{"float32", "ids", "7", false, "no such step"},
		{"float32", "other", "0", false, "no such case"},
		{"float16", "ids", "0", false, "no such variant"},
	} {
		entries, err := s.Tensors(tt.variant, tt.name, tt.step)
		assert.Equal(t, tt.found, len(entries) > 0, tt.reason)
		if tt.found {
			assert.NoError(t, err, tt.reason)
		} else {
			assert.ErrorIs(t, err, golden.ErrNotFound, tt.reason)
		}
	}
}

// What was changed is found, what lies beside it is no fault; and two stores differ by the name of a tensor.
func TestVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "golden")
	require.NoError(t, os.CopyFS(dir, os.DirFS(blocks)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.0.safetensors"), nil, 0o644))
	problems, err := open(t, dir).Verify(t.Context())
	require.NoError(t, err)
	assert.Empty(t, problems)
	files, err := filepath.Glob(filepath.Join(dir, "ids.0.*.safetensors"))
	require.NoError(t, err)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	data[len(data)/2] ^= 1 // of another tensor
	require.NoError(t, os.WriteFile(files[0], data, 0o644))
	changed := open(t, dir)
	problems, err = changed.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.ErrorIs(t, problems[0], golden.ErrCorrupt)
	_, err = changed.Tensors("float32", "ids", "0")
	assert.ErrorIs(t, err, golden.ErrCorrupt)
	diff := golden.Diff(open(t, blocks), changed)
	require.Len(t, diff, 4, "two tensors of two names each")
	assert.Contains(t, diff[1], "float32/ids.0 ")
}
