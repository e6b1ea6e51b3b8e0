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

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// installed makes a package that looks like the installed one.
func installed(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "site-packages", "transformers")
	write(t, filepath.Join(dir, "__init__.py"), "")
	write(t, filepath.Join(dir, "models", "llama", "modeling_llama.py"), "installed")
	write(t, filepath.Join(dir, "models", "llama", "__pycache__", "x.pyc"), "compiled")
	return dir
}

func TestOverlay(t *testing.T) {
	source, root := installed(t), t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module x")
	below := filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o755))
	dir, err := engine.OverlayFolder(below)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(root, ".parity", "transformers"), dir, "next to go.mod")
	o, err := engine.FindOverlay(below)
	require.NoError(t, err)
	assert.Nil(t, o)

	made, err := engine.MakeOverlay(dir, source, "5.12.1")
	require.NoError(t, err)
	_, err = engine.MakeOverlay(dir, source, "5.12.1")
	require.ErrorContains(t, err, "exists already")
	o, err = engine.FindOverlay(below)
	require.NoError(t, err)
	require.NotNil(t, o)
	assert.Equal(t, made, o)
	assert.Len(t, o.Files, 2, "compiled files are left out")
	changes, err := o.Changes()
	require.NoError(t, err)
	assert.Empty(t, changes)
	for _, module := range []string{"modeling_llama", "modeling_llama.py", "llama", "models/llama", "transformers.models.llama"} {
		assert.Equal(t, []string{"models/llama/modeling_llama.py"}, o.Lookup(module), module)
	}
	assert.Empty(t, o.Lookup("lama"))
	for _, path := range []string{dir, filepath.Join(dir, "transformers", "models")} {
		st, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o755), st.Mode().Perm()&0o755, "others may read it")
	}
	ignored, err := os.ReadFile(filepath.Join(root, ".parity", ".gitignore"))
	require.NoError(t, err)
	assert.Equal(t, "*\n", string(ignored))

	write(t, filepath.Join(o.Package(), "models", "llama", "modeling_llama.py"), "edited")
	write(t, filepath.Join(o.Package(), "new.py"), "")
	require.NoError(t, os.Remove(filepath.Join(o.Package(), "__init__.py")))
	changes, err = o.Changes()
	require.NoError(t, err)
	assert.Equal(t, []string{"removed  __init__.py", "changed  models/llama/modeling_llama.py", "added    new.py"}, changes)
	data, err := os.ReadFile(filepath.Join(source, "models", "llama", "modeling_llama.py"))
	require.NoError(t, err)
	assert.Equal(t, "installed", string(data), "the installation is untouched")

	other := filepath.Join(root, ".parity", "other")
	write(t, other, "")
	require.NoError(t, engine.RemoveOverlay(o.Dir))
	assert.NoDirExists(t, o.Dir)
	assert.FileExists(t, other)
	require.NoError(t, os.Remove(other))
	require.NoError(t, engine.RemoveOverlay(o.Dir))
	assert.NoDirExists(t, filepath.Join(root, ".parity"))
}

// A copy that fails leaves nothing that would be taken for one.
func TestNothingToCopy(t *testing.T) {
	root := t.TempDir()
	_, err := engine.MakeOverlay(filepath.Join(root, ".parity", "transformers"), filepath.Join(root, "gone"), "1")
	require.ErrorContains(t, err, "gone")
	left, err := os.ReadDir(filepath.Join(root, ".parity"))
	require.NoError(t, err)
	assert.Len(t, left, 1, ".gitignore")
	o, err := engine.FindOverlay(root)
	require.NoError(t, err)
	assert.Nil(t, o)
}

// Some installers link files into their cache: writing through such a link would change it for
// everyone.
func TestLinksAreCopied(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	source, cache := installed(t), filepath.Join(t.TempDir(), "cached.py")
	write(t, cache, "cached")
	require.NoError(t, os.Symlink(cache, filepath.Join(source, "linked.py")))
	o, err := engine.MakeOverlay(filepath.Join(t.TempDir(), ".parity", "transformers"), source, "1")
	require.NoError(t, err)
	write(t, filepath.Join(o.Package(), "linked.py"), "edited")
	data, err := os.ReadFile(cache)
	require.NoError(t, err)
	assert.Equal(t, "cached", string(data))
}

func TestEnviron(t *testing.T) {
	o := &engine.Overlay{Dir: "/over"}
	sep := string(os.PathListSeparator)
	for _, tt := range []struct {
		env, want []string
		reason    string
	}{
		{[]string{"A=1"}, []string{"A=1", "PYTHONPATH=/over", "PARITY_TRANSFORMERS=/over"}, "PYTHONPATH was not set"},
		{[]string{"PYTHONPATH=/x", "PYTHONPATH=/y"},
			[]string{"PYTHONPATH=/x", "PYTHONPATH=/y", "PYTHONPATH=/over" + sep + "/y", "PARITY_TRANSFORMERS=/over"},
			"the last value counts, and follows the overlay"},
		{[]string{"PYTHONPATH="}, []string{"PYTHONPATH=", "PYTHONPATH=/over", "PARITY_TRANSFORMERS=/over"},
			"an empty entry would be the working folder"},
	} {
		assert.Equal(t, tt.want, o.Environ(tt.env), tt.reason)
	}
}

func TestDamaged(t *testing.T) {
	for _, tt := range []struct{ text, reason string }{
		{"", "empty"},
		{"{", "cut off"},
		{`{"version":"1"}`, "without files, edits cannot be listed"},
		{`[]`, "another kind of JSON"},
	} {
		root := t.TempDir()
		write(t, filepath.Join(root, ".parity", "transformers", "overlay.json"), tt.text)
		_, err := engine.FindOverlay(root)
		assert.ErrorContains(t, err, "is damaged: parity transformers restore --force", tt.reason)
	}
}
