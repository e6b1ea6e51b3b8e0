package layout

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// Reshapes reports whether a view only gives a tensor another shape.
func (v View) Reshapes() bool {
	return !slices.ContainsFunc(v, func(op Op) bool { return op.Kind != Reshape })
}

// Left marks the rows of t that are left out, where keep says of each index of the first axis
// whether its rows are kept.
func Left(keep []bool, t *tensor.Tensor) []bool {
	rows := t.Len() / max(t.RowLen(), 1)
	each := max(rows/max(len(keep), 1), 1)
	out := make([]bool, rows)
	for i := range out {
		out[i] = i/each < len(keep) && !keep[i/each]
	}
	return out
}

// Spread puts the rows of t where keep is true, in a tensor of another shape with zeros
// elsewhere.
func Spread(t *tensor.Tensor, keep []bool, shape []int) (*tensor.Tensor, error) {
	n, err := tensor.NumElems(shape)
	if err != nil || len(keep) == 0 || n%len(keep) != 0 {
		return nil, fmt.Errorf("%d rows of %s", len(keep), tensor.FormatShape(shape))
	}
	data := t.Copy()
	bytes, _ := data.Bytes()
	row := n / len(keep) * t.DType().Size()
	out := make([]byte, len(keep)*row)
	at := 0
	for i, k := range keep {
		if k {
			if at+row > len(bytes) {
				return nil, fmt.Errorf("%s has fewer rows than are kept", t)
			}
			copy(out[i*row:], bytes[at:at+row])
			at += row
		}
	}
	return tensor.New(t.DType(), shape, out)
}
