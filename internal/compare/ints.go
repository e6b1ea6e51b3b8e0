package compare

import "github.com/goparity/goparity/tensor"

// exact reports whether a pair must be equal: integers or bools on a side.
func exact(golden, actual *tensor.Tensor) bool {
	return !golden.DType().IsFloat() || !actual.DType().IsFloat()
}

func is64(d tensor.DType) bool { return d == tensor.I64 || d == tensor.U64 }

// integers is the kernel of pairs with 64-bit integers on a side, which float64 would round.
type integers struct{}

func (integers) block(p *pass, s *scratch, b span, _ float64) tally {
	f := tally{abs: -1, rel: -1}
	g, a := s.decode(p, b)
	more := p.remainders(s, b)
	for i := range grow(&s.rows, b.rows) {
		s.rows[i] = rowSums{}
		for j := i * b.cols; j < (i+1)*b.cols; j++ {
			if finite(g[j]) && finite(a[j]) {
				f.pair(&s.rows[i], g[j], a[j], a[j]-g[j]+more[j], &p.rule)
			}
		}
	}
	countNonFinite(&f, g, a, &p.rule)
	f.addRows(s.rows[:b.rows])
	return f
}

// remainders returns what a − g has more than the difference of both values in float64, because these round
// 64-bit integers. Together they are 0 only for equal numbers.
func (p *pass) remainders(s *scratch, b span) []float64 {
	ints, out := grow(&s.ints, b.len()), grow(&s.more, b.len())
	clear(out)
	for side, t := range []*tensor.Tensor{p.golden, p.actual} {
		if is64(t.DType()) {
			t.Int64s(ints, b.start)
			for i, v := range ints {
				out[i] += float64(float64(2*side-1) * remainder(v, t.DType() == tensor.U64))
			}
		}
	}
	return out
}

// remainder is what rounding an integer to float64 takes away, at most 1024.
func remainder(v int64, unsigned bool) float64 {
	x := float64(v)
	if unsigned {
		x = float64(uint64(v))
	}
	var rounded uint64 // modulo 2^64
	switch {
	case x == 0x1p64:
	case x < 0:
		rounded = uint64(int64(x))
	default:
		rounded = uint64(x)
	}
	return float64(int64(uint64(v) - rounded))
}
