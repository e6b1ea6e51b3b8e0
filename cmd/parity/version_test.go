package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuildText(t *testing.T) {
	const commit = "3d8ca9a1f0e5b7c2d4a6980f1e2d3c4b5a697887"
	build := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	const unknown = "development version, commit not stamped (-buildvcs=false, a git worktree, or no checkout)"
	for _, c := range []struct {
		info         *debug.BuildInfo
		want, reason string
	}{
		{build("v0.1.0"), "v0.1.0", "go install …@latest: a module has no commit"},
		{build("v0.0.0-20261122101112-3d8ca9a1f0e5"), "v0.0.0-20261122101112-3d8ca9a1f0e5",
			"go install …@main: the pseudo-version is all there is"},
		{build("v0.0.0-20261122101112-3d8ca9a1f0e5", "vcs.revision", commit, "vcs.modified", "false"),
			"development version, commit " + commit, "a checkout without a tag"},
		{build("v0.0.0-20261122101112-3d8ca9a1f0e5+dirty", "vcs.revision", commit, "vcs.modified", "true"),
			"development version, commit " + commit + " (modified)", "with changes"},
		{build("v0.1.0", "vcs.revision", commit, "vcs.modified", "false"), "v0.1.0, commit " + commit,
			"a checkout of a tag"},
		{build("v0.1.0+dirty", "vcs.revision", commit, "vcs.modified", "true"),
			"v0.1.0, commit " + commit + " (modified)", "a checkout of a tag, with changes"},
		{build("(devel)", "vcs.revision", commit), "development version, commit " + commit,
			"older versions of Go make no pseudo-version"},
		{build("(devel)"), unknown, "-buildvcs=false"},
		{build(""), unknown, "a test binary"},
		{nil, "unknown version (built without module information)", "another build system"},
	} {
		assert.Equal(t, c.want, buildText(c.info), c.reason)
	}
}

// A real build of this checkout says its commit.
func TestVersionOfABuild(t *testing.T) {
	if info, err := os.Stat(filepath.Join("..", "..", ".git")); err != nil || !info.IsDir() {
		t.Skip("not in a clone: Go stamps nothing, in a worktree neither")
	}
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("git does not read this clone: %v", err)
	}
	program := filepath.Join(t.TempDir(), "parity.exe")
	out, err := exec.Command("go", "build", "-buildvcs=true", "-ldflags=-w", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := exec.Command(program, "--version").Output()
	require.NoError(t, err)
	assert.Contains(t, string(text), ", commit "+strings.TrimSpace(string(head)))
}

// So does one of the Makefile, wherever git reads the checkout.
func TestVersionOfTheMakefile(t *testing.T) {
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("git does not read this checkout: %v", err)
	}
	program := filepath.Join(t.TempDir(), "parity.exe")
	out, err := exec.Command("make", "-C", filepath.Join("..", ".."), "build", "PARITY="+program).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := exec.Command(program, "--version").Output()
	require.NoError(t, err)
	assert.Regexp(t, `^parity (v[0-9.]+|development version), commit `+strings.TrimSpace(string(head)), string(text))
	assert.NotContains(t, string(text), "not stamped")
}
