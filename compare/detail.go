package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// Detail says where and how two tensors differ. It is made after a failure, in further passes over the data. Its figures are
// over the finite pairs, like those of [Result].
type Detail struct {
	Equal      int      // pairs with a = g
	Decades    []Decade // the others by |a−g|, from the least to the largest, without gaps
	Quantiles  []Quantile
	ULP        ULP
	BadRows    Places // rows with a mismatch
	BadColumns Places // columns (indices of the last axis) with a mismatch
	Rows       []Line // the five worst rows that differ, worst first
	Columns    []Line // the five worst columns that differ; none if there is one row, or more than 2^20 columns
	// SmallestAtol is the least atol that passes with this rtol, SmallestRtol the least rtol that passes with this atol; +Inf if
	// there is none: a pair that is not finite does not match, integers differ, or g is zero where |a−g| is above atol.
	SmallestAtol, SmallestRtol float64
}

// Decade counts the pairs with 10^Exponent ≤ |a−g| < 10^(Exponent+1).
type Decade struct{ Exponent, Count int }

// Quantile is the least |a−g| that a share P of the finite pairs does not exceed, found by counting: it is rounded down to 17 bits of
// mantissa (8e-6 relative), but for the largest.
type Quantile struct{ P, Value float64 }

// Line is the figures of one row or column.
type Line struct {
	Index        int
	RelL2        float64 // as in [Row], for columns with column norms
	Cosine       float64
	MaxAbs       float64
	MaxAbsIndex  int // row-major element number of MaxAbs, −1 if no pair is finite
	Mismatches   int
	BadNonFinite int // mismatches among the pairs that are not finite; such lines come first
}

const (
	worstLines = 5
	maxColumns = 1 << 20 // more columns get no figures of their own: 100 bytes each
)

// Explain goes over a pair again, with the tolerance by which it failed. Errors as those of [Tensors].
func Explain(golden, actual *tensor.Tensor, tol Tolerance) (d Detail, err error) {
	r, err := Tensors(golden, actual, tol)
	if err != nil {
		return Detail{}, err
	}
	err = guard(func() error {
		d = explain(golden, actual, tol, r)
		return nil
	}, golden, actual)
	return d, err
}

func explain(golden, actual *tensor.Tensor, tol Tolerance, r Result) Detail {
	if r.N == 0 {
		return Detail{ULP: ULP{MaxIndex: -1}}
	}
	var (
		d          Detail
		equal      = exact(golden, actual)
		u          = unit(r)
		decades    [decadeCount]int
		quantiles  = newQuantiles(r.Finite)
		ulp        = newULPs(golden, actual)
		rows       = newLines(r.Rows, r.RowLen, r, u)
		columns    = newLines(r.RowLen, r.Rows, r, u)
		badRows    = newSet(r.Rows)
		badColumns = newSet(r.RowLen)
		row        = newLine(0)
		perColumn  []line
	)
	if r.Rows > 1 && r.RowLen <= maxColumns {
		perColumn = make([]line, r.RowLen)
		for i := range perColumn {
			perColumn[i] = newLine(i)
		}
	}
	walkPairs(golden, actual, func(p pair) {
		bad := p.mismatch(tol, equal)
		if bad {
			badRows.add(p.row)
			badColumns.add(p.column)
		}
		if p.finite {
			if p.d == 0 {
				d.Equal++
			} else {
				decades[decade(p.d)-leastDecade]++
			}
			quantiles.count(p.d)
			ulp.add(p)
			if !equal {
				d.SmallestAtol = max(d.SmallestAtol, neededAtol(p, tol.Rtol))
				d.SmallestRtol = max(d.SmallestRtol, neededRtol(p, tol.Atol))
			}
		}
		if bad && (equal || !p.finite) {
			d.SmallestAtol, d.SmallestRtol = math.Inf(1), math.Inf(1)
		}
		row.add(p, bad, u)
		if perColumn != nil {
			perColumn[p.column].add(p, bad, u)
		}
		if p.column == r.RowLen-1 {
			rows.offer(row)
			row = newLine(p.row + 1)
		}
	})
	for _, c := range perColumn {
		columns.offer(c)
	}
	if quantiles.refine() {
		walkPairs(golden, actual, func(p pair) {
			if p.finite {
				quantiles.countAgain(p.d)
			}
		})
	}
	d.Decades = listDecades(decades[:])
	d.Quantiles = quantiles.result(r.MaxAbs.Value)
	d.ULP = ulp.result()
	d.BadRows, d.BadColumns = badRows.places(), badColumns.places()
	d.Rows, d.Columns = rows.worst, columns.worst
	return d
}

