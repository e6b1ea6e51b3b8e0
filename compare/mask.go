package compare

import (
	"github.com/goparity/goparity/tensor"
)

// maskLow is the largest value by which an additive mask denies: −1e4 as bfloat16 has it.
const maskLow = -9984

// SameMask compares two tensors as attention masks, by what they allow and deny.
//
// A bool or integer tensor of zeros and ones is multiplicative: 1 allows. A float tensor is additive if it holds nothing but
// zeros, which allow, and values ≤ −1e4 (−3.4e38, −Inf …), which deny; of zeros and ones it is multiplicative. A float tensor of
// zeros alone is an additive mask that allows all, and one of ones alone is multiplicative, but only beside a tensor that is
// surely a mask: bool, integer, or a float with both values.
//
// isMask is false, and so is same, if a tensor is none of these, if the shapes differ or are empty, or if a file could not be read.
func SameMask(golden, actual *tensor.Tensor) (same, isMask bool) {
	if check(golden, actual) != nil || golden.Len() == 0 {
		return false, false
	}
	err := guard(func() error {
		g, a := maskOf(golden), maskOf(actual)
		isMask = g.kind != notMask && a.kind != notMask && (g.sure || a.sure)
		if !isMask {
			return nil
		}
		same = true
		for row, rd := 0, newRowReader(golden, actual); same && row < rd.rows(); row++ {
			rd.read(row, func(_ int, v [][]float64) {
				for i, x := range v[0] {
					same = same && g.allows(x) == a.allows(v[1][i])
				}
			})
		}
		return nil
	}, golden, actual)
	return same && err == nil, isMask && err == nil
}

type maskKind uint8

const (
	notMask maskKind = iota
	additive
	multiplicative
)

type mask struct {
	kind maskKind
	sure bool
}

func (m mask) allows(x float64) bool {
	if m.kind == additive {
		return x == 0
	}
	return x == 1
}

// maskOf tells what kind of mask a tensor can be by its values. It ends at the first value that no mask has.
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
			case x <= maskLow:
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
	default: // zeros, low values, or both; low values alone are no mask that lets anything through
		return mask{additive, low && zero}
	}
}
