// Package mask compares attention masks, which engines write in several ways.
package mask

import (
	"slices"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// Denies reports whether a value of an additive mask hides an element.
func Denies(x float64) bool { return x <= denies }

// Same compares two tensors as attention masks, by what they allow and deny.
//
// A bool or integer tensor of zeros and ones is multiplicative: 1 allows. A float tensor is
// additive if it has only zeros, which allow, and values ≤ −1e4 (−3.4e38, −Inf …), which deny; it
// is multiplicative if it has only zeros and ones. A float tensor of zeros alone is an additive
// mask that allows everything, and one of ones alone is multiplicative, but only next to a tensor
// that is certainly a mask: bool, integer, or a float with both values.
//
// isMask and same are false if a tensor is none of these, if the shapes differ or are empty, or if
// a file cannot be read.
func Same(golden, actual *tensor.Tensor) (same, isMask bool) {
	if !slices.Equal(golden.Shape(), actual.Shape()) || golden.Len() == 0 {
		return false, false
	}
	err := mapfile.Guard(func() error {
		g, a := maskOf(golden), maskOf(actual)
		isMask = g.kind != notMask && a.kind != notMask && (g.sure || a.sure)
		same = isMask && agree(g, a, golden, actual)
		return nil
	})
	return same && err == nil, isMask && err == nil
}

// blockLen is the number of elements that are decoded at once: 16 KiB of float64 for each mask,
// which fits into the first cache.
const blockLen = 2048

// agree reports whether two masks allow the same elements.
func agree(g, a mask, golden, actual *tensor.Tensor) bool {
	gs, as := make([]float64, blockLen), make([]float64, blockLen)
	for start := 0; start < golden.Len(); start += blockLen {
		n := golden.Float64s(gs, start)
		actual.Float64s(as, start)
		for i, x := range gs[:n] {
			if g.allows(x) != a.allows(as[i]) {
				return false
			}
		}
	}
	return true
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
	var zero, one, low bool
	buf := make([]float64, min(t.Len(), blockLen))
	for start := 0; start < t.Len(); start += blockLen {
		for _, x := range buf[:t.Float64s(buf, start)] {
			switch {
			case x == 0:
				zero = true
			case x == 1:
				one = true
			case Denies(x):
				low = true
			default:
				return mask{}
			}
		}
		if one && low {
			return mask{}
		}
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
