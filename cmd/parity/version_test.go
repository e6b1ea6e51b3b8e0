package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	assert.Regexp(t, `^parity v\d+\.\d+\.\d+(\+dirty)?, |-`+string(head[:12]), string(text), "a tag, or the commit")
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
