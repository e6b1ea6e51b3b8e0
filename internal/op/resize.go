package op

import "math"

// Resizing is how a grid is brought to another size, as torch.nn.functional.interpolate does.
type Resizing struct {
	Kind    string // bicubic, bilinear, nearest or nearest-exact
	Aligned bool   // the corners stay where they are
	Sharp   float64
}

// Resizings are those in use, that of vision transformers first.
var Resizings = []Resizing{
	{Kind: "bicubic"}, {Kind: "bilinear"}, {Kind: "bicubic", Aligned: true}, {Kind: "bilinear", Aligned: true}, {Kind: "nearest"},
	{Kind: "nearest-exact"}, {Kind: "bicubic", Sharp: -0.5},
}

// String names the way.
func (r Resizing) String() string {
	s := r.Kind
	if r.Aligned {
		s += " with aligned corners"
	}
	if r.Sharp != 0 {
		s += " of the kind of other libraries (a = −0.5)"
	}
	return s
}

// Of resizes a grid of rows [height·width, n] to [toHeight·toWidth, n].
func (r Resizing) Of(x []float64, height, width, toHeight, toWidth, n int) []float64 {
	rows, columns := r.taps(height, toHeight), r.taps(width, toWidth)
	out := make([]float64, toHeight*toWidth*n)
	for i, ys := range rows {
		for j, xs := range columns {
			dst := out[(i*toWidth+j)*n:][:n]
			for _, y := range ys {
				for _, c := range xs {
					f := y.weight * c.weight
					src := x[(y.at*width+c.at)*n:][:n]
					for k := range dst {
						dst[k] += f * src[k]
					}
				}
			}
		}
	}
	return out
}

// tap is a place of a line and its weight.
type tap struct {
	at     int
	weight float64
}

// taps are those of each place of a line of to, taken from one of n.
func (r Resizing) taps(n, to int) [][]tap {
	out := make([][]tap, to)
	for i := range out {
		at := (float64(i)+0.5)*float64(n)/float64(to) - 0.5
		if r.Aligned && to > 1 {
			at = float64(i) * float64(n-1) / float64(to-1)
		}
		clamped := func(k int) int { return min(max(k, 0), n-1) }
		switch r.Kind {
		case "nearest":
			out[i] = []tap{{clamped(i * n / to), 1}}
		case "nearest-exact":
			out[i] = []tap{{clamped(int(math.Floor((float64(i) + 0.5) * float64(n) / float64(to)))), 1}}
		case "bilinear":
			at = max(at, 0)
			first := int(at)
			f := at - float64(first)
			out[i] = []tap{{clamped(first), 1 - f}, {clamped(first + 1), f}}
		default:
			a := -0.75
			if r.Sharp != 0 {
				a = r.Sharp
			}
			first := int(math.Floor(at))
			f := at - float64(first)
			for k := -1; k <= 2; k++ {
				out[i] = append(out[i], tap{clamped(first + k), cubic(math.Abs(f-float64(k)), a)})
			}
		}
	}
	return out
}

// cubic is the kernel of cubic convolution at a distance.
func cubic(d, a float64) float64 {
	switch {
	case d <= 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return ((d-5)*d+8)*d*a - 4*a
	}
	return 0
}
