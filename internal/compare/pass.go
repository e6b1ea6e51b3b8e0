package compare

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/vec"
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
	// stepLen is the number of elements among which an index is searched at a time.
	stepLen = 256
)

// pass reads a pair of tensors once. They are not empty.
type pass struct {
	rule
	golden, actual *tensor.Tensor
	n, rowLen      int
	whole          bool // a side has integers of 64 bits
	kernel         kernel
	rel            atomic.Uint64 // bits of the largest so far, on all cores
}

// kernel returns the figures of a block, and writes those of its rows to s.rows. rel need only be
// right if it is above the one that is known.
type kernel interface {
	block(p *pass, s *scratch, b span, known float64) tally
}

// span is a number of successive rows of cols elements each, from element start. A single row may
// be a piece of a row.
type span struct{ start, rows, cols int }

func (b span) len() int { return b.rows * b.cols }

func newPass(golden, actual *tensor.Tensor, tol Tolerance) *pass {
	g, a := golden.DType(), actual.DType()
	p := &pass{golden: golden, actual: actual, n: golden.Len(), rowLen: golden.RowLen(), whole: is64(g) || is64(a)}
	p.rule = rule{tol: tol, exact: exact(golden, actual), narrow: narrow(g) && narrow(a)}
	if p.exact {
		p.tol.Atol, p.tol.Rtol = 0, 0
	}
	p.kernel = integers{}
	if !p.whole {
		p.kernel = fastest(p)
	}
	if g == a && !g.IsFloat() {
		p.kernel = equalInts{p.kernel}
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
func (p *pass) chunk(i int) *part {
	s := scratches.Get().(*scratch)
	defer s.release()
	for _, x := range []*tensor.Tensor{p.golden, p.actual} {
		readAhead(x, (i+chunksAhead)*chunkLen, chunkLen)
	}
	s.notFinite = false
	t := &part{tally: tally{abs: -1, rel: -1}}
	per, pieces := p.perChunk()
	if per == 0 {
		row, from := i/pieces, i%pieces*chunkLen
		p.piece(t, s, row*p.rowLen+from, min(chunkLen, p.rowLen-from))
		return t
	}
	p.readRows(t, s, i*per, min((i+1)*per, p.n/p.rowLen))
	return t
}

// readAhead asks the system to read n elements from start, or as many as there are, if they are
// stored in order in a mapped file and are not in memory. It does not wait for them.
func readAhead(t *tensor.Tensor, start, n int) {
	if data, ok := t.Bytes(); ok {
		size := t.DType().Size()
		mapfile.ReadAhead(data[min(start*size, len(data)):min((start+n)*size, len(data))])
	}
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
	f := p.kernel.block(p, s, b, max(t.rel, below(shared)))
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
	parts := make([]*part, p.chunks())
	if len(parts) == 1 {
		return p.chunk(0), nil
	}
	err := vec.Each(context.Background(), len(parts), func(i int) error {
		parts[i] = p.chunk(i)
		return nil
	})
	if err != nil {
		return nil, err
	}
	_, pieces := p.perChunk()
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

// scratch has the buffers for one chunk at a time.
type scratch struct {
	rows, rows2    []rowSums
	floats         [2][]float64
	ints           []int64
	more           []float64
	float32        [2][]float32
	windows        [2]window
	call, widening call
	calls          *pass // the pass whose tolerances are set in call
	// What was true of the last block is expected of the next: it had NaN or infinities, or mismatches.
	notFinite, mismatching bool
}

// release prepares the buffers for other tensors.
func (s *scratch) release() {
	for i := range s.windows {
		s.windows[i].of = nil
	}
	s.calls = nil
	scratches.Put(s)
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// grow returns n elements of a buffer, which it makes when it is first needed.
func grow[T any](buffer *[]T, n int) []T {
	if cap(*buffer) < n {
		*buffer = make([]T, max(n, min(pieceLen, 2*n)))
	}
	*buffer = (*buffer)[:cap(*buffer)]
	return (*buffer)[:n]
}

func (s *scratch) decode(p *pass, b span) (g, a []float64) {
	g, a = grow(&s.floats[0], b.len()), grow(&s.floats[1], b.len())
	p.golden.Float64s(g, b.start)
	p.actual.Float64s(a, b.start)
	return g, a
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

// largestOfRow returns the largest |d| of a row.
func (p *pass) largestOfRow(row int) float64 {
	s := scratches.Get().(*scratch)
	defer s.release()
	t := &part{tally: tally{abs: -1, rel: -1}}
	for from := 0; from < p.rowLen; from += pieceLen {
		p.add(t, s, span{row*p.rowLen + from, 1, min(pieceLen, p.rowLen-from)})
	}
	return max(p.maxAbs(t).Value, 0)
}

// find calls each for the elements of the first part of a block whose figures are such that some holds.
func (p *pass) find(b span, some func(*tally) bool, each func(x pair)) {
	s := scratches.Get().(*scratch)
	defer s.release()
	for from := 0; from < b.len(); from += stepLen {
		step := span{b.start + from, 1, min(stepLen, b.len()-from)}
		if f := p.kernel.block(p, s, step, -1); some(&f) {
			p.elements(s, step, each)
			return
		}
	}
}
