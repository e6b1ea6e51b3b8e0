package compare

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/each"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

const (
	// pieceLen is the most elements of a block, which a kernel reads in one call: both sides fit
	// into the first-level cache, and a call takes microseconds.
	pieceLen = 8192
	// chunkLen is the number of elements that one core takes at a time, in whole rows. The partition,
	// and hence all sums, depends only on the shape.
	chunkLen = 64 * pieceLen
	// chunksAhead is how many chunks ahead a part of a file is requested, so that a disk has time
	// to read it.
	chunksAhead = 8
)

// pass reads a pair of tensors once. They are not empty.
type pass struct {
	rule
	golden, actual *tensor.Tensor
	n, rowLen      int
	kernel         kernel
	rel            atomic.Uint64 // bits of the largest so far, on all cores
}

// span is a number of successive rows of cols elements each, from element start. A single row may
// be a piece of a row.
type span struct{ start, rows, cols int }

func (b span) len() int { return b.rows * b.cols }

func newPass(golden, actual *tensor.Tensor, tol Tolerance, s scale) *pass {
	p := &pass{golden: golden, actual: actual, n: golden.Len(), rowLen: golden.RowLen()}
	p.rule = rule{tol: tol, exact: exact(golden, actual), narrow: narrow(golden.DType()) && narrow(actual.DType()), scale: s}
	if p.exact {
		p.tol.Atol, p.tol.Rtol = 0, 0
	}
	p.kernel = fastest(p)
	if !s.zero() || is64(golden.DType()) || is64(actual.DType()) {
		p.kernel = anyRows
	}
	if golden.DType() == actual.DType() && !golden.DType().IsFloat() {
		p.kernel = equalInts(p.kernel)
	}
	return p
}

// part has the figures of a chunk.
type part struct {
	tally
	dd, gg, aa, ab    sum
	absIn, relIn, bad span // the first blocks with the largest abs and rel, and with a mismatch
	rows              worstRow
}

// perChunk is the number of rows of a chunk.
func (p *pass) perChunk() int { return max(1, chunkLen/p.rowLen) }

// chunk reads chunk i.
func (p *pass) chunk(i int, s *scratch) *part {
	first, end := i*p.perChunk(), min((i+1)*p.perChunk(), p.n/p.rowLen)
	s.open(p, first*p.rowLen, (end-first)*p.rowLen)
	t := &part{tally: tally{abs: -1, rel: -1}}
	p.readRows(t, s, first, end)
	return t
}

// readRows reads rows first, first+1, … end−1.
func (p *pass) readRows(t *part, s *scratch, first, end int) {
	for row := first; row < end && p.rowLen > pieceLen; row++ {
		var dd, gg sum
		for from := 0; from < p.rowLen; from += pieceLen {
			f := p.add(t, s, span{row*p.rowLen + from, 1, min(pieceLen, p.rowLen-from)})
			dd.add(f.dd)
			gg.add(f.gg)
		}
		t.rows.add(row, dd.value(), gg.value())
	}
	for row, step := first, pieceLen/p.rowLen; row < end && step > 0; row += step {
		b := span{row * p.rowLen, min(step, end-row), p.rowLen}
		p.add(t, s, b)
		for j := range b.rows {
			if r := &s.rows[j]; !t.rows.beats(r.dd, r.gg) {
				t.rows.add(row+j, r.dd, r.gg)
			}
		}
	}
}

// add reads a block.
func (p *pass) add(t *part, s *scratch, b span) tally {
	// The first block with the largest ratio counts. One that has it as another core has it is earlier,
	// or is not; of this part, it is later.
	shared := math.Float64frombits(p.rel.Load())
	f := p.kernel(p, s, b, grow(&s.rows, b.rows), max(t.rel, below(shared)))
	for f.rel > shared && !p.rel.CompareAndSwap(math.Float64bits(shared), math.Float64bits(f.rel)) {
		shared = math.Float64frombits(p.rel.Load())
	}
	t.dd.add(f.dd)
	t.gg.add(f.gg)
	t.aa.add(f.aa)
	t.ab.add(f.ab)
	t.take(&f, b, b, b)
	return f
}

// below is the number before x ≥ 0 in float32, at least −1.
func below(x float64) float64 {
	if x == 0 {
		return -1
	}
	return float64(math.Nextafter32(float32(x), -1))
}

