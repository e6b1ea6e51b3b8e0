//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSpecialFiles gives each command pipes, devices and files without end in place of its files:
// an error at once, which names the file.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	writeNPY(t, filepath.Join(good, "model.a-output.npy"), []float32{1, 2}, 2)
	at := func(name ...string) string {
		path := filepath.Join(append([]string{dir}, name...)...)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		return path
	}
	pipe := func(name ...string) string {
		path := at(name...)
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		return path
	}
	sparse := func(name ...string) string {
		path := at(name...)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Truncate(path, 100<<30))
		return path
	}
	endless := func(name ...string) string {
		path := at(name...)
		require.NoError(t, os.Symlink("/dev/zero", path))
		return path
	}
	const special, large = "not a regular file", "are read"
	for _, c := range []struct {
		args   []string
		says   string
		reason string
	}{
		{[]string{"compare", good, filepath.Dir(pipe("pipe", "model.a-output.npy"))}, special, "a pipe as a tensor"},
		{[]string{"compare", good, filepath.Dir(endless("zero", "model.a-output.npy"))}, special, "a device as a tensor"},
		{[]string{"compare", good, pipe("model.npy")}, special, "a pipe as a dump"},
		{[]string{"compare", good, pipe("model.log")}, special, "a pipe as a log"},
		{[]string{"compare", good, sparse("large.log")}, large, "a log without end"},
		{[]string{"compare", filepath.Dir(pipe("piped", "run.json")), good}, special, "a pipe as run.json"},
		{[]string{"compare", filepath.Dir(endless("endless", "run.json")), good}, special, "a device as run.json"},
		{[]string{"compare", filepath.Dir(sparse("sparse", "run.json")), good}, large, "run.json of 100 GiB"},
		{[]string{"compare", good, good, "--config", pipe("config.json")}, special, "a pipe as config.json"},
		{[]string{"compare", good, good, "--config", sparse("sparse.json")}, large, "config.json of 100 GiB"},
		{[]string{"compare", good, good, "--weights", pipe("model.safetensors.index.json")}, special, "a pipe as an index"},
		{[]string{"compare", good, good, "--weights", endless("w.safetensors")}, special, "a device as weights"},
		{[]string{"compare", good, good, "--pad-mask", endless("mask.json")}, special, "a device as a mask"},
		{[]string{"show", pipe("one.npy")}, special, "show a pipe"},
		{[]string{"report", pipe("report.json")}, special, "a pipe as a report"},
		{[]string{"report", sparse("sparse", "report.json")}, large, "a report of 100 GiB"},
		{[]string{"golden", "verify", filepath.Dir(filepath.Dir(pipe("f", "golden", "index.json")))}, special,
			"a pipe as an index"},
		{[]string{"golden", "verify", filepath.Dir(filepath.Dir(sparse("s", "golden", "index.json")))}, large,
			"an index of 100 GiB"},
		{[]string{"compare", filepath.Dir(pipe("fixture", "fixture.yaml")), "-o", at("out", "1")}, special, "a pipe as a fixture"},
		{[]string{"compare", filepath.Dir(sparse("big", "fixture.yaml")), "-o", at("out", "2")}, large, "a fixture of 100 GiB"},
	} {
		code, text := said(t.Context(), c.args...)
		assert.Contains(t, []int{exitUsage, exitInfra}, code, "%s: %s", c.reason, text)
		assert.Contains(t, text, c.says, c.reason)
	}
}
