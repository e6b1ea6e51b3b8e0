package vec

import "slices"

// Transposition returns, for element i of a tensor with axes x and y exchanged and read in
// row-major order, its number in the tensor.
func Transposition(shape []int, x, y int) func(i int) int {
	swapped := slices.Clone(shape)
	swapped[x], swapped[y] = shape[y], shape[x]
	strides := make([]int, len(shape))
	n := 1
	for k := len(shape) - 1; k >= 0; k-- {
		strides[k] = n
		n *= shape[k]
	}
	strides[x], strides[y] = strides[y], strides[x]
	return func(i int) int {
		out := 0
		for k := len(swapped) - 1; k >= 0; k-- {
			out += i % swapped[k] * strides[k]
			i /= swapped[k]
		}
		return out
	}
}

// Select returns columns of rows of width: column i of the result is column from[i].
func Select(x []float64, width int, from []int) []float64 {
	if x == nil {
		return nil
	}
	out := make([]float64, 0, len(x)/width*len(from))
	for r := 0; r < len(x); r += width {
		for _, f := range from {
			out = append(out, x[r+f])
		}
	}
	return out
}

// Runs returns of how many runs of neighbouring columns a permutation consists.
func Runs(from []int) int {
	n := 1
	for i := 1; i < len(from); i++ {
		if from[i] != from[i-1]+1 {
			n++
		}
	}
	return n
}

// BlockSize returns the largest number of columns that stay together in a permutation that moves
// blocks of this size.
func BlockSize(from []int) int {
	for d := len(from) / 2; d > 1; d-- {
		if len(from)%d == 0 && movesBlocks(from, d) {
			return d
		}
	}
	return 1
}

func movesBlocks(from []int, d int) bool {
	for i, f := range from {
		if first := from[i-i%d]; first%d != 0 || f != first+i%d {
			return false
		}
	}
	return true
}
