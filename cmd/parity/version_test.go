package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A build of the Makefile says its commit, wherever git reads the checkout.
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
