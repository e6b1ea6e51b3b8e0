package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
)

func TestElsewhereByIndex(t *testing.T) {
	for _, name := range []string{"plain", "m[1]"} {
		dir := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(`{"weight_map": {"a": "1", "b": "2"}}`), 0o644))
		elsewhere, err := checkpoint.InOtherFiles(dir, "1")
		require.NoError(t, err, name)
		require.NotNil(t, elsewhere, name)
		assert.False(t, elsewhere("a"), name)
		assert.True(t, elsewhere("b"), name)
		elsewhere, err = checkpoint.InOtherFiles(dir, "3")
		require.NoError(t, err, name)
		assert.Nil(t, elsewhere, "no index names it")
	}
}
