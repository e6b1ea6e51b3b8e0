package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/glob"
)

func TestUnpack(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the cache folder is not that of XDG_CACHE_HOME")
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
	assert.Equal(t, string(before), string(after), "a damaged file is written anew")

	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	var infra *engine.InfraError
	_, err = engine.Unpack()
	require.ErrorAs(t, err, &infra)
	assert.Contains(t, err.Error(), "XDG_CACHE_HOME")
}

func TestInterpreter(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs are named otherwise")
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
	for _, tt := range []struct{ parity, dir, want, reason string }{
		{own, inside, own, "the variable goes first"},
		{"", inside, venv, "the virtual environment of the module"},
		{"", inner, venv, "that of the module around, where a nested module has none"},
		{"", root, onPath, "else that of PATH"},
	} {
		got, err := engine.Interpreter(func(string) string { return tt.parity }, tt.dir)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, got, tt.reason)
	}
	var infra *engine.InfraError
	_, err := engine.Interpreter(func(string) string { return filepath.Join(root, "gone") }, inside)
	require.ErrorAs(t, err, &infra, "a variable that points nowhere is not passed over")
	t.Setenv("PATH", "")
	_, err = engine.Interpreter(func(string) string { return "" }, root)
	require.ErrorAs(t, err, &infra)
	assert.Contains(t, err.Error(), ".venv")
}

// TestBlame raises errors from several places and asks whose they are.
func TestBlame(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3: ", err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"site-packages/engine.py": "import json\ndef fail(e): raise e\ndef read(): json.loads('{')\ndef call(f): f()\n",
		"oracle.py":               "import engine\ndef fail(e): raise e\ndef deep(e): engine.fail(e)\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for _, tt := range []struct{ call, kind, place, reason string }{
		{"oracle.fail(ValueError('x'))", "model", "oracle.py:2", "the user's code"},
		{"oracle.deep(ValueError('x'))", "model", "oracle.py:3", "what the user called: the place is the user's own line"},
		{"engine.fail(ValueError('x'))", "model", "engine.py:2", "the engine does not take the model"},
		{"engine.read()", "model", "engine.py:3", "the library that raised it counts, not Python's"},
		{"engine.fail(RuntimeError('CUDA error: no device'))", "infra", "engine.py:2", "the driver"},
		{"engine.fail(FileNotFoundError('x'))", "infra", "engine.py:2", "the installation"},
		{"oracle.fail(FileNotFoundError('x'))", "model", "oracle.py:2", "a file of the user's own code"},
		{"oracle.fail(ImportError('x'))", "infra", "oracle.py:2", "a package that is not there"},
		{"common.Patterns([1])", "bug", "common.py", "our own code"},
		{"engine.call(lambda: common.repeats(5))", "bug", "common.py", "our own code, called by the engine"},
	} {
		script := `
import sys
sys.dont_write_bytecode = True
sys.path[:0] = ["runner", sys.argv[1], sys.argv[1] + "/site-packages"]
from goparity import common
import engine, oracle
try:
    ` + tt.call + `
except Exception as e:
    print(*common.blame(e))`
		got, err := exec.CommandContext(t.Context(), python, "-c", script, dir).CombinedOutput()
		require.NoError(t, err, string(got))
		kind, place, _ := strings.Cut(strings.TrimSpace(string(got)), " ")
		assert.Equal(t, tt.kind, kind, "%s: %s", tt.call, tt.reason)
		assert.Contains(t, filepath.Base(place), tt.place, "%s: %s", tt.call, tt.reason)
	}
}

// TestPatterns compares the patterns of the runners with those of package glob.
func TestPatterns(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3: ", err)
	}
	patterns := []string{"lm_head.*", "layers.{0,1,29}.**", "**.rotary_emb", "layers.*.mlp", "norm", "norm*", "h[0-3].?", "h[!0].x", "a.**.b", "**",
		"{a,b{c,d.e}}.w", `no\*rm`, "model", "*", "encoder.**", "x[]a].y", "output*", "q[a-c,x]"}
	names := []string{"lm_head.weight", "model.lm_head.weight", "model.layers.0.mlp", "layers.29", "model.layers.2.mlp.up", "rotary_emb",
		"model.rotary_emb", "norm", "model.norm(2)", "model.norm", "h2.x", "h0.x", "h9.x", "a.b", "a.c.d.b", "a.w", "z.bd.e.w", "bc.w", "no*rm", "norm.x", "model",
		"encoder", "x].y", "xa.y", "output_0", "q,", "qb", "qd", "anorm", "encoder.layer.0"}
	args := append([]string{"-c", `
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, "runner")
from goparity.common import Patterns
cut = sys.argv.index("--")
for p in sys.argv[1:cut]:
    m = Patterns([p])
    for n in sys.argv[cut + 1:]:
        print(p, n, "end" if m.match(n) else "-", "whole" if m.match_whole(n) else "-")`}, patterns...)
	args = append(append(args, "--"), names...)
	got, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	require.NoError(t, err, string(got))
	want := ""
	for _, text := range patterns {
		p, err := glob.Compile(text)
		require.NoError(t, err)
		for _, n := range names {
			end, whole := "-", "-"
			if p.Match(n) {
				end = "end"
			}
			if p.MatchWhole(n) {
				whole = "whole"
			}
			want += text + " " + n + " " + end + " " + whole + "\n"
		}
	}
	assert.Equal(t, want, string(got))
}
