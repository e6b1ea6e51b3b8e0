package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

// The runner rounds the inputs of products as ggml does, and a cache as MLX does, bit for bit.
func TestLiveInt8(t *testing.T) {
	if os.Getenv("PARITY_LIVE") != "1" {
		t.Skip("needs torch, gguf and mlx: PARITY_LIVE=1, and PARITY_PYTHON with it")
	}
	interpreter, err := engine.Interpreter(os.Getenv, ".")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), interpreter, "-B", filepath.Join("testdata", "check_int8.py"))
	cmd.Env = append(os.Environ(), "PYTHONPATH=runner")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}