// neededAtol is the least atol by which a finite pair passes with rtol, for the rule as it is rounded.
func neededAtol(p pair, rtol float64) float64 {
	t := float64(rtol * math.Abs(p.g))
	if p.d <= t {
		return 0
	}
	atol := p.d - t
	for atol+t < p.d {
		atol = math.Nextafter(atol, math.Inf(1))
	}
	return atol
}

// neededRtol is the least rtol by which a finite pair passes with atol, +Inf if there is none.
func neededRtol(p pair, atol float64) float64 {
	if p.d <= atol {
		return 0
	}
	ag := math.Abs(p.g)
	if ag == 0 || math.IsInf(p.d, 0) {
		return math.Inf(1)
	}
	rtol := (p.d - atol) / ag
	for atol+float64(rtol*ag) < p.d {
		rtol = math.Nextafter(rtol, math.Inf(1))
	}
	return rtol
}

// decade is ⌊log10 d⌋ for d > 0.
func decade(d float64) int {
	if math.IsInf(d, 0) {
		return 308
	}
	_, e := math.Frexp(d)
	n := int(math.Floor(float64(e-1) * (math.Ln2 / math.Ln10))) // of the power of two below d
	if n < 308 && d >= math.Pow10(n+1) {
		n++
	}
	return n
}

// float64 has differences from 5e-324 to 1.8e308.
const (
	leastDecade = -324
	decadeCount = 308 - leastDecade + 1
)

// listDecades leaves out the empty ones at both ends.
func listDecades(counts []int) []Decade {
	first := slices.IndexFunc(counts, func(n int) bool { return n > 0 })
	if first < 0 {
		return nil
	}
	var d []Decade
	for i := first; i < len(counts); i++ {
		d = append(d, Decade{Exponent: i + leastDecade, Count: counts[i]})
		if counts[i] > 0 {
			first = len(d)
		}
	}
	return d[:first]
}

// line collects a Line.
type line struct {
	Line
	moments
}

func newLine(index int) line { return line{Line: Line{Index: index, MaxAbs: -1, MaxAbsIndex: -1}} }

func (l *line) add(p pair, bad bool, unit int) {
	if bad {
		l.Mismatches++
		if !p.finite {
			l.BadNonFinite++
		}
	}
	if p.finite && p.d > l.MaxAbs {
		l.MaxAbs, l.MaxAbsIndex = p.d, p.index
	}
	l.moments.add(p.g, p.a, unit)
}

// lines keeps the worst ones.
type lines struct {
	least float64 // square of the least denominator
	worst []Line
}

func newLines(count, length int, r Result, unit int) lines {
	f := rowFloor(length)
	norm := math.Ldexp(r.NormGolden, -unit)
	return lines{least: f * f * norm * norm / float64(count)}
}

func (ls *lines) offer(l line) {
	if l.Mismatches == 0 && l.dd == 0 {
		return
	}
	found := ls.figures(l)
	at, _ := slices.BinarySearchFunc(ls.worst, found, func(x, y Line) int {
		return cmp.Or(cmp.Compare(y.BadNonFinite, x.BadNonFinite), cmp.Compare(y.RelL2, x.RelL2), cmp.Compare(x.Index, y.Index))
	})
	if at < worstLines {
		ls.worst = slices.Insert(ls.worst, at, found)
		ls.worst = ls.worst[:min(len(ls.worst), worstLines)]
	}
}

// figures ends the sums of a line.
func (ls *lines) figures(l line) Line {
	l.RelL2 = ratioL2(l.dd, max(l.gg, ls.least), 0)
	l.Cosine = 1 - l.cosineDistance()
	l.MaxAbs = max(l.MaxAbs, 0)
	return l.Line
}
