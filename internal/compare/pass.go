package compare

import (
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

// span is a number of successive rows of cols elements each, from element start. A single row may
// be a piece of a row.
type span struct{ start, rows, cols int }

func (b span) len() int { return b.rows * b.cols }

func newPass(golden, actual *tensor.Tensor, tol Tolerance) *pass {
	g, a := golden.DType(), actual.DType()
	p := &pass{golden: golden, actual: actual, n: golden.Len(), rowLen: golden.RowLen(), whole: is64(g) || is64(a)}
	p.rule = rule{tol: tol, narrow: narrow(g) && narrow(a)}
	if exact(golden, actual) {
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

// part has the metrics of a chunk: of whole rows, or of a piece of a row that is longer than
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

// end adds the row, which is complete, to the rows of a part, and begins the next.
func (r *rowTotals) end(rows *worstRow, row int) {
	rows.add(row, r.dd.value(), r.gg.value())
	*r = rowTotals{}
}

// pieces is the number of chunks of a row that is longer than one, 0 for rows of which a chunk has some.
func (p *pass) pieces() int {
	if p.rowLen <= chunkLen {
		return 0
	}
	return (p.rowLen + chunkLen - 1) / chunkLen
}

// chunks is the number of chunks, and bounds are the elements of one: those of whole rows, or of a piece of a row.
func (p *pass) chunks() int {
	if pieces := p.pieces(); pieces > 0 {
		return p.n / p.rowLen * pieces
	}
	each := chunkLen / p.rowLen * p.rowLen
	return (p.n + each - 1) / each
}

func (p *pass) bounds(chunk int) (from, end int) {
	if pieces := p.pieces(); pieces > 0 {
		row := chunk / pieces * p.rowLen
		from = row + chunk%pieces*chunkLen
		return from, min(from+chunkLen, row+p.rowLen)
	}
	each := chunkLen / p.rowLen * p.rowLen
	return chunk * each, min((chunk+1)*each, p.n)
}

// chunk reads chunk i.
func (p *pass) chunk(i int) *part {
	s := scratches.Get().(*scratch)
	defer s.release()
	for _, x := range []*tensor.Tensor{p.golden, p.actual} {
		readAhead(x, (i+chunksAhead)*chunkLen, chunkLen)
	}
	s.notFinite = false
	t := &part{tally: nothing}
	from, end := p.bounds(i)
	p.read(t, s, from, end)
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

// read reads the elements from ≤ i < end block by block: of whole rows, or of a piece of one.
func (p *pass) read(t *part, s *scratch, from, end int) {
	whole := end-from >= p.rowLen
	for at := from; at < end; {
		b := span{at, 1, min(pieceLen, end-at)}
		if p.rowLen <= pieceLen {
			b = span{at, min(pieceLen, end-at) / p.rowLen, p.rowLen}
		} else if whole {
			b.cols = min(b.cols, p.rowLen-at%p.rowLen)
		}
		f := p.add(t, s, b)
		at += b.len()
		if b.cols == p.rowLen {
			for j := range b.rows {
				if r := &s.rows[j]; !t.rows.beats(r.dd, r.gg) {
					t.rows.add(b.start/p.rowLen+j, r.dd, r.gg)
				}
			}
			continue
		}
		if t.row.add(f.dd, f.gg); whole && at%p.rowLen == 0 {
			t.row.end(&t.rows, at/p.rowLen-1)
		}
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

// run reads all chunks on all cores, and joins their metrics in order.
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
	pieces, total := p.pieces(), &part{tally: nothing}
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
		if total.row.add(t.row.dd.value(), t.row.gg.value()); i%pieces == pieces-1 {
			total.row.end(&total.rows, i/pieces)
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

// largestOfRow returns the largest |d| of a row.
func (p *pass) largestOfRow(row int) float64 {
	s := scratches.Get().(*scratch)
	defer s.release()
	t := &part{tally: nothing}
	p.read(t, s, row*p.rowLen, (row+1)*p.rowLen)
	return max(p.maxAbs(t).Value, 0)
}

// find calls each for the elements of the first part of a block whose metrics are such that some holds.
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
