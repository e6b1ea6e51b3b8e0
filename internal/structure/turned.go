package structure

import (
	"math"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// Turned reports whether the rows of the candidate have the lengths of the golden rows and the angles
// between them, up to the floor, and other numbers: an orthogonal map of the columns makes one the
// other, a rotation, a permutation, other signs, and no numbers were lost. It looks at 64 rows; fewer
// than 4 tell nothing.
func Turned(golden, actual *tensor.Tensor, floor compare.Limits) bool {
	w := golden.RowLen()
	if w < 2 || golden.Len() != actual.Len() || golden.RowLen() != actual.RowLen() || golden.Len()/w < leastTurned {
		return false
	}
	rows := golden.Len() / w
	n := min(rows, turnedRows)
	var error2, norm2, off2, gram2 float64
	err := mapfile.Guard(func() error {
		g, a := make([][]float64, n), make([][]float64, n)
		for i := range n {
			g[i], a[i] = make([]float64, w), make([]float64, w)
			at := i * (rows - 1) / max(n-1, 1) * w
			golden.Float64s(g[i], at)
			actual.Float64s(a[i], at)
			for c, x := range g[i] {
				d := a[i][c] - x
				error2, norm2 = error2+d*d, norm2+x*x
			}
			for j := range i + 1 {
				was, is := dot(g[i], g[j]), dot(a[i], a[j])
				off2, gram2 = off2+(is-was)*(is-was), gram2+was*was
			}
		}
		return nil
	})
	limit := 2 * floor.RowRelL2 // of products
	off, far := math.Sqrt(off2/gram2), math.Sqrt(error2/norm2)
	return err == nil && off <= limit && far >= clearlyTurned*limit
}

func dot(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}
