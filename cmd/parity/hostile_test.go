package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
)

// said runs the command and returns its exit code and everything that it wrote.
func said(ctx context.Context, args ...string) (code int, text string) {
	var b bytes.Buffer
	code = run(ctx, args, &b, &b)
	return code, b.String()
}

func TestNamesDoNotReachTheTerminal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("such names cannot be made there")
	}
	dir := t.TempDir()
	for side, value := range map[string]float32{"ref": 1, "cand": 2} {
		for _, name := range []string{"\x1b[31mred", "a\u202eb", "model.bell\a", strings.Repeat("x", 240), "::error::forged",
			"##vso[task.setvariable]x", "[[ATTACHMENT|x]]", "--- FAIL: TestForged", "ghp_" + strings.Repeat("aB3d", 9)} {
			writeNPY(t, filepath.Join(dir, side, name+"-output.npy"), []float32{value, 1}, 2)
		}
	}
	ref, cand, export := filepath.Join(dir, "ref"), filepath.Join(dir, "cand"), filepath.Join(dir, "export")
	require.NoError(t, os.WriteFile(filepath.Join(ref, "run.json"),
		[]byte(`{"schema":1,"engine":"\u001b[2J","encoding":"\u0007","versions":{"\u001b[2J":"\u001b]0;x\u0007"}}`), 0o644))
	for _, c := range []struct {
		args   []string
		code   int
		reason string
	}{
		{[]string{"show", ref}, 0, "labels, engine and versions"},
		{[]string{"compare", ref, cand}, 1, "failing rows, frontier"},
		{[]string{"compare", "-v", ref, ref}, 0, "passing rows"},
		{[]string{"compare", ref, cand, "-o", export}, 1, "what a folder says"},
		{[]string{"report", "-v", export}, 1, "a report.json that brings them"},
	} {
		code, text := said(t.Context(), c.args...)
		assert.Equal(t, c.code, code, "%s: %s", c.reason, text)
		assert.NotContains(t, text, "\x1b", c.reason)
		assert.NotContains(t, text, "\a", c.reason)
		assert.NotContains(t, text, "\u202e", c.reason)
		assert.NotContains(t, text, "##vso[", c.reason)
		assert.NotContains(t, text, "[[ATTACHMENT|", c.reason)
		assert.NotContains(t, text, "aB3daB3d", c.reason)
		assert.NotRegexp(t, `(?m)^\s*(::error|--- FAIL)`, text, c.reason)
	}
	for _, name := range []string{"summary.txt", "without_injection/module_names_max.txt"} {
		data, err := os.ReadFile(filepath.Join(export, filepath.FromSlash(name)))
		require.NoError(t, err)
		assert.NotContains(t, string(data), "\x1b", name)
	}
}

// A command that was stopped says so, and leaves no result of an earlier run.
func TestStopped(t *testing.T) {
	dir := t.TempDir()
	ref, out := filepath.Join(dir, "ref"), filepath.Join(dir, "report.json")
	writeNPY(t, filepath.Join(ref, "model.a-output.npy"), []float32{1, 2}, 2)
	code, text := said(t.Context(), "compare", ref, ref, "--json", out)
	require.Zero(t, code, text)
	export := filepath.Join(dir, "export")
	code, text = said(t.Context(), "compare", ref, ref, "-o", export)
	require.Zero(t, code, text)

	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("interrupt signal received"))
	for _, c := range []struct {
		args   []string
		report string
		reason string
	}{
		{[]string{"compare", ref, ref, "--json", out}, out, "a comparison"},
		{[]string{"compare", ref, ref, "-o", export}, filepath.Join(export, "report.json"), "one with a folder"},
		{[]string{"compare", filepath.Join("..", "..", "fixtures", "tinyllama"), "-o", export},
			filepath.Join(export, "report.json"), "one of a fixture"},
	} {
		code, text := said(ctx, c.args...)
		assert.Equal(t, exitInfra, code, c.reason)
		assert.Contains(t, text, "interrupt signal received", c.reason)
		data, err := os.ReadFile(c.report)
		require.NoError(t, err)
		assert.Contains(t, string(data), `"verdict": "error"`, c.reason)
		assert.Contains(t, string(data), "interrupt signal received", c.reason)
	}
}

// Several comparisons may write one folder: each ends well, and what lies there is whole.
func TestIntoOneFolder(t *testing.T) {
	dir := t.TempDir()
	ref, cand, export := filepath.Join(dir, "ref"), filepath.Join(dir, "cand"), filepath.Join(dir, "export")
	writeNPY(t, filepath.Join(ref, "model.a-output.npy"), []float32{1, 2}, 2)
	writeNPY(t, filepath.Join(cand, "model.a-output.npy"), []float32{1, 3}, 2)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 2 {
				code, text := said(context.Background(), "compare", ref, cand, "--also", "injected="+cand, "-o", export, "--diagnose", "off")
				assert.Equal(t, exitMismatch, code, text)
			}
		})
	}
	wg.Wait()
	code, text := said(t.Context(), "report", export)
	assert.Equal(t, exitMismatch, code, text)
	found, err := os.ReadDir(export)
	require.NoError(t, err)
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	assert.ElementsMatch(t, append([]string{marker}, entries...), names)
}

// A link in the folder goes; what it points to stays.
func TestReplacesLinks(t *testing.T) {
	dir := t.TempDir()
	ref, export, mine := filepath.Join(dir, "ref"), filepath.Join(dir, "export"), filepath.Join(dir, "mine")
	writeNPY(t, filepath.Join(ref, "model.a-output.npy"), []float32{1, 2}, 2)
	require.NoError(t, os.MkdirAll(export, 0o755))
	require.NoError(t, os.MkdirAll(mine, 0o755))
	keep := filepath.Join(mine, "keep")
	require.NoError(t, os.WriteFile(keep, []byte("mine"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(export, marker), nil, 0o644))
	if err := os.Symlink(mine, filepath.Join(export, "without_injection")); err != nil {
		t.Skip(err)
	}
	require.NoError(t, os.Symlink(keep, filepath.Join(export, "report.json")))
	code, text := said(t.Context(), "compare", ref, ref, "-o", export)
	require.Zero(t, code, text)
	data, err := os.ReadFile(keep)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(data))
	found, err := os.ReadDir(mine)
	require.NoError(t, err)
	assert.Len(t, found, 1)
}

func writeNPY(t *testing.T, path string, values []float32, shape ...int) {
	t.Helper()
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, x))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
}
