package compare

import "github.com/goparity/goparity/tensor"

// Sum adds with the compensated sum that block sums are added with.
func Sum(values ...float64) float64 {
	var s sum
	for _, v := range values {
		s.add(v)
	}
	return s.value()
}

// Reference is Tensors with the kernel in Go.
func Reference(golden, actual *tensor.Tensor, tol Tolerance) (Result, error) {
	defer SetISA(SetISA(0))
	return Tensors(golden, actual, tol)
}

// Sizes of the partition.
const (
	PieceLen = pieceLen
	ChunkLen = chunkLen
)
