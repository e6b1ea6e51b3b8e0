package compare

import (
	"math"

	"github.com/goparity/goparity/tensor"
)

// pair is one element of both tensors.
type pair struct {
	index  int
	g, a   float64
	d      float64 // |a−g|
	finite bool    // both values are finite
}

// mismatch applies the rule to a pair. equal says that a side has integers.
func (p pair) mismatch(tol Tolerance, equal bool) bool {
	if equal && p.finite {
		return p.d != 0
	}
	return !tol.matches(p.g, p.a)
}

// elements calls a function for each pair of a span.
func (p *pass) elements(s *scratch, b span, each func(x pair)) {
	g, a := s.decode(p, b)
	var more []float64
	if p.whole {
		more = p.remainders(s, b)
	}
	for i, gv := range g {
		av := a[i]
		d := av - gv
		if more != nil {
			d += more[i]
		}
		each(pair{b.start + i, gv, av, math.Abs(d), finite(gv) && finite(av)})
	}
}

// blockLen is the number of elements that are decoded at once where figures are not made by a kernel: two
// buffers of 16 KiB stay in the first-level cache.
const blockLen = 2048

// pairs calls a function for all pairs in order. It is for what need not be fast.
func pairs(golden, actual *tensor.Tensor, each func(x pair)) {
	p, s := newPass(golden, actual, Tolerance{}), scratches.Get().(*scratch)
	defer s.release()
	for start := 0; start < p.n; start += blockLen {
		p.elements(s, span{start, 1, min(blockLen, p.n-start)}, each)
	}
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
