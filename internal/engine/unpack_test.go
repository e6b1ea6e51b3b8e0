package engine_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

func TestUnpack(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the cache folder does not follow XDG_CACHE_HOME")
	}
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("HOME", home)
	dir, err := engine.Unpack()
	require.NoError(t, err)
	main := filepath.Join(dir, "__main__.py")
	before, err := os.ReadFile(main)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(main, []byte("damaged"), 0o644))
	again, err := engine.Unpack()
	require.NoError(t, err)
	assert.Equal(t, dir, again)
	after, err := os.ReadFile(main)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after), "a damaged file is written again")

	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	var infra *engine.Error
	_, err = engine.Unpack()
	require.ErrorAs(t, err, &infra)
	assert.Contains(t, err.Error(), "XDG_CACHE_HOME")
}

func TestInterpreter(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs have other names")
	}
	program := func(path ...string) string {
		p := filepath.Join(path...)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte("#!/bin/sh\n"), 0o755))
		return p
	}
	root := t.TempDir()
	own := program(root, "own")
	venv := program(root, "module", ".venv", "bin", "python")
	require.NoError(t, os.WriteFile(filepath.Join(root, "module", "go.mod"), nil, 0o644))
	inside := filepath.Join(root, "module", "a", "b")
	inner := filepath.Join(root, "module", "inner")
	require.NoError(t, os.MkdirAll(inside, 0o755))
	require.NoError(t, os.MkdirAll(inner, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(inner, "go.mod"), nil, 0o644))
	onPath := program(root, "bin", "python3")
	t.Setenv("PATH", filepath.Dir(onPath))
	active := program(root, "active", "bin", "python")
	for _, tt := range []struct{ parity, active, dir, want, reason string }{
		{own, "active", inside, own, "the variable has precedence"},
		{"", "active", inside, venv, "the virtual environment of the module"},
		{"", "", inner, venv, "that of the outer module, if a nested module has none"},
		{"", "active", root, active, "the active one"},
		{"", "gone", root, onPath, "an active one that is gone is none"},
		{"", "", root, onPath, "or else that in PATH"},
	} {
		getenv := func(key string) string {
			if key == "VIRTUAL_ENV" && tt.active != "" {
				return filepath.Join(root, tt.active)
			}
			return map[string]string{"PARITY_PYTHON": tt.parity}[key]
		}
		got, err := engine.Interpreter(getenv, tt.dir)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, got, tt.reason)
	}
	var infra *engine.Error
	_, err := engine.Interpreter(func(string) string { return filepath.Join(root, "gone") }, inside)
	require.ErrorAs(t, err, &infra, "a variable that points nowhere is an error")
	t.Setenv("PATH", "")
	_, err = engine.Interpreter(func(string) string { return "" }, root)
	require.ErrorAs(t, err, &infra)
	assert.Contains(t, err.Error(), ".venv")
}
