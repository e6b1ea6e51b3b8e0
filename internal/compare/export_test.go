package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// Sum adds numbers as the sums of blocks are added, with compensation.
func Sum(values ...float64) float64 {
	var s sum
	for _, v := range values {
		s.add(v)
	}
	return s.value()
}

// Reference is Tensors with the kernel in Go.
func Reference(golden, actual *tensor.Tensor, tol Tolerance) (Result, error) {
	defer UseAssembly(UseAssembly(false))
	return Tensors(golden, actual, tol)
}

// Again reads all rows of a pair but those of the first block, with a larger ratio known, and without
// searching for indices.
func Again(golden, actual *tensor.Tensor, tol Tolerance) func() {
	p, s := newPass(golden, actual, tol), new(scratch)
	p.rel.Store(math.Float64bits(2 * p.chunk(0).rel))
	return func() { p.read(&part{tally: nothing}, s, pieceLen/p.rowLen*p.rowLen, p.n) }
}

// Sizes of blocks and chunks.
const (
	PieceLen = pieceLen
	ChunkLen = chunkLen
)
