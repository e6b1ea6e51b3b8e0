package compare

import (
	"math"
	"slices"
	"sync"

	"github.com/goparity/goparity/internal/places"
	"github.com/goparity/goparity/tensor"
)

// Detail says where and how two tensors differ. Like those of [Result], its figures are over the
// finite pairs.
type Detail struct {
	Mismatches int        // as in [Result]
	Equal      int        // pairs with a = g
	Decades    []Decade   // the other pairs by |a−g|, in increasing order, without gaps
	Quantiles  []Quantile // of |a−g|: 50, 90, 99, 99.9 and 100 %
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

// Places is a set of row or column numbers.
type Places struct{ in places.Places }

// Count returns how many numbers are in the set.
func (p Places) Count() int { return p.in.Count }

// Total returns how many rows, or columns, the tensor has.
func (p Places) Total() int { return p.in.Total }

// Text describes the set with a noun: "all 16 rows", "rows 8–15", "every 4th column, 0–60",
// "columns 32–63 of every 64, up to 511".
func (p Places) Text(noun string) string { return p.in.Text(noun) }

// Decade counts the pairs with 10^Exponent ≤ |a−g| < 10^(Exponent+1).
type Decade struct{ Exponent, Count int }

// Quantile is the least |a−g| that a share P of the finite pairs does not exceed. Except for the
// largest, it is rounded down to 17 bits of mantissa (8e-6 relative), because it is found by
// counting.
type Quantile struct{ P, Value float64 }

// Line has the figures of one row or column, over its finite pairs.
type Line struct {
	Index        int
	RelL2        float64 // as in [Row]; for a column, with the norms of columns
	Cosine       float64 // a·g/(‖a‖‖g‖); 1 if both are zero, 0 if one is
	MaxAbs       float64 // largest |a−g|
	MaxAbsIndex  int     // row-major element number of MaxAbs, −1 if no pair is finite
	Mismatches   int
	BadNonFinite int // mismatches among the pairs that are not finite
}

// Explain reads a pair again, with the tolerance with which it failed, and says where it differs.
// It takes several times as long as [Tensors]. The errors are those of [Tensors].
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
		return Detail{ULP: ULPs{MaxIndex: -1}}
	}
	var (
		d          Detail
		equal      = exact(golden, actual)
		decades    [decadeCount]int
		quantiles  = newQuantiles(r.Finite)
		ulp        = newULPs(actual.DType())
		all        = newLines(r)
		badRows    = places.NewSet(r.Rows)
		badColumns = places.NewSet(r.RowLen)
	)
	walkPairs(golden, actual, func(p *pair) {
		bad := p.mismatch(tol, equal)
		if bad {
			d.Mismatches++
			badRows.Add(p.row)
			badColumns.Add(p.column)
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
				d.need(p, tol)
			}
		}
		if bad && (equal || !p.finite) {
			d.SmallestAtol, d.SmallestRtol = math.Inf(1), math.Inf(1)
		}
		all.add(p, bad)
	})
	if quantiles.refine() {
		walkPairs(golden, actual, func(p *pair) {
			if p.finite {
				quantiles.countAgain(p.d)
			}
		})
	}
	d.Decades = listDecades(decades[:])
	d.Quantiles = quantiles.result(r.MaxAbs.Value)
	d.ULP = ulp.result()
	d.BadRows, d.BadColumns = Places{badRows.Places()}, Places{badColumns.Places()}
	d.Rows, d.Columns = all.figures()
	return d
}

// need raises SmallestAtol and SmallestRtol to what a finite pair needs to pass the rule as it is
// evaluated, with its roundings.
func (d *Detail) need(p *pair, tol Tolerance) {
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

// decade returns ⌊log10 d⌋ for d > 0.
func decade(d float64) int {
	if math.IsInf(d, 0) {
		return 308
	}
	b := &binades()[math.Float64bits(d)>>52]
	if b.decade == noDecade { // subnormal
		_, e := math.Frexp(d)
		return decadeFrom(e-1, d)
	}
	if d >= b.next {
		return b.decade + 1
	}
	return b.decade
}

// decadeFrom returns the decade of d, which is between 2^e and 2^(e+1).
func decadeFrom(e int, d float64) int {
	n := int(math.Floor(float64(e) * (math.Ln2 / math.Ln10))) // of 2^e
	if n < 308 && d >= math.Pow10(n+1) {
		n++
	}
	return n
}

// binade is the decade of a power of two, and the number at which the next decade begins.
type binade struct {
	decade int
	next   float64
}

const noDecade = -1000

var binades = sync.OnceValue(func() *[2047]binade {
	var t [2047]binade
	t[0].decade = noDecade
	for i := 1; i < len(t); i++ {
		n := decadeFrom(i-1023, math.Ldexp(1, i-1023))
		t[i] = binade{n, math.Inf(1)}
		if n < 308 {
			t[i].next = math.Pow10(n + 1)
		}
	}
	return &t
})

// Differences of float64 are from 5e-324 to 1.8e308.
const (
	leastDecade = -324
	decadeCount = 308 - leastDecade + 1
)

// listDecades lists the decades without the empty ones at both ends.
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

// shares are the quantiles that are reported.
var shares = []float64{0.5, 0.9, 0.99, 0.999, 1}

const (
	quantileBits = 14
	coarseShift  = 63 - quantileBits // there is no sign
	fineShift    = coarseShift - quantileBits
)

// quantiles finds values by their rank, with two counts. The bits of numbers ≥ 0 order like the
// numbers. The first count is over the exponent and 3 bits of the mantissa, the second over the
// next 14 bits, within the class of a quantile.
type quantiles struct {
	n      int
	coarse []int
	ranks  []int // rank within the class
	class  []int
	slot   []uint8 // by class: where it is in fine, from 1
	fine   [][]int
}

func newQuantiles(n int) *quantiles { return &quantiles{n: n, coarse: make([]int, 1<<quantileBits)} }

func (q *quantiles) count(d float64) { q.coarse[math.Float64bits(d)>>coarseShift]++ }

// refine ends the first count and reports whether a second one is needed.
func (q *quantiles) refine() bool {
	if q.n == 0 {
		return false
	}
	q.slot = make([]uint8, 1<<quantileBits)
	for _, p := range shares {
		class, rank := find(q.coarse, int(math.Ceil(p*float64(q.n))))
		q.class, q.ranks = append(q.class, class), append(q.ranks, rank)
		if q.slot[class] == 0 {
			q.fine = append(q.fine, make([]int, 1<<quantileBits))
			q.slot[class] = uint8(len(q.fine))
		}
	}
	return true
}

func (q *quantiles) countAgain(d float64) {
	b := math.Float64bits(d)
	if at := q.slot[b>>coarseShift]; at > 0 {
		q.fine[at-1][b>>fineShift&(1<<quantileBits-1)]++
	}
}

func (q *quantiles) result(largest float64) []Quantile {
	var out []Quantile
	for i, class := range q.class {
		low, _ := find(q.fine[q.slot[class]-1], q.ranks[i])
		v := math.Float64frombits(uint64(class)<<coarseShift | uint64(low)<<fineShift)
		if shares[i] == 1 {
			v = largest
		}
		out = append(out, Quantile{P: shares[i], Value: v})
	}
	return out
}

// find returns the class of the element with a rank (from 1), and its rank within the class.
func find(counts []int, rank int) (class, within int) {
	for class, n := range counts {
		if rank <= n {
			return class, rank
		}
		rank -= n
	}
	return len(counts) - 1, 0
}
