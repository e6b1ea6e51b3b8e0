package engine

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strconv"

	"github.com/goparity/goparity/internal/mapfile"
)

// ImageMark says in the text of a case where an image stands; without any the images come first.
const ImageMark = "<image>"

// Picture is an image of a size; those of other seeds have nothing in common. Models are tried with it
// where nobody gave any image. It has a name, as a file would, and is drawn from it: no photograph is
// kept.
type Picture struct{ Width, Height, Seed int }

var pictureName = regexp.MustCompile(`^picture-([1-9][0-9]{0,3})x([1-9][0-9]{0,3})-([0-9]{1,4})\.png$`)

// ParsePicture reads the name of a picture, picture-64x48-1.png; ok is false for names of files.
func ParsePicture(name string) (p Picture, ok bool) {
	m := pictureName.FindStringSubmatch(name)
	if m == nil {
		return p, false
	}
	p.Width, _ = strconv.Atoi(m[1])
	p.Height, _ = strconv.Atoi(m[2])
	p.Seed, _ = strconv.Atoi(m[3])
	return p, true
}

// Name is the name of the picture.
func (p Picture) Name() string { return fmt.Sprintf("picture-%dx%d-%d.png", p.Width, p.Height, p.Seed) }

// draw makes pixels of which none can be taken for another: red grows to the right and green down, so
// that turned, mirrored and cut images differ everywhere; blue and the brightness of squares are drawn
// by chance, so that resizing, the order of patches and other seeds show.
func (p Picture) draw() *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, p.Width, p.Height))
	const square = 5 // divides no size of patches
	for y := range p.Height {
		for x := range p.Width {
			chance := noise(uint64(p.Seed), uint64(x/square), uint64(y/square))
			dark := chance >> 8 & 63
			out.SetRGBA(x, y, color.RGBA{
				R: uint8(192*uint64(x)/uint64(p.Width) + dark),
				G: uint8(192*uint64(y)/uint64(p.Height) + dark),
				B: uint8(chance),
				A: 255,
			})
		}
	}
	return out
}

// noise is the finalizer of splitmix64.
func noise(seed, x, y uint64) uint64 {
	z := (seed*1_000_003+x)*1_000_003 + y + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// PNG is the picture as a file.
func (p Picture) PNG() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, p.draw()); err != nil {
		panic("picture: " + err.Error()) // a buffer takes everything, and the size is one that PNG has
	}
	return b.Bytes()
}

// ReadImage returns a file of an image, or draws the picture of that name.
func ReadImage(name string) ([]byte, error) {
	if p, drawn := ParsePicture(name); drawn {
		return p.PNG(), nil
	}
	return mapfile.Read(name, mapfile.MaxConfig)
}

// ImageURI is a file of an image as OpenAI's API takes it.
func ImageURI(file []byte) string {
	kind := "image/png"
	if bytes.HasPrefix(file, []byte{0xff, 0xd8}) {
		kind = "image/jpeg"
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(file)
}
