package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

// anyPython returns a Python interpreter. The tests in this file need no engine.
func anyPython(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3: ", err)
	}
	return python
}

// TestRunner runs the Python tests of the runners.
func TestRunner(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), anyPython(t), "-B", "-m", "unittest",
		filepath.Join("testdata", "test_runner.py"))
	cmd.Env = append(os.Environ(), "PYTHONPATH=runner")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.NotContains(t, string(out), "Ran 0 tests")
}

// TestCapture checks which ports the runner's Job records.
func TestCapture(t *testing.T) {
	python := anyPython(t)
	ports := []string{"m.norm-output", "m.norm-input_0", "m.0.norm-output_0.1", "m.0-output", "m.0.norm(2)-output"}
	for _, tt := range []struct {
		capture engine.Capture
		want    []string
		reason  string
	}{
		{engine.Capture{}, ports, "without a pattern everything is recorded"},
		{engine.Capture{Layers: []string{"norm"}}, ports[:3], "a layer matches by the end of its name"},
		{engine.Capture{Layers: []string{"m.0", "norm(*)"}}, ports[3:], "any of several patterns"},
		{engine.Capture{Ports: []string{"output"}}, []string{ports[0], ports[3], ports[4]},
			"a port matches by its whole name"},
		{engine.Capture{Ports: []string{"{input,output}_0"}}, ports[1:3], "an element belongs to its whole port"},
		{engine.Capture{Ports: []string{"output_0.*"}}, ports[2:3], "or is captured by itself"},
		{engine.Capture{Layers: []string{"m.*"}, Ports: []string{"output"}}, []string{ports[0], ports[3]},
			"both must match"},
	} {
		j := engine.Job{Engine: "fake", Model: engine.Model{Path: "m"}, Out: filepath.Join(t.TempDir(), "dump"),
			Cases: []engine.Case{{Name: "a"}}, Capture: tt.capture}
		r, err := engine.Run(t.Context(), j, engine.Options{Env: append(os.Environ(), "PYTHONPATH=runner"),
			Program: append([]string{python, "-B", filepath.Join("testdata", "ports.py")}, ports...)})
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, labels(r.Runs[0]), tt.reason)
		require.NoError(t, r.Close())
	}
	j := engine.Job{Engine: "fake", Out: filepath.Join(t.TempDir(), "dump"), Cases: []engine.Case{{Name: "a"}},
		AllowMissing: []string{"a..b"}}
	_, err := engine.Run(t.Context(), j, engine.Options{Program: []string{python}})
	var usage *engine.Error
	require.ErrorAs(t, err, &usage)
	assert.Contains(t, usage.Msg, "an empty segment")
}

// TestVersions checks that the installed versions are those that the runner recommends.
func TestVersions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("runner", "goparity", "installed.py"))
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "WORKS = {")
	table, _, _ = strings.Cut(table, "}")
	found := regexp.MustCompile(`"([\w-]+)": "([\d.]+)"`).FindAllStringSubmatch(table, -1)
	require.Len(t, found, 5)
	all := ""
	for _, text := range engine.Requirements {
		all += regexp.MustCompile(`\[\w+\]`).ReplaceAllString(text, "")
	}
	for _, f := range found {
		assert.Contains(t, strings.Fields(all), f[1]+"=="+f[2])
	}
}

// TestBlame checks who is blamed for errors that are raised in several places.
func TestBlame(t *testing.T) {
	python := anyPython(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"site-packages/engine.py": "import json\ndef fail(e): raise e\ndef read(): json.loads('{')\ndef call(f): f()\n",
		"oracle.py":               "import engine\ndef fail(e): raise e\ndef deep(e): engine.fail(e)\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	tests := []struct{ call, kind, place, reason string }{
		{"oracle.fail(ValueError('x'))", "model", "oracle.py:2", "the user's code"},
		{"oracle.deep(ValueError('x'))", "model", "oracle.py:3", "the place is the line in the user's own code"},
		{"engine.fail(ValueError('x'))", "model", "engine.py:2", "the engine cannot run the model"},
		{"engine.read()", "model", "engine.py:3", "the library that raised it counts, not Python's"},
		{"engine.fail(RuntimeError('CUDA error: no device'))", "infra", "engine.py:2", "the driver"},
		{"engine.fail(FileNotFoundError('x'))", "infra", "engine.py:2", "the installation"},
		{"oracle.fail(FileNotFoundError('x'))", "model", "oracle.py:2", "a file of the user's own code"},
		{"oracle.fail(ImportError('x'))", "infra", "oracle.py:2", "a package that is not installed"},
		{"tokens.repeats(5)", "bug", "tokens.py", "our own code"},
		{"engine.call(lambda: tokens.repeats(5))", "bug", "tokens.py", "our own code, called by the engine"},
		{"engine.call(lambda: core.fast.rope('x'))", "model", "engine.py:4", "a kernel that a hook of ours calls in the model's place"},
	}
	script := `
import sys
sys.dont_write_bytecode = True
sys.path[:0] = ["runner", sys.argv[1], sys.argv[1] + "/site-packages"]
import types
core = types.ModuleType("mlx.core")
core.array, core.fast = type("array", (), {}), types.SimpleNamespace(rope=int)
sys.modules["mlx"] = types.ModuleType("mlx")
sys.modules["mlx"].core = sys.modules["mlx.core"] = core
from goparity import mlxfused, tokens
from goparity.errors import blame
import engine, oracle
mlxfused.Fused(print)
`
	for _, tt := range tests {
		script += "try: " + tt.call + "\nexcept Exception as e: print(*blame(e))\n"
	}
	got, err := exec.CommandContext(t.Context(), python, "-c", script, dir).CombinedOutput()
	require.NoError(t, err, string(got))
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	require.Len(t, lines, len(tests))
	for i, tt := range tests {
		kind, place, _ := strings.Cut(lines[i], " ")
		assert.Equal(t, tt.kind, kind, "%s: %s", tt.call, tt.reason)
		assert.Contains(t, filepath.Base(place), tt.place, "%s: %s", tt.call, tt.reason)
	}
}

// What is planned for an engine, and what its runner refuses, is told by one table: CAN in its Python file.
func TestTakesImages(t *testing.T) {
	files, err := filepath.Glob("runner/goparity/?*run.py")
	require.NoError(t, err)
	require.Len(t, files, 3)
	records := regexp.MustCompile(`(?s)\nCAN = \{.*?"records": \[([^]]*)\]`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		says := records.FindSubmatch(source)
		require.NotNil(t, says, file)
		name := strings.TrimSuffix(filepath.Base(file), "run.py")
		assert.Equal(t, strings.Contains(string(says[1]), `"images"`), engine.TakesImages(name), name)
	}
}

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