// take adds the counters of t, which is the next part, and takes its maxima if they are larger.
func (t *part) take(f *tally, absIn, relIn, bad span) {
	if f.abs > t.abs {
		t.abs, t.absIn = f.abs, absIn
	}
	if f.rel > t.rel {
		t.rel, t.relIn = f.rel, relIn
	}
	if t.mismatches == 0 && f.mismatches > 0 {
		t.bad = bad
	}
	t.mismatches += f.mismatches
	t.finite += f.finite
	t.badNonFinite += f.badNonFinite
	for side := range 2 {
		t.nan[side] += f.nan[side]
		t.inf[side] += f.inf[side]
	}
}

// run reads all chunks on all cores, and joins their figures in order.
func (p *pass) run() (*part, error) {
	per := p.perChunk()
	parts := make([]*part, (p.n/p.rowLen+per-1)/per)
	read := func(i int) error {
		s := scratches.Get().(*scratch)
		defer s.release()
		parts[i] = p.chunk(i, s)
		return nil
	}
	if len(parts) == 1 {
		_ = read(0)
		return parts[0], nil
	}
	if err := each.Do(context.Background(), len(parts), read); err != nil {
		return nil, err
	}
	total := &part{tally: tally{abs: -1, rel: -1}}
	for _, t := range parts {
		total.take(&t.tally, t.absIn, t.relIn, t.bad)
		total.dd.add(t.dd.value())
		total.gg.add(t.gg.value())
		total.aa.add(t.aa.value())
		total.ab.add(t.ab.value())
		slices.SortFunc(t.rows.rows, func(x, y rowError) int { return cmp.Compare(x.row, y.row) })
		for _, e := range t.rows.rows {
			total.rows.insert(e)
		}
	}
	return total, nil
}

// scratch has the buffers of one core.
type scratch struct {
	rows, rows2 []rowSums
	values
	floats    [2][]float32
	sides     [2]*tensor.Tensor // what is stored in order of a chunk, or a copy of the chunk
	base      [2]int            // the number of its first element
	copies    [2][]byte
	call      call
	notFinite bool // so was the last block, in this chunk: it is expected of the next
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// release forgets the tensors, whose files may be closed.
func (s *scratch) release() {
	s.sides = [2]*tensor.Tensor{}
	scratches.Put(s)
}

// open prepares the n elements of a chunk, and asks for those that come.
func (s *scratch) open(p *pass, start, n int) {
	s.notFinite = false
	for i, t := range [2]*tensor.Tensor{p.golden, p.actual} {
		s.sides[i], s.base[i] = t, 0
		size := t.DType().Size()
		if data, ok := t.Bytes(); ok {
			from := (start + chunksAhead*chunkLen) * size
			mapfile.ReadAhead(data[min(from, len(data)):min(from+n*size, len(data))])
			continue
		}
		data := grow(&s.copies[i], n*size)
		t.Gather(data, start)
		if c, err := tensor.New(t.DType(), []int{n}, data); err == nil {
			s.sides[i], s.base[i] = c, start
		}
	}
}

// grow returns n elements of a buffer, which it makes when it is first needed.
func grow[T any](buffer *[]T, n int) []T {
	if cap(*buffer) < n {
		*buffer = make([]T, max(n, min(pieceLen, 2*n)))
	}
	*buffer = (*buffer)[:cap(*buffer)]
	return (*buffer)[:n]
}

// equalInts is a kernel for integers of one type: of blocks with the same bytes on both sides only
// the squares are added.
func equalInts(other kernel) kernel {
	return func(p *pass, s *scratch, b span, rows []rowSums, known float64) tally {
		size := p.golden.DType().Size()
		g, _ := s.sides[0].Bytes()
		a, _ := s.sides[1].Bytes()
		from, to := b.start*size, (b.start+b.len())*size
		if !bytes.Equal(g[from-s.base[0]*size:to-s.base[0]*size], a[from-s.base[1]*size:to-s.base[1]*size]) {
			return other(p, s, b, rows, known)
		}
		clear(rows) // without a difference the size of a row does not matter
		f := tally{finite: b.len()}
		v := grow(&s.g, b.len())
		s.sides[0].Float64s(v, b.start-s.base[0])
		for _, x := range v {
			f.gg += float64(x * x)
		}
		f.aa, f.ab = f.gg, f.gg
		return f
	}
}
