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
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

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
