package engine_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const runner = "runner/goparity"

// wheels are those that make dist built.
func wheels(t *testing.T) []string {
	t.Helper()
	dist := os.Getenv("PARITY_DIST")
	if os.Getenv("PARITY_LIVE") == "" || dist == "" {
		t.Skip("make dist-check builds the wheels and runs this")
	}
	found, err := filepath.Glob(filepath.Join(dist, "*.whl"))
	require.NoError(t, err)
	require.NotEmpty(t, found, "make dist built no wheel")
	return found
}

// A wheel has the runner's files, byte by byte, and a program of the platform that its name says.
func TestLiveWheelFiles(t *testing.T) {
	magic := map[string]string{"linux": "\x7fELF", "macosx": "\xcf\xfa\xed\xfe", "win": "MZ"}
	for _, wheel := range wheels(t) {
		z, err := zip.OpenReader(wheel)
		require.NoError(t, err)
		defer z.Close()
		var modules, programs []string
		for _, f := range z.File {
			r, err := f.Open()
			require.NoError(t, err)
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			switch dir, name := path.Split(f.Name); {
			case dir == "goparity/":
				own, err := os.ReadFile(filepath.Join(runner, name))
				require.NoError(t, err, f.Name)
				assert.True(t, bytes.Equal(own, data), "%s: %s is not the runner's", wheel, f.Name)
				modules = append(modules, name)
			case strings.HasSuffix(dir, ".data/scripts/"):
				programs = append(programs, name)
				assert.NotZero(t, f.Mode()&0o100, "%s: %s can be run", wheel, name)
				platform := strings.Split(filepath.Base(wheel), "-")[4]
				for os, begin := range magic {
					if strings.Contains(platform, os) {
						assert.True(t, bytes.HasPrefix(data, []byte(begin)), "%s: %s is no program of %s", wheel, name, os)
					}
				}
			}
		}
		own, err := filepath.Glob(filepath.Join(runner, "*.py"))
		require.NoError(t, err)
		assert.Len(t, modules, len(own), "%s has all of the runner and no more", wheel)
		assert.Len(t, programs, 1, wheel)
	}
}

// blocks returns the code blocks of a page, by what stands after their fences: language and file.
func blocks(t *testing.T, page string) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", page))
	require.NoError(t, err)
	found := map[string][]string{}
	for i, part := range strings.Split(string(data), "\n```") {
		if i%2 == 1 {
			head, body, _ := strings.Cut(part, "\n")
			found[head] = append(found[head], body)
		}
	}
	return found
}

// In an empty environment, on a machine without Go, the port of docs/record.md is recorded and judged within
// a minute, and what README.md shows of the verdict is what is printed.
func TestLiveWheel(t *testing.T) {
	var mine string
	for _, w := range wheels(t) {
		arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		if strings.Contains(w, "manylinux") && strings.Contains(w, arch) {
			mine = w
		}
	}
	require.NotEmpty(t, mine, "there is no wheel for this machine")
	dir := t.TempDir()
	bin := filepath.Join(dir, "venv", "bin")
	python := filepath.Join(bin, "python")
	uv := os.Getenv("PARITY_UV")
	env := append(os.Environ(), "PATH="+bin+":/usr/bin:/bin", "HOME="+dir, "PYTHONPATH=", "PARITY_PYTHON=", "VIRTUAL_ENV=")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	run := func(ctx context.Context, env []string, name string, args ...string) (string, error) {
		t.Helper()
		c := exec.CommandContext(ctx, name, args...)
		c.Dir, c.Env = dir, env
		out, err := c.CombinedOutput()
		t.Logf("%s %s\n%s", filepath.Base(name), strings.Join(args, " "), out)
		return string(out), err
	}
	must := func(name string, args ...string) string {
		t.Helper()
		out, err := run(ctx, env, name, args...)
		require.NoError(t, err)
		return out
	}
	_, err := run(ctx, os.Environ(), uv, "venv", "--quiet", "--python", "python3", "venv")
	require.NoError(t, err)
	_, err = run(ctx, os.Environ(), uv, "pip", "install", "--quiet", "--python", python, mine)
	require.NoError(t, err)
	found, err := run(ctx, env, "/bin/sh", "-c", "command -v go")
	require.Error(t, err, "Go is in the path: "+found)

	version := must(filepath.Join(bin, "parity"), "--version")
	assert.NotContains(t, version, "not stamped")
	assert.Equal(t, version, must(filepath.Join(bin, "goparity"), "--version"), "both names are one command")
	assert.Equal(t, version, must(python, "-m", "goparity", "--version"))
	for called, command := range map[string][]string{"parity": {filepath.Join(bin, "parity")}, "goparity": {filepath.Join(bin, "goparity")},
		"python -m goparity": {python, "-m", "goparity"}} {
		said, err := run(ctx, env, command[0], append(command[1:], "init", "nowhere")...)
		require.Error(t, err)
		assert.Contains(t, said, "a dump goes with a golden, "+called+" init GOLDEN nowhere", "as it was typed")
	}
	outside := append(env, "PATH=/usr/bin:/bin")
	doctor, err := run(ctx, outside, filepath.Join(bin, "parity"), "doctor")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^python +ok +\S+, `+python+`$`, doctor, "the Python beside the command runs the engines")

	// The torch that the other live tests use stands for the user's own: it takes minutes to install.
	torch, err := exec.Command(os.Getenv("PARITY_PYTHON"), "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))").Output()
	require.NoError(t, err, "PARITY_PYTHON is a Python with torch")
	site := strings.TrimSpace(must(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
	require.NoError(t, os.WriteFile(filepath.Join(site, "user.pth"), torch, 0o600))
	page := blocks(t, "docs/record.md")
	require.Len(t, page["python port.py"], 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "port.py"), []byte(page["python port.py"][0]), 0o600))
	minute, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err = run(minute, env, python, "port.py")
	require.NoError(t, err)
	said, err := run(minute, env, filepath.Join(bin, "goparity"), "compare", "golden", "dump")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	shown := blocks(t, "README.md")[""]
	require.NotEmpty(t, shown, "README.md shows the verdict")
	noise := regexp.MustCompile(`\de-\d+`) // what rounding makes differs from processor to processor
	said = noise.ReplaceAllString(said, "noise")
	for line := range strings.Lines(noise.ReplaceAllString(shown[0], "noise")) {
		assert.Contains(t, said, strings.TrimRight(line, "\n"), "a line of README.md")
	}
}
