package compare

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/goparity/goparity/tensor"
)

// pair is one element of both tensors.
type pair struct {
	index  int
	g, a   float64
	d      float64 // |a−g|
	finite bool    // both values are finite
}

// mismatch applies the rule to a pair. The tolerance of integers is zero.
func (p pair) mismatch(tol Tolerance) bool {
	if p.finite {
		return !tol.within(p.d, math.Abs(p.g))
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

// blockLen is the number of elements that are decoded at once where metrics are not made by a kernel: two
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

// rowReader decodes single rows of two tensors of one shape, block by block.
type rowReader struct {
	first, second *tensor.Tensor
	x, y          []float64
}

func newRowReader(first, second *tensor.Tensor) *rowReader {
	n := min(first.RowLen(), blockLen)
	return &rowReader{first, second, make([]float64, n), make([]float64, n)}
}

func (r *rowReader) rows() int { return r.first.Len() / r.first.RowLen() }

// read calls f with the values of both, from column start on.
func (r *rowReader) read(row int, f func(start int, x, y []float64)) {
	n := r.first.RowLen()
	for from := 0; from < n; from += blockLen {
		m := min(blockLen, n-from)
		r.first.Float64s(r.x[:m], row*n+from)
		r.second.Float64s(r.y[:m], row*n+from)
		f(from, r.x[:m], r.y[:m])
	}
}

// unit is what values are multiplied with before they are squared: 1, except for tensors of extreme numbers.
func unit(r Result) float64 {
	norm := max(r.NormGolden, r.NormActual)
	return math.Ldexp(1, inRange(norm*norm))
}

// moments has the sums over the finite pairs of a row, of values times a unit.
type moments struct {
	dd, gg, aa, ab float64
	odd            int // pairs of which the first value alone is finite
}

// moments are those of a row.
func (r *rowReader) moments(row int, unit float64) (m moments) {
	r.read(row, func(_ int, gs, as []float64) {
		for j, g := range gs {
			a := as[j]
			switch {
			case !finite(g):
			case !finite(a):
				m.odd++
			default:
				g, a = float64(g*unit), float64(a*unit)
				d := a - g
				m.dd += float64(d * d)
				m.gg += float64(g * g)
				m.aa += float64(a * a)
				m.ab += float64(a * g)
			}
		}
	})
	return m
}

// worst returns the row with the largest metric, of equal ones the first.
func worst(rows int, metric func(row int) float64) (row int, most float64) {
	row = -1
	for i := range rows {
		if x := metric(i); row < 0 || x > most {
			row, most = i, x
		}
	}
	return row, most
}

// worstCosine returns the row with the largest cosine distance, weighted as Criteria.Cosine says.
func worstCosine(golden, actual *tensor.Tensor, r Result) (row int, distance float64) {
	u := unit(r)
	norm := r.NormGolden * u
	least := leastSquare(r.RowLen, r.Rows, norm*norm)
	rd := newRowReader(golden, actual)
	return worst(r.Rows, func(row int) float64 {
		m := rd.moments(row, u)
		d := cosineDistance(m.dd, m.gg, m.aa, m.ab)
		if n := max(m.gg, m.aa); n < least {
			d *= n / least
		}
		return d
	})
}

// topK counts the rows whose k largest elements are in other places, and returns the first of these
// rows. A constant row has no largest elements: it is another one than a row that has.
func topK(golden, actual *tensor.Tensor, k int) (bad, first int) {
	rd := newRowReader(golden, actual)
	for row := range rd.rows() {
		if rd.otherTop(row, k) {
			if bad++; bad == 1 {
				first = row
			}
		}
	}
	return bad, first
}

func (r *rowReader) otherTop(row, k int) bool {
	var top [2][]ranked
	least := [2]float64{math.Inf(1), math.Inf(1)}
	r.read(row, func(start int, x, y []float64) {
		for side, values := range [2][]float64{x, y} {
			for j, v := range values {
				top[side] = insert(top[side], ranked{v, start + j}, k)
				least[side] = min(least[side], v)
			}
		}
	})
	// All elements above the k-th golden value must be among them; those that equal it may.
	edge := top[0][k-1].value
	above, found := 0, 0
	for i, g := range top[0] {
		if g.value > edge {
			above++
		}
		switch g := number(r.first.At(row*r.first.RowLen() + top[1][i].index)); {
		case g > edge:
			found++
		case g < edge:
			return true
		}
	}
	flat := func(side int) bool { return least[side] == top[side][0].value }
	return found < above || flat(1) && !flat(0)
}

type ranked struct {
	value float64
	index int
}

// number replaces NaN with the smallest value.
func number(x float64) float64 {
	if math.IsNaN(x) {
		return math.Inf(-1)
	}
	return x
}

// insert keeps the k largest elements in order. It is called for elements in the order of their
// indices.
func insert(best []ranked, r ranked, k int) []ranked {
	r.value = number(r.value)
	if len(best) == k && r.value <= best[k-1].value {
		return best
	}
	at, _ := slices.BinarySearchFunc(best, r, func(x, y ranked) int {
		if x.value >= y.value {
			return -1
		}
		return 1
	})
	best = slices.Insert(best, at, r)
	return best[:min(k, len(best))]
}

// worstKL returns the row with the largest Kullback-Leibler divergence of softmax(golden) from
// softmax(actual), in nats. Pairs with a NaN are left out, −Inf has probability 0, and a row with
// +Inf has no softmax: its divergence is +Inf.
func worstKL(golden, actual *tensor.Tensor) (row int, kl float64) {
	rd := newRowReader(golden, actual)
	return worst(rd.rows(), func(row int) float64 { return rowKL(rd, row) })
}

func rowKL(rd *rowReader, row int) float64 {
	each := func(f func(g, a float64)) {
		rd.read(row, func(_ int, gs, as []float64) {
			for j, g := range gs {
				if a := as[j]; !math.IsNaN(g) && !math.IsNaN(a) {
					f(g, a)
				}
			}
		})
	}
	mg, ma := math.Inf(-1), math.Inf(-1)
	each(func(g, a float64) { mg, ma = max(mg, g), max(ma, a) })
	switch {
	case math.IsInf(mg, -1) && math.IsInf(ma, -1):
		return 0
	case math.IsInf(mg, 0) || math.IsInf(ma, 0):
		return math.Inf(1)
	}
	var sg, sa sum
	each(func(g, a float64) {
		sg.add(math.Exp(g - mg))
		sa.add(math.Exp(a - ma))
	})
	lg, la := math.Log(sg.value()), math.Log(sa.value())
	var kl sum
	each(func(g, a float64) {
		if p := math.Exp(g - mg - lg); p > 0 {
			kl.add(p * ((g - mg - lg) - (a - ma - la)))
		}
	})
	return max(kl.value(), 0)
}

// rowFloor returns the least denominator of a row with a length, as a part of the RMS row norm.
func rowFloor(rowLen int) float64 {
	if rowLen < shortRow {
		return shortRowFloor
	}
	return longRowFloor
}

// leastSquare is the square of the least denominator of a row of a golden with a square of the norm.
func leastSquare(rowLen, rows int, square float64) float64 {
	f := rowFloor(rowLen)
	return f * f * square / float64(rows)
}

// worstRow finds the row with the largest min(dd/gg, dd/K), where K is known only after the last
// row. It keeps the rows that can be the worst for some K, which are those that no other row beats
// in both dd/gg and dd. These are few, unless the rows are sorted by their error.
type worstRow struct {
	rows   []rowError
	sorted int      // rows[:sorted] are sorted by drop
	beater rowError // a row that beats many
}

type rowError struct {
	row       int
	ratio, dd float64 // dd/gg, dd
	most      float64 // of a sorted row: the largest ratio of the rows up to it
}

// beats reports that add would drop such a row, because an earlier one is worse in both metrics. It
// is fast, but does not find all such rows.
func (w *worstRow) beats(dd, gg float64) bool {
	// dd ≤ ratio·(1 − 1e-15)·gg means that dd/gg is not above the ratio, however it is rounded.
	return len(w.rows) > 0 && dd <= w.beater.dd && dd <= w.beater.ratio*(1-1e-15)*gg
}

// add takes the next row.
func (w *worstRow) add(row int, dd, gg float64) {
	e := rowError{row: row, dd: dd}
	if dd > 0 {
		e.ratio = dd / gg
	}
	w.insert(e)
}

func (w *worstRow) insert(e rowError) {
	switch {
	case len(w.rows) == 0 || e.dd > w.beater.dd && e.ratio > w.beater.ratio:
		w.beater = e
	case w.beater.dd >= e.dd && w.beater.ratio >= e.ratio:
		return
	}
	at := sort.Search(w.sorted, func(i int) bool { return w.rows[i].dd < e.dd })
	if at > 0 && w.rows[at-1].most >= e.ratio {
		for at--; w.rows[at].ratio < e.ratio; at-- {
		}
		w.beater = w.rows[at]
		return
	}
	w.rows = append(w.rows, e)
	if len(w.rows) >= 2*w.sorted+64 {
		w.drop()
	}
}

// drop sorts the rows by dd, largest first, and removes the beaten rows. Of equal rows the first
// stays. A row that is beaten in one metric and equal in the other also stays if it is the earlier
// one, because the two may tie in the end.
func (w *worstRow) drop() {
	slices.SortFunc(w.rows, func(x, y rowError) int {
		return cmp.Or(cmp.Compare(y.dd, x.dd), cmp.Compare(y.ratio, x.ratio), cmp.Compare(x.row, y.row))
	})
	kept := w.rows[:0]
	best := rowError{ratio: -1}
	for _, e := range w.rows {
		if e.ratio > best.ratio || e.ratio == best.ratio && e.row < best.row || e.dd == best.dd && e.row < best.row {
			if e.ratio >= best.ratio {
				best = e
			}
			e.most = best.ratio
			kept = append(kept, e)
		}
	}
	w.rows, w.sorted = kept, len(kept)
}

// result returns the worst row and the square of its relative L2. k is the square of the least
// denominator.
func (w *worstRow) result(k float64) (worst rowError, square float64) {
	worst, square = rowError{row: -1}, -1
	for _, e := range w.rows {
		s := 0.0
		if e.dd > 0 {
			s = min(e.ratio, e.dd/k)
		}
		if s > square || s == square && e.row < worst.row {
			worst, square = e, s
		}
	}
	return worst, max(square, 0)
}

// ratioL2 returns √(dd/gg). It is 0 for two zeros, and +Inf if only gg is zero.
func ratioL2(dd, gg float64) float64 {
	if dd == 0 {
		return 0
	}
	return math.Sqrt(dd) / math.Sqrt(gg)
}
