package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/goparity/goparity/tensor"
)

// Detail says where and how two tensors differ. Like those of [Result], its metrics are over the
// finite pairs.
type Detail struct {
	Mismatches int   // as in [Result]
	Equal      int   // pairs with a = g
	Exponent   int   // of the first decade
	Decades    []int // the other pairs by |a−g|: how many are in [10^Exponent, 10^(Exponent+1)) and in each after it
	ULP        ULPs
	BadRows    Places // rows with a mismatch
	BadColumns Places // columns (indices of the last axis) with a mismatch
	// Rows and Columns are in order. Columns is empty if there is only one row. Each is empty if
	// there are more than 2^20.
	Rows, Columns []Line
	// SmallestAtol is the least atol that passes with this rtol, and SmallestRtol the least rtol
	// that passes with this atol. They are +Inf if there is none: a pair that is not finite does
	// not match, integers differ, or g is zero where |a−g| is above atol.
	SmallestAtol, SmallestRtol float64
}

// Line has the metrics of one row or column.
type Line struct {
	RelL2        float64 // as in [Row]; for a column, with the norms of columns
	BadNonFinite int     // mismatches among the pairs that are not finite
}

// Explain reads a pair again, with the tolerance with which it failed, and says where it differs.
// It takes several times as long as [Tensors]. The errors are those of [Tensors].
func Explain(golden, actual *tensor.Tensor, tol Tolerance) (Detail, error) {
	r, err := Tensors(golden, actual, tol)
	if err != nil {
		return Detail{}, err
	}
	return guard(func() (Detail, error) { return explain(golden, actual, tol, r), nil }, golden, actual)
}

func explain(golden, actual *tensor.Tensor, tol Tolerance, r Result) Detail {
	if r.N == 0 {
		return Detail{ULP: ULPs{MaxIndex: -1}}
	}
	var (
		d          Detail
		equal      = exact(golden, actual)
		decades    = make([]int, len(powers()))
		ulp        = newULPs(actual.DType())
		rows       = newLines(r.Rows)
		columns    lines
		by         = unit(r)
		badRows    = make([]bool, r.Rows)
		badColumns = make([]bool, r.RowLen)
	)
	if r.Rows > 1 {
		columns = newLines(r.RowLen)
	}
	if equal {
		tol.Atol, tol.Rtol = 0, 0
	}
	row, column := 0, 0
	pairs(golden, actual, func(p pair) {
		bad := p.mismatch(tol)
		if bad {
			d.Mismatches++
			badRows[row], badColumns[column] = true, true
		}
		if p.finite {
			if p.d == 0 {
				d.Equal++
			} else {
				decades[decade(p.d)]++
			}
			ulp.add(p)
			if !equal {
				d.need(p, tol)
			}
		}
		if bad && (equal || !p.finite) {
			d.SmallestAtol, d.SmallestRtol = math.Inf(1), math.Inf(1)
		}
		rows.add(row, p, bad, by)
		columns.add(column, p, bad, by)
		if column++; column == r.RowLen {
			row, column = row+1, 0
		}
	})
	d.Exponent, d.Decades = trimmed(decades)
	d.ULP = ulp
	d.BadRows, d.BadColumns = PlacesOf(badRows), PlacesOf(badColumns)
	d.Rows, d.Columns = rows.metrics(r.RowLen, r.NormGolden*by), columns.metrics(r.Rows, r.NormGolden*by)
	return d
}

// need raises SmallestAtol and SmallestRtol to what a finite pair needs to pass the rule as it is
// evaluated, with its roundings.
func (d *Detail) need(p pair, tol Tolerance) {
	ag := math.Abs(p.g)
	if t := float64(tol.Rtol * ag); !(p.d <= d.SmallestAtol+t) {
		atol := p.d - t
		for atol+t < p.d {
			atol = math.Nextafter(atol, math.Inf(1))
		}
		d.SmallestAtol = max(d.SmallestAtol, atol)
	}
	switch {
	case p.d <= tol.Atol+float64(d.SmallestRtol*ag): // false for ∞·0
	case p.d <= tol.Atol:
	case ag == 0 || math.IsInf(p.d, 0):
		d.SmallestRtol = math.Inf(1)
	default:
		rtol := (p.d - tol.Atol) / ag
		for tol.Atol+float64(rtol*ag) < p.d {
			rtol = math.Nextafter(rtol, math.Inf(1))
		}
		d.SmallestRtol = max(d.SmallestRtol, rtol)
	}
}

// powers are those of ten from the least that float64 has on.
var powers = sync.OnceValue(func() (p []float64) {
	for e := leastDecade; e <= 308; e++ {
		p = append(p, math.Pow10(e))
	}
	return p
})

const leastDecade = -324

