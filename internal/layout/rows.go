package layout

import (
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
