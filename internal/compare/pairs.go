package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// pair is one element of both tensors.
type pair struct {
	index, row, column int
	g, a               float64
	d                  float64 // |a−g|, rounded once, also for integers of 64 bits
	finite             bool    // both values are finite
}

// walkPairs calls f for all pairs in order. f must not keep its argument. It is for the passes
// after the first, which need not be fast.
func walkPairs(golden, actual *tensor.Tensor, f func(*pair)) {
	p := pair{}
	last := golden.RowLen() - 1
	next := func() {
		f(&p)
		p.index++
		if p.column == last {
			p.row, p.column = p.row+1, 0
		} else {
			p.column++
		}
	}
	if whole(golden, actual) {
		unsigned := [2]bool{golden.DType() == tensor.U64, actual.DType() == tensor.U64}
		p.finite = true
		blocks(golden.Len(), golden.Int64s, actual.Int64s, func(g, a []int64) {
			for i := range g {
				p.g, p.a, p.d = toFloat(g[i], unsigned[0]), toFloat(a[i], unsigned[1]),
					intDistance(g[i], a[i], unsigned).float()
				next()
			}
		})
		return
	}
	blocks(golden.Len(), golden.Float64s, actual.Float64s, func(g, a []float64) {
		var more []float64
		if mixed(golden, actual) {
			more = remainders(golden, actual, p.index, len(g))
		}
		for i := range g {
			x := floatPair(g, a, more, i)
			p.g, p.a, p.d, p.finite = x.g, x.a, x.d, x.finite
			next()
		}
	})
}

// floatPair is pair i of values in float64, and of the remainders of a mixed pair of tensors.
func floatPair(g, a, more []float64, i int) pair {
	d := a[i] - g[i]
	if more != nil {
		d += more[i]
	}
	return pair{g: g[i], a: a[i], d: math.Abs(d), finite: finite(g[i]) && finite(a[i])}
}

// mismatch applies the rule to a pair. equal says that a side has integers.
func (p pair) mismatch(tol Tolerance, equal bool) bool {
	if equal && p.finite {
		return p.d != 0
	}
	return !tol.matches(p.g, p.a)
}

// rowReader decodes single rows of several tensors of one shape, block by block.
type rowReader struct {
	tensors []*tensor.Tensor
	buffers [][]float64
	values  [][]float64 // the filled part of each buffer
}

func newRowReader(tensors ...*tensor.Tensor) *rowReader {
	r := &rowReader{tensors: tensors, values: make([][]float64, len(tensors))}
	for _, t := range tensors {
		r.buffers = append(r.buffers, make([]float64, min(t.RowLen(), blockLen)))
	}
	return r
}

func (r *rowReader) rows() int { return r.tensors[0].Len() / r.tensors[0].RowLen() }

// read calls f with the values of each tensor, from column start on.
func (r *rowReader) read(row int, f func(start int, v [][]float64)) {
	n := r.tensors[0].RowLen()
	for from := 0; from < n; from += blockLen {
		m := min(blockLen, n-from)
		for i, t := range r.tensors {
			r.values[i] = r.buffers[i][:m]
			t.Float64s(r.values[i], row*n+from)
		}
		f(from, r.values)
	}
}