// decade returns the number of the decade of d > 0, from leastDecade on.
func decade(d float64) int {
	at, is := slices.BinarySearch(powers(), d)
	if is {
		return at
	}
	return at - 1
}

// trimmed leaves out the empty decades at both ends, and returns the exponent of the first that is left.
func trimmed(counts []int) (exponent int, left []int) {
	first, end := 0, len(counts)
	for end > 0 && counts[end-1] == 0 {
		end--
	}
	for first < end && counts[first] == 0 {
		first++
	}
	if end == 0 {
		return 0, counts[:0]
	}
	return first + leastDecade, counts[first:end]
}

// lines sums up rows, or columns: squares of differences and of golden values, times a unit. It is nil if there
// are too many.
type lines []struct {
	rowSums
	bad int
}

func newLines(n int) lines {
	if n > maxLines {
		return nil
	}
	return make(lines, n)
}

func (l lines) add(i int, p pair, bad bool, unit float64) {
	switch {
	case l == nil:
	case p.finite:
		g, d := float64(p.g*unit), float64(p.a*unit)-float64(p.g*unit)
		l[i].dd += float64(d * d)
		l[i].gg += float64(g * g)
	case bad:
		l[i].bad++
	}
}

// metrics are those of lines of a length, of a golden with a norm.
func (l lines) metrics(length int, norm float64) []Line {
	least := leastSquare(length, max(len(l), 1), norm*norm)
	out := make([]Line, len(l))
	for i, s := range l {
		out[i] = Line{ratioL2(s.dd, max(s.gg, least)), s.bad}
	}
	return out
}

// Places is a set of row or column numbers, as a list of runs or as a run that repeats.
type Places struct {
	Count, Total int    // how many numbers of how many
	Spans        []Span // in order; at most 8
	More         int    // how many of Count are after the last span
}

// Span is a run of Width numbers from First. With a Period, the run repeats every Period numbers up
// to Last, which may cut the last repetition short.
type Span struct{ First, Last, Width, Period int }

// maxSpans is how many runs are listed, so that they fit into a line of a report.
const maxSpans = 8

// Text describes the places with a noun: "all 16 rows", "rows 8–15", "every 4th column, 0–60",
// "columns 32–63 of every 64, up to 511".
func (p Places) Text(noun string) string {
	switch {
	case p.Count == 0:
		return "no " + noun
	case p.Count == p.Total && p.Total > 1:
		return fmt.Sprintf("all %d %ss", p.Total, noun)
	}
	if s := p.Spans[0]; s.Period > 0 {
		if s.Width == 1 {
			return fmt.Sprintf("every %s %s, %d–%d", nth(s.Period), noun, s.First, s.Last)
		}
		return fmt.Sprintf("%ss %d–%d of every %d, up to %d", noun, s.First, s.First+s.Width-1, s.Period, s.Last)
	}
	if p.Count > 1 {
		noun += "s"
	}
	list := make([]string, len(p.Spans))
	for i, s := range p.Spans {
		list[i] = fmt.Sprint(s.First)
		if s.Last > s.First {
			list[i] += fmt.Sprintf("–%d", s.Last)
		}
	}
	text := noun + " " + strings.Join(list, ", ")
	if p.More > 0 {
		text += fmt.Sprintf(" and %d more", p.More)
	}
	return text
}

func nth(n int) string {
	suffix := map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	if suffix == "" || n%100/10 == 1 {
		suffix = "th"
	}
	return fmt.Sprint(n, suffix)
}

// PlacesOf finds the runs of the numbers i with in[i]. They are a repetition if there are at least three, of
// equal width at equal distances; the last may be cut short by the end.
func PlacesOf(in []bool) Places {
	p := Places{Total: len(in)}
	last := 0
	for i := 0; i < len(in); {
		if !in[i] {
			i++
			continue
		}
		run := Span{First: i}
		for i < len(in) && in[i] {
			i++
		}
		run.Last, run.Width = i-1, i-run.First
		p.Count += run.Width
		last = run.Last
		if len(p.Spans) < maxSpans {
			p.Spans = append(p.Spans, run)
		} else {
			p.More += run.Width
		}
	}
	if len(p.Spans) > 2 {
		all := p.Spans[0]
		all.Last, all.Period = last, p.Spans[1].First-all.First
		if all.repeats(in) {
			p.Spans, p.More = []Span{all}, 0
		}
	}
	return p
}

// repeats reports whether a set is the run, again and again.
func (r Span) repeats(in []bool) bool {
	for i := r.First; i <= r.Last; i++ {
		if in[i] != ((i-r.First)%r.Period < r.Width) {
			return false
		}
	}
	return r.Last == len(in)-1 || (r.Last-r.First)%r.Period == r.Width-1
}
