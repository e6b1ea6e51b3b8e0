// Package tie tells choices that may come either way from those that are wrong: two experts, or
// tokens, whose scores are nearer to each other than the noise. What follows from the choice is
// another number altogether, which no tolerance is made for.
package tie

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/tensor"
)

// Choice is what a reference chose by scores: a router, an argmax, a top-k.
type Choice struct {
	Scores *tensor.Tensor // [rows, n]; nil where they were not recorded
	Index  *tensor.Tensor // [rows, k] places in a row of scores; nil where that was not recorded
	DType  tensor.DType   // in which the runs were asked to compute
	// Unknown says that the choice is not that of the largest scores: a bias or groups decided, too.
	// Then few rows may choose otherwise.
	Unknown bool
}

// Ties are the rows in which another run chose otherwise, as it may.
type Ties struct {
	Rows    []int   // that chose something else
	Swapped []int   // that chose the same in another order
	Of      int     // rows
	Gap     float64 // how far the golden's scores are apart there, at most
}

// Any reports whether there is one.
func (t *Ties) Any() bool { return len(t.Rows)+len(t.Swapped) > 0 }

// Most is how many ties a candidate may have where the reference in its encoding has n: three times
// as many, and what chance adds.
func Most(n int) float64 { return 3 * (float64(n) + math.Sqrt(float64(n)) + 1) }

// Noise is by how much the difference of two scores of a row may err in an encoding: the noise floor of
// a row times the spread of its scores, but no less than one rounding of each of the two, of which
// largest is the larger one's size.
//
//	max(floor·spread, 2·ε·largest)
func Noise(d tensor.DType, spread, largest float64) float64 {
	return max(compare.Floor(d).RowRelL2*spread, 2*d.Epsilon()*largest)
}

// Free reports whether a choice between two scores may come either way: the reference's gap between them is
// within the noise of their difference, and the candidate's own gap differs from it by no more than that.
// own is NaN where the candidate does not tell it.
func Free(gap, own, noise float64) bool {
	return math.Abs(gap) <= noise && !(math.Abs(own-gap) > noise)
}

// Decides reports whether an index holds the places of the largest scores of each row.
func Decides(scores, index *tensor.Tensor) bool {
	n, k := scores.RowLen(), index.RowLen()
	s, chosen := make([]float64, n), make([]bool, n)
	for row := range scores.Len() / n {
		scores.Float64s(s, row*n)
		clear(chosen)
		least := math.Inf(1)
		for j := range k {
			i := index.At(row*k + j)
			if i < 0 || i >= float64(n) || i != math.Trunc(i) || chosen[int(i)] {
				return false
			}
			chosen[int(i)] = true
			least = min(least, s[int(i)])
		}
		for i, x := range s {
			if !chosen[i] && x > least {
				return false
			}
		}
	}
	return true
}

// Of compares another run's choice: its scores and what it chose, each nil where that was not
// recorded. It is a tie if the golden's own scores are no further apart than twice the largest error
// of the other's, and those are within the noise floor. Where the scores were not recorded, it is
// what the floor lets them err, and where neither was, it may be one. Rows of skip are none.
func (c *Choice) Of(scores, chosen *tensor.Tensor, skip map[int]bool) Ties {
	if c.Scores == nil {
		return c.few(chosen, skip)
	}
	g, n := c.Scores, c.Scores.RowLen()
	out := Ties{Of: g.Len() / n}
	s, e := make([]float64, n), make([]float64, n)
	rms := rootMeanSquare(g)
	floor := compare.Floor(c.DType).RowRelL2
	for row := range out.Of {
		g.Float64s(s, row*n)
		noise := 2 * Noise(c.DType, max(floats.Norm(s, 2)/math.Sqrt(float64(n)), rms), 0)
		actual := slices.Clone(s)
		if scores != nil {
			scores.Float64s(actual, row*n)
			var off, most float64
			for i, x := range actual {
				e[i] = x - s[i]
				off += e[i] * e[i]
				most = max(most, math.Abs(e[i]))
			}
			if !(math.Sqrt(off) <= floor*max(floats.Norm(s, 2), rms*math.Sqrt(float64(n)))) {
				continue // the scores themselves are wrong
			}
			noise = 2*most + 2*c.DType.Epsilon()*floats.Norm(s, math.Inf(1))
		}
		switch gap, other, same := c.gap(row, s, actual, chosen, scores != nil, noise); {
		case !other || gap > noise && !c.Unknown || skip[row]:
		case same:
			out.Swapped = append(out.Swapped, row)
		default:
			out.Rows = append(out.Rows, row)
			out.Gap = max(out.Gap, gap)
		}
	}
	if c.Unknown {
		out.Few()
	}
	return out
}

