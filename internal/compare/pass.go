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
	// chunkLen is the number of elements that one core takes at a time. The partition, and hence
	// all sums, depends only on the shape.
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

// part has the figures of a chunk: of whole rows, or of a piece of a row that is longer than
// chunkLen.
type part struct {
	tally
	dd, gg, aa, ab    sum
	absIn, relIn, bad span // the first blocks with the largest abs and rel, and with a mismatch
	rows              worstRow
	row               rowTotals // of a piece of a row
}

// rowTotals has the sums of a row that is read in pieces.
type rowTotals struct{ dd, gg sum }

func (r *rowTotals) add(dd, gg float64) {
	r.dd.add(dd)
	r.gg.add(gg)
}

// perChunk is the number of rows per chunk, or else of chunks per row.
func (p *pass) perChunk() (rows, pieces int) {
	if p.rowLen > chunkLen {
		return 0, (p.rowLen + chunkLen - 1) / chunkLen
	}
	return chunkLen / p.rowLen, 0
}

func (p *pass) chunks() int {
	rows := p.n / p.rowLen
	per, pieces := p.perChunk()
	if per == 0 {
		return rows * pieces
	}
	return (rows + per - 1) / per
}

// chunk reads chunk i.
func (p *pass) chunk(i int, s *scratch) *part {
	t := &part{tally: tally{abs: -1, rel: -1}}
	per, pieces := p.perChunk()
	if per == 0 {
		row, from := i/pieces, i%pieces*chunkLen
		start, n := row*p.rowLen+from, min(chunkLen, p.rowLen-from)
		s.open(p, start, n)
		p.piece(t, s, start, n)
		return t
	}
	first, end := i*per, min((i+1)*per, p.n/p.rowLen)
	s.open(p, first*p.rowLen, (end-first)*p.rowLen)
	p.readRows(t, s, first, end)
	return t
}

// readAhead asks the system to read n elements from start, or as many as there are, if they are
// not in memory. It does not wait for them.
func readAhead(data []byte, size, start, n int) {
	mapfile.ReadAhead(data[min(start*size, len(data)):min((start+n)*size, len(data))])
}

// readRows reads rows first, first+1, … end−1.
func (p *pass) readRows(t *part, s *scratch, first, end int) {
	if p.rowLen > pieceLen {
		for row := first; row < end; row++ {
			p.piece(t, s, row*p.rowLen, p.rowLen)
			t.rows.add(row, t.row.dd.value(), t.row.gg.value())
			t.row = rowTotals{}
		}
		return
	}
	step := pieceLen / p.rowLen
	for row := first; row < end; row += step {
		b := span{row * p.rowLen, min(step, end-row), p.rowLen}
		p.add(t, s, b)
		for j := range b.rows {
			if r := &s.rows[j]; !t.rows.beats(r.dd, r.gg) {
				t.rows.add(row+j, r.dd, r.gg)
			}
		}
	}
}

// piece reads a piece of a row, block by block.
func (p *pass) piece(t *part, s *scratch, start, n int) {
	for from := 0; from < n; from += pieceLen {
		f := p.add(t, s, span{start + from, 1, min(pieceLen, n-from)})
		t.row.add(f.dd, f.gg)
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

// run reads all chunks on all free cores, and joins their figures in order.
func (p *pass) run() (*part, error) {
	parts := make([]*part, p.chunks())
	read := func(i int) error {
		s := scratches.Get().(*scratch)
		defer s.release()
		parts[i] = p.chunk(i, s)
		return nil
	}
	_, pieces := p.perChunk()
	if pieces == 0 && len(parts) == 1 {
		_ = read(0)
		return parts[0], nil
	}
	if err := each.Do(context.Background(), len(parts), read); err != nil {
		return nil, err
	}
	total := &part{tally: tally{abs: -1, rel: -1}}
	for i, t := range parts {
		total.take(&t.tally, t.absIn, t.relIn, t.bad)
		total.dd.add(t.dd.value())
		total.gg.add(t.gg.value())
		total.aa.add(t.aa.value())
		total.ab.add(t.ab.value())
		if pieces == 0 {
			slices.SortFunc(t.rows.rows, func(x, y rowError) int { return cmp.Compare(x.row, y.row) })
			for _, e := range t.rows.rows {
				total.rows.insert(e)
			}
			continue
		}
		total.row.add(t.row.dd.value(), t.row.gg.value())
		if i%pieces == pieces-1 {
			total.rows.add(i/pieces, total.row.dd.value(), total.row.gg.value())
			total.row = rowTotals{}
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
			readAhead(data, size, start+chunksAhead*chunkLen, chunkLen)
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
