package compare

import (
	"math"
	"slices"
	"sync"

	"github.com/goparity/goparity/tensor"
)

// Detail says where and how two tensors differ. Like those of [Result], its figures are over the
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

// Line has the figures of one row or column.
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
	row, column := 0, 0
	pairs(golden, actual, func(p pair) {
		bad := p.mismatch(tol, equal)
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
	d.Rows, d.Columns = rows.figures(r.RowLen, r.NormGolden*by), columns.figures(r.Rows, r.NormGolden*by)
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

// figures are those of lines of a length, of a golden with a norm.
func (l lines) figures(length int, norm float64) []Line {
	least := leastSquare(length, max(len(l), 1), norm*norm)
	out := make([]Line, len(l))
	for i, s := range l {
		out[i] = Line{ratioL2(s.dd, max(s.gg, least)), s.bad}
	}
	return out
}
