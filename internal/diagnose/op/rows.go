package op

import "github.com/goparity/goparity/tensor"

// Read decodes rows of a tensor with rows of width, one behind the other; nil if they are too many
// to hold.
func Read(t *tensor.Tensor, width int, rows []int) []float64 {
	if len(rows)*width > DecodeMax {
		return nil
	}
	out := make([]float64, len(rows)*width)
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j] == rows[j-1]+1 {
			j++
		}
		t.Float64s(out[i*width:j*width], rows[i]*width)
		i = j
	}
	return out
}

// ReadAll decodes a tensor.
func ReadAll(t *tensor.Tensor) []float64 { return Read(t, t.Len(), []int{0}) }

// Sequence returns 0, 1, …, n−1.
func Sequence(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Spread returns n of m rows: the first, the last and others evenly between; all if m ≤ n.
func Spread(m, n int) []int {
	if m <= n {
		return Sequence(m)
	}
	out := make([]int, n)
	for i := range out {
		out[i] = int(int64(i) * int64(m-1) / int64(n-1))
	}
	return out
}
