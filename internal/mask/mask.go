// Package mask compares attention masks, which engines write in several ways.
package mask

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// Denies reports whether a value of an additive mask hides an element.
func Denies(x float64) bool { return x <= denies }

// Differ counts the elements that one of two attention masks allows and the other denies.
//
// A bool or integer tensor of zeros and ones is multiplicative: 1 allows. A float tensor is
// additive if it has only zeros, which allow, and values ≤ −1e4 (−3.4e38, −Inf …), which deny; it
// is multiplicative if it has only zeros and ones. A float tensor of zeros alone is an additive
// mask that allows everything, and one of ones alone is multiplicative, but only next to a tensor
// that is certainly a mask: bool, integer, or a float with both values.
//
// isMask is false, and n is 0, if a tensor is none of these, if the shapes differ or are empty, or
// if a file cannot be read.
func Differ(golden, actual *tensor.Tensor) (n int, isMask bool) {
	if !slices.Equal(golden.Shape(), actual.Shape()) || golden.Len() == 0 {
		return 0, false
	}
	err := mapfile.Guard(func() error {
		g, a := maskOf(golden), maskOf(actual)
		if isMask = g.kind != notMask && a.kind != notMask && (g.sure || a.sure); isMask {
			both(golden, actual, func(x, y float64) bool {
				if g.allows(x) != a.allows(y) {
					n++
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		return 0, false
	}
	return n, isMask
}

// Constants names the numbers that a mask holds, as they are in the file: "-3.4028235e+38 and 0".
// Of more than a few the rest is left out.
func Constants(t *tensor.Tensor) string {
	var found []float64
	_ = mapfile.Guard(func() error { // what could be read is said
		both(t, t, func(x, _ float64) bool {
			if !slices.Contains(found, x) {
				found = append(found, x)
			}
			return len(found) <= named
		})
		return nil
	})
	slices.Sort(found)
	bits := 32
	if d := t.DType(); d == tensor.F64 || !d.IsFloat() {
		bits = 64
	}
	var names []string
	for _, x := range found[:min(len(found), named)] {
		names = append(names, strconv.FormatFloat(x, 'g', -1, bits))
	}
	switch n := len(names); {
	case len(found) > named:
		return strings.Join(names, ", ") + ", …"
	case n > 1:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// blockLen is the number of elements that are decoded at once: 16 KiB of float64 for each mask,
// which fits into the first cache.
const blockLen = 2048

// both calls f with the elements of two tensors, until it returns false.
func both(golden, actual *tensor.Tensor, f func(g, a float64) bool) {
	gs, as := make([]float64, blockLen), make([]float64, blockLen)
	for start := 0; start < golden.Len(); start += blockLen {
		n := golden.Float64s(gs, start)
		actual.Float64s(as, start)
		for i, x := range gs[:n] {
			if !f(x, as[i]) {
				return
			}
		}
	}
}

type kind uint8

const (
	notMask kind = iota
	additive
	multiplicative
)

type mask struct {
	kind kind
	sure bool
}

func (m mask) allows(x float64) bool {
	if m.kind == additive {
		return x == 0
	}
	return x == 1
}

// maskOf determines what kind of mask a tensor can be, by its values. It stops at the first value
// that no mask has.
func maskOf(t *tensor.Tensor) mask {
	var zero, one, low, other bool
	both(t, t, func(x, _ float64) bool {
		switch {
		case x == 0:
			zero = true
		case x == 1:
			one = true
		case Denies(x):
			low = true
		default:
			other = true
		}
		return !other && !(one && low)
	})
	if other || one && low {
		return mask{}
	}
	switch {
	case !t.DType().IsFloat():
		if low {
			return mask{}
		}
		return mask{multiplicative, true}
	case one:
		return mask{multiplicative, zero}
	default: // zeros, low values, or both; a mask of low values alone would allow nothing
		return mask{additive, low && zero}
	}
}

// Allowed returns two additive masks that are part of a bias, without what they hide: the hidden
// elements, the same ones on both sides, are zero on both. ok is false where nothing is hidden, or
// something on one side alone, or where neither has a number that only a mask has.
func Allowed(golden, actual *tensor.Tensor) (g, a *tensor.Tensor, ok bool) {
	if !golden.DType().IsFloat() || !actual.DType().IsFloat() || !slices.Equal(golden.Shape(), actual.Shape()) {
		return nil, nil, false
	}
	hidden, alike := false, true
	err := mapfile.Guard(func() error {
		both(golden, actual, func(g, a float64) bool {
			alike = Denies(g) == Denies(a)
			hidden = hidden || Denies(g) && (lowest(g) || lowest(a))
			return alike
		})
		return nil
	})
	if err != nil || !hidden || !alike {
		return nil, nil, false
	}
	g, err = shown(golden)
	if err == nil {
		a, err = shown(actual)
	}
	return g, a, err == nil
}

// shown is a copy of an additive mask with zeros where it hides.
func shown(t *tensor.Tensor) (*tensor.Tensor, error) {
	x := make([]float64, t.Len())
	if err := mapfile.Guard(func() error { t.Float64s(x, 0); return nil }); err != nil {
		return nil, err
	}
	for i, v := range x {
		if Denies(v) {
			x[i] = 0
		}
	}
	return tensor.Of(x, t.Shape()...)
}

// lowest reports whether a number is the least of a type, of 16 bits or more, or near it by what a
// bias adds: masks are filled with it.
func lowest(x float64) bool {
	return x < -3e38 || math.Abs(x+65504) < 64
}
