package engine_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ok     bool
		reason string
	}{
		{"picture-64x48-1.png", true, "what Name writes"},
		{"cat.png", false, "a file"},
		{"picture-0x48-1.png", false, "no width"},
		{"picture-64x48.png", false, "no seed"},
		{"picture-9999x9999-9999.png", true, "the largest"},
		{"picture-99999x48-1.png", false, "too large to be meant"},
		{"more/picture-64x48-1.png", false, "a file in a folder"},
	} {
		p, ok := engine.ParsePicture(tt.name)
		assert.Equal(t, tt.ok, ok, tt.reason)
		if ok {
			assert.Equal(t, tt.name, p.Name())
		}
	}
}

func decoded(t *testing.T, p engine.Picture) image.Image {
	img, err := png.Decode(bytes.NewReader(p.PNG()))
	require.NoError(t, err)
	return img
}

func TestPNG(t *testing.T) {
	p := engine.Picture{Width: 60, Height: 40, Seed: 1}
	img := decoded(t, p)
	assert.Equal(t, "cfc15292d26e33c79e0c75fec1cb97ec9a5118cf657fd84a6841bbc5df2dcd04",
		fmt.Sprintf("%x", sha256.Sum256(img.(*image.RGBA).Pix)), "goldens are recorded of these pixels")
	assert.Equal(t, image.Rect(0, 0, 60, 40), img.Bounds())
	assert.Equal(t, img, decoded(t, p), "the same each time")

	differs := func(other func(x, y int) (int, int)) (n int) {
		for y := range 40 {
			for x := range 60 {
				if u, v := other(x, y); img.At(x, y) != img.At(u, v) {
					n++
				}
			}
		}
		return n
	}
	const most = 60 * 40 * 9 / 10
	assert.Greater(t, differs(func(x, y int) (int, int) { return 59 - x, y }), most, "mirrored")
	assert.Greater(t, differs(func(x, y int) (int, int) { return x, 39 - y }), most, "upside down")
	assert.Greater(t, differs(func(x, y int) (int, int) { return (x + 8) % 60, y }), most, "a patch further")

	other := decoded(t, engine.Picture{Width: 60, Height: 40, Seed: 2})
	same := 0
	for y := range 40 {
		for x := range 60 {
			if img.At(x, y) == other.At(x, y) {
				same++
			}
		}
	}
	assert.Less(t, same, 60*40/20, "another seed is another picture")
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cat.png")
	require.NoError(t, os.WriteFile(file, []byte("a cat"), 0o644))
	got, err := engine.ReadImage(file)
	require.NoError(t, err)
	assert.Equal(t, "a cat", string(got))
	p := engine.Picture{Width: 3, Height: 2, Seed: 7}
	got, err = engine.ReadImage(p.Name())
	require.NoError(t, err)
	assert.Equal(t, p.PNG(), got, "drawn")
}

func TestDataURI(t *testing.T) {
	file := engine.Picture{Width: 2, Height: 2}.PNG()
	kind, data, ok := strings.Cut(engine.ImageURI(file), ";base64,")
	require.True(t, ok)
	assert.Equal(t, "data:image/png", kind)
	got, err := base64.StdEncoding.DecodeString(data)
	require.NoError(t, err)
	assert.Equal(t, file, got)
	assert.Contains(t, engine.ImageURI([]byte{0xff, 0xd8, 0xff}), "data:image/jpeg")
}
