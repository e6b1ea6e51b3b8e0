package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
)

// livePython returns the interpreter of the real engines, which run on demand only.
func livePython(t *testing.T) string {
	t.Helper()
	if os.Getenv("PARITY_LIVE") != "1" {
		t.Skip("runs the real engines: PARITY_LIVE=1, and PARITY_PYTHON with torch, MAX and MLX")
	}
	interpreter, err := engine.Interpreter(os.Getenv, ".")
	require.NoError(t, err)
	t.Setenv("PARITY_PYTHON", interpreter)
	return interpreter
}

// script runs a script of the engines' tests, which makes a model's folder.
func script(t *testing.T, interpreter, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), interpreter, append([]string{filepath.Join("..", "engine", "testdata", name)}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "engine", "runner"))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, cmd.Run())
}

// updated makes the goldens of fixtures.
func updated(t *testing.T, dirs ...string) {
	t.Helper()
	s, err := session.Start(session.Config{Fixtures: dirs, Update: setting.UpdateAll})
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Output()))
	require.NoError(t, s.Close())
}
