package op

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/goparity/goparity/tensor"
)

// Linear is out = in·Wᵀ + Biases·B.
type Linear struct {
	W      *Matrix
	B      []float64 // nil for none
	Biases float64   // how often B is added: 1
	Conv   bool      // W is [in, out], as GPT-2's Conv1D keeps it, and not [out, in]
}

// Size is the number of inputs and of outputs.
func (l Linear) Size() (in, out int) {
	in, out = l.W.Shape()[1], l.W.Shape()[0]
	if l.Conv {
		in, out = out, in
	}
	return in, out
}

// Work is the number of multiplications for n rows.
func (l Linear) Work(n int) float64 { return float64(n) * float64(l.W.Len()) }

// Of returns the product for rows of as many elements as there are inputs.
func (l Linear) Of(x []float64) []float64 {
	k, m := l.Size()
	if x == nil || l.B != nil && len(l.B) != m {
		return nil
	}
	n := len(x) / k
	y := make([]float64, n*m)
	general := func(rows, cols, stride int, data []float64) blas64.General {
		return blas64.General{Rows: rows, Cols: cols, Stride: stride, Data: data}
	}
	l.W.parts(func(from, rows int, w []float64) {
		if l.Conv {
			blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, general(n, rows, k, x[from:]), general(rows, m, m, w),
				1, general(n, m, m, y))
		} else {
			blas64.Gemm(blas.NoTrans, blas.Trans, 1, general(n, k, k, x), general(rows, k, k, w),
				0, general(n, rows, m, y[from:]))
		}
	})
	if l.B != nil && l.Biases != 0 {
		for i := 0; i < len(y); i += m {
			floats.AddScaled(y[i:i+m], l.Biases, l.B)
		}
	}
	return y
}

// Matrix is a weight of two axes, which is decoded in parts when it is used.
type Matrix struct {
	*tensor.Tensor
	data []float64 // nil if it is not kept
}

// NewMatrix returns a tensor of two axes as a matrix.
func NewMatrix(t *tensor.Tensor) *Matrix { return &Matrix{Tensor: t} }

// Kept returns the matrix decoded once for all uses, if it is small.
func (m *Matrix) Kept() *Matrix {
	if m.Len() > keptMatrix {
		return m
	}
	return &Matrix{m.Tensor, ReadAll(m.Tensor)}
}

// MatrixOf returns a matrix of numbers.
func MatrixOf(data []float64, rows, width int) *Matrix {
	t, err := tensor.Of(data, rows, width)
	if err != nil {
		panic(err) // data has rows·width elements
	}
	return &Matrix{Tensor: t, data: data}
}

// parts calls f with all rows of the matrix, or with runs of them.
func (m *Matrix) parts(f func(from, rows int, data []float64)) {
	rows, width := m.Shape()[0], m.Shape()[1]
	if m.data != nil {
		f(0, rows, m.data)
		return
	}
	step := max(matrixPart/width, 1)
	for from := 0; from < rows; from += step {
		n := min(step, rows-from)
		part := make([]float64, n*width)
		m.Float64s(part, from*width)
		f(from, n, part)
	}
}

// Rows decodes the matrix: slices of one array, which the caller may write to.
func (m *Matrix) Rows() [][]float64 {
	all := make([]float64, m.Len())
	m.Float64s(all, 0)
	out := make([][]float64, m.Shape()[0])
	width := m.Shape()[1]
	for r := range out {
		out[r] = all[r*width : (r+1)*width]
	}
	return out
}

// FitLinear returns W and B of y = x·Wᵀ + B by least squares, for n rows of k and of m elements;
// false if the rows do not tell them.
func FitLinear(x, y []float64, n, k, m int) (l Linear, ok bool) {
	a := mat.NewDense(n, k+1, nil)
	for i := range n {
		a.SetRow(i, append(append([]float64(nil), x[i*k:(i+1)*k]...), 1))
	}
	var qr mat.QR
	qr.Factorize(a)
	if c := qr.Cond(); c > learnCond || math.IsNaN(c) {
		return l, false
	}
	var w mat.Dense
	if qr.SolveTo(&w, false, mat.NewDense(n, m, y)) != nil {
		return l, false
	}
	wt := mat.DenseCopyOf(w.Slice(0, k, 0, m).T())
	l = Linear{W: MatrixOf(wt.RawMatrix().Data, m, k), Biases: 1}
	if b := mat.Row(nil, k, &w); floats.Norm(b, 2) > noBias*floats.Norm(y, 2)/math.Sqrt(float64(n)) {
		l.B = b
	}
	return l, true
}