// few returns the rows that chose otherwise where no scores were recorded.
func (c *Choice) few(chosen *tensor.Tensor, skip map[int]bool) Ties {
	out := Ties{Of: c.Index.Len() / c.Index.RowLen()}
	if chosen == nil {
		return out
	}
	for row := range out.Of {
		if !skip[row] && !slices.Equal(indices(c.Index, row), indices(chosen, row)) {
			out.Rows = append(out.Rows, row)
		}
	}
	out.Few()
	return out
}

// Few drops rows that are too many to be ties where nothing tells by how much they chose otherwise.
func (t *Ties) Few() {
	if len(t.Rows) > max(1, t.Of/unknown) {
		t.Rows = nil
	}
}

// gap returns how far the golden's scores of a row are apart of what the candidate chose and what
// the golden did, whether they chose otherwise, and whether only in another order. chosen is what the
// candidate recorded, and known says that its scores are.
func (c *Choice) gap(row int, s, actual []float64, chosen *tensor.Tensor, known bool, noise float64) (gap float64,
	other, same bool) {
	order := ranked(s)
	if c.Index == nil { // neighbours whose scores the candidate cannot tell apart may be either way
		alike := 2 * c.DType.Epsilon() * floats.Norm(actual, math.Inf(1))
		for i, at := range order[1:] {
			if actual[order[i]]-actual[at] <= alike {
				gap, other = max(gap, s[order[i]]-s[at]), true
			}
		}
		return gap, other, false
	}
	w := c.Index.RowLen()
	var a []int
	g := indices(c.Index, row)
	switch {
	case chosen != nil:
		a = indices(chosen, row)
	case known:
		g, a = order[:w], ranked(actual)[:w]
	default: // it may have
		gap = s[order[w-1]] - s[order[w]]
		return gap, gap <= noise, false
	}
	same = true
	best, least := math.Inf(-1), math.Inf(1) // of what only the golden chose, and only the candidate
	for j, x := range a {
		if x < 0 || x >= len(s) {
			return math.Inf(1), true, false
		}
		gap = max(gap, math.Abs(s[g[j]]-s[x])) // where only the order is another
		if !slices.Contains(g, x) {
			same, least = false, min(least, s[x])
		}
		if !slices.Contains(a, g[j]) {
			best = max(best, s[g[j]])
		}
	}
	if !same {
		gap = math.Abs(best - least)
	}
	return gap, !slices.Equal(g, a), same
}

// indices are the integers of a row.
func indices(t *tensor.Tensor, row int) []int {
	out := make([]int, t.RowLen())
	for j := range out {
		out[j] = int(t.At(row*len(out) + j))
	}
	return out
}

// ranked lists places by their scores, the largest first.
func ranked(s []float64) []int {
	at := make([]int, len(s))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(i, j int) int { return cmp.Compare(s[j], s[i]) })
	return at
}

func rootMeanSquare(t *tensor.Tensor) float64 {
	x := make([]float64, t.Len())
	t.Float64s(x, 0)
	return floats.Norm(x, 2) / math.Sqrt(float64(max(len(x), 1)))
}
