package vec

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// Denied reports whether a value of an additive mask hides an element.
func Denied(x float64) bool { return x <= denies }

// MasksDiffer counts the elements that one of two attention masks allows and the other denies.
//
// A bool or integer tensor of zeros and ones is multiplicative: 1 allows. A float tensor is
// additive if it has only zeros, which allow, and values ≤ −1e4 (−3.4e38, −Inf …), which deny; it
// is multiplicative if it has only zeros and ones. A float tensor of zeros alone is an additive
// mask that allows everything, and one of ones alone is multiplicative, but only next to a tensor
// that is certainly a mask: bool, integer, or a float with both values.
//
// isMask is false, and n is 0, if a tensor is none of these, if the shapes differ or are empty, or
// if a file cannot be read.
func MasksDiffer(golden, actual *tensor.Tensor) (n int, isMask bool) {
	if !slices.Equal(golden.Shape(), actual.Shape()) || golden.Len() == 0 {
		return 0, false
	}
	err := mapfile.Guard(func() error {
		g, sureG := allowing(golden)
		a, sureA := allowing(actual)
		if isMask = g >= 0 && a >= 0 && (sureG || sureA); isMask {
			for x, y := range pairs(golden, actual) {
				if (x == g) != (y == a) {
					n++
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, false
	}
	return n, isMask
}

// MaskConstants names the numbers that a mask holds, as they are in the file: "-3.4028235e+38 and 0".
// Of more than a few the rest is left out.
func MaskConstants(t *tensor.Tensor) string {
	var found []float64
	_ = mapfile.Guard(func() error { // what could be read is said
		for x := range pairs(t, t) {
			if !slices.Contains(found, x) {
				found = append(found, x)
			}
			if len(found) > named {
				break
			}
		}
		return nil
	})
	slices.Sort(found)
	bits := 32
	if d := t.DType(); d == tensor.F64 || !d.IsFloat() {
		bits = 64
	}
	var names []string
	for _, x := range found {
		names = append(names, strconv.FormatFloat(x, 'g', -1, bits))
	}
	switch n := len(names); {
	case n > named:
		return strings.Join(names[:named], ", ") + ", …"
	case n > 1:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// blockLen is the number of elements that are decoded at once: 16 KiB of float64 for each mask,
// which fits into the first cache.
const blockLen = 2048

// pairs are the elements of two tensors.
func pairs(golden, actual *tensor.Tensor) iter.Seq2[float64, float64] {
	return func(yield func(g, a float64) bool) {
		gs, as := make([]float64, blockLen), make([]float64, blockLen)
		for start := 0; start < golden.Len(); start += blockLen {
			n := golden.Float64s(gs, start)
			actual.Float64s(as, start)
			for i, x := range gs[:n] {
				if !yield(x, as[i]) {
					return
				}
			}
		}
	}
}

// allowing is the value with which a tensor allows, if it is a mask by its values, and whether it is one for sure: 0 of
// an additive mask, 1 of a multiplicative one, −1 of what is none.
func allowing(t *tensor.Tensor) (value float64, sure bool) {
	var zero, one, low bool
	for x := range pairs(t, t) {
		zero, one, low = zero || x == 0, one || x == 1, low || Denied(x)
		if x != 0 && x != 1 && !Denied(x) || one && low {
			return -1, false
		}
	}
	switch {
	case !t.DType().IsFloat() && low:
		return -1, false
	case !t.DType().IsFloat():
		return 1, true
	case one:
		return 1, zero
	}
	return 0, low && zero // zeros, low values, or both; a mask of low values alone would allow nothing
}

// AllowedByMasks returns two additive masks that are part of a bias, without what they hide: the hidden
// elements, the same ones on both sides, are zero on both. ok is false where nothing is hidden, or
// something on one side alone, or where neither has a number that only a mask has.
func AllowedByMasks(golden, actual *tensor.Tensor) (g, a *tensor.Tensor, ok bool) {
	if !golden.DType().IsFloat() || !actual.DType().IsFloat() || !slices.Equal(golden.Shape(), actual.Shape()) {
		return nil, nil, false
	}
	err := mapfile.Guard(func() (err error) {
		hidden := false
		for x, y := range pairs(golden, actual) {
			if Denied(x) != Denied(y) {
				return nil
			}
			hidden = hidden || Denied(x) && (isLowest(x) || isLowest(y))
		}
		if !hidden {
			return nil
		}
		if g, err = shown(golden); err == nil {
			a, err = shown(actual)
		}
		ok = err == nil
		return err
	})
	return g, a, ok && err == nil
}

// shown is a copy of an additive mask with zeros where it hides.
func shown(t *tensor.Tensor) (*tensor.Tensor, error) {
	x := make([]float64, t.Len())
	t.Float64s(x, 0)
	for i, v := range x {
		if Denied(v) {
			x[i] = 0
		}
	}
	return tensor.Of(x, t.Shape()...)
}

// isLowest reports whether a number is the least of a type, of 16 bits or more, or near it by what a
// bias adds: masks are filled with it.
func isLowest(x float64) bool {
	return x < -3e38 || math.Abs(x+65504) < 64
}
