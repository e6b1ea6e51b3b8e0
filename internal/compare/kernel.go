package compare

import (
	"bytes"

	"github.com/goparity/goparity/tensor"
)

// kernel returns the metrics of a block, and writes those of its rows to s.rows. rel need only be
// right if it is above the one that is known.
type kernel interface {
	block(p *pass, s *scratch, b span, known float64) tally
}

// reference is the kernel in Go.
type reference struct{}

func (reference) block(p *pass, s *scratch, b span, _ float64) tally {
	rows := grow(&s.rows, b.rows)
	if p.narrow {
		g, a := grow(&s.float32[0], b.len()), grow(&s.float32[1], b.len())
		p.golden.Float32s(g, b.start)
		p.actual.Float32s(a, b.start)
		return rowsOf(rows, g, a, b.cols, &p.rule)
	}
	g, a := s.decode(p, b)
	return rowsOf(rows, g, a, b.cols, &p.rule)
}

// equalInts is the kernel for integers of one type: of blocks with the same bytes on both sides only
// the squares are added.
type equalInts struct{ other kernel }

func (k equalInts) block(p *pass, s *scratch, b span, known float64) tally {
	size := p.golden.DType().Size()
	g, okG := p.golden.Bytes()
	a, okA := p.actual.Bytes()
	if !okG || !okA {
		return k.other.block(p, s, b, known)
	}
	g, a = g[b.start*size:][:b.len()*size], a[b.start*size:][:b.len()*size]
	if !bytes.Equal(g, a) {
		return k.other.block(p, s, b, known)
	}
	clear(grow(&s.rows, b.rows)) // without a difference the size of a row does not matter
	f := tally{finite: b.len()}
	sum, ok := squares(p.golden.DType(), g)
	if !ok {
		v := grow(&s.floats[0], b.len())
		p.golden.Float64s(v, b.start)
		for _, x := range v {
			sum += float64(x * x)
		}
	}
	f.gg, f.aa, f.ab = sum, sum, sum
	return f
}

// exact reports whether a pair must be equal: integers or bools on a side.
func exact(golden, actual *tensor.Tensor) bool {
	return !golden.DType().IsFloat() || !actual.DType().IsFloat()
}

func is64(d tensor.DType) bool { return d == tensor.I64 || d == tensor.U64 }

// integers is the kernel of pairs with 64-bit integers on a side, which float64 would round.
type integers struct{}

func (integers) block(p *pass, s *scratch, b span, _ float64) tally {
	f := nothing
	g, a := s.decode(p, b)
	more := p.remainders(s, b)
	rows := grow(&s.rows, b.rows)
	for i := range rows {
		from, to := i*b.cols, (i+1)*b.cols
		rows[i] = anyRow(&f, g[from:to], a[from:to], more[from:to], &p.rule)
	}
	f.addRows(rows)
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
