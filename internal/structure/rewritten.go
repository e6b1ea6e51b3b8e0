package structure

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/tensor"
)

// Pair is one tensor of both sides.
type Pair struct{ Golden, Actual *tensor.Tensor }

// Map is a known way from the golden tensors to the candidate's.
type Map struct {
	Kind   MapKind // None if there is no way
	Text   string
	Factor float64 // of a MapFactor
}

// MapKind is what a map does.
type MapKind int

// The kinds of maps.
const (
	MapNone        MapKind = iota
	MapFactor              // one for all elements
	MapInterleaved         // halves of heads
	MapColumns             // a factor of each column
	MapOrder               // columns, rows or the values of each row in another order
	MapNames               // integers that stand for each other
)

// Rewritten returns the known map that makes the golden tensors the candidate's, up to a floor. The
// tensors are one port in all forward passes, and the same map, with the same numbers, has to hold in
// all of them: a factor, a factor of each column, halves of heads that are interleaved, columns in
// another order (with factors, too), or, in each tensor by itself, its rows or the values of each
// row. Of integers it is an order or a renaming.
//
// These are what a port may fold into a product or undo behind it: 1/√d into q, a norm's weight into
// the next matrix, the order of channels, experts, heads or of a top-k. Whether it is undone the map
// does not tell. A NaN or an infinity has none.
func Rewritten(pairs []Pair, floor compare.Limits) Map {
	r := &rewriting{pairs: pairs, floor: floor}
	if !r.read() {
		return Map{}
	}
	type way struct {
		kind MapKind
		find func() string
	}
	ways := []way{{MapFactor, r.factor}, {MapInterleaved, r.interleaved}, {MapColumns, r.columnFactors}, {MapOrder, r.columns},
		{MapOrder, r.scaledColumns}, {MapOrder, r.rows}, {MapOrder, r.withinRows}}
	if r.exact {
		ways = []way{{MapOrder, r.withinRows}, {MapOrder, r.rows}, {MapNames, r.renamed}}
	}
	for _, w := range ways {
		if text := w.find(); text != "" {
			return Map{Kind: w.kind, Text: text, Factor: r.by}
		}
	}
	return Map{}
}

// rewriting has rows of all pairs: all of them where these are few, else some of each.
type rewriting struct {
	pairs []Pair
	floor compare.Limits
	exact bool // integers

	width int
	g, a  [][]float64 // rows
	whole bool        // they are all rows
	of    []int       // the pair of each
	by    float64     // of factor
}

func (r *rewriting) read() bool {
	rows, elements := 0, 0
	for _, p := range r.pairs {
		if p.Golden.RowLen() != r.pairs[0].Golden.RowLen() || !slices.Equal(p.Golden.Shape(), p.Actual.Shape()) {
			return false
		}
		r.exact = r.exact || !p.Golden.DType().IsFloat() || !p.Actual.DType().IsFloat()
		elements += p.Golden.Len()
	}
	if r.width = r.pairs[0].Golden.RowLen(); r.width == 0 || elements == 0 {
		return false
	}
	rows = elements / r.width
	r.whole = elements <= mostRewritten
	every := 1
	if !r.whole {
		every = (rows + rewrittenRows - 1) / rewrittenRows
	}
	n := 0
	for at, p := range r.pairs {
		for row := range p.Golden.Len() / r.width {
			if n++; n%every != 0 {
				continue
			}
			g, a := make([]float64, r.width), make([]float64, r.width)
			p.Golden.Float64s(g, row*r.width)
			p.Actual.Float64s(a, row*r.width)
			for i, x := range g {
				if d := a[i] - x; math.IsNaN(d) || math.IsInf(d, 0) {
					return false
				}
			}
			r.g, r.a, r.of = append(r.g, g), append(r.a, a), append(r.of, at)
		}
	}
	return len(r.g) > 0
}

// fits reports whether predicted rows are the candidate's.
func (r *rewriting) fits(predicted [][]float64) bool {
	shape := []int{len(r.a), r.width}
	p, err := tensor.Of(slices.Concat(predicted...), shape...)
	if err != nil {
		return false
	}
	a, err := tensor.Of(slices.Concat(r.a...), shape...)
	if err != nil {
		return false
	}
	result, err := compare.Tensors(p, a, compare.Tolerance{})
	switch {
	case err != nil:
		return false
	case r.exact:
		return result.Mismatches == 0
	}
	g, err := tensor.Of(slices.Concat(r.g...), shape...)
	if err != nil {
		return false
	}
	without, err := compare.Tensors(g, a, compare.Tolerance{})
	return err == nil && result.Agrees(r.floor) && without.NormDiff >= explains*result.NormDiff
}

// mapped predicts each element of the candidate from the golden one of the same place.
func (r *rewriting) mapped(f func(row, column int, g float64) float64) bool {
	out := make([][]float64, len(r.g))
	for i, g := range r.g {
		out[i] = make([]float64, len(g))
		for k, x := range g {
			out[i][k] = f(i, k, x)
		}
	}
	return r.fits(out)
}

func (r *rewriting) factor() string {
	var ga, gg float64
	for i, g := range r.g {
		for k, x := range g {
			ga += x * r.a[i][k]
			gg += x * x
		}
	}
	by := ga / gg
	if gg == 0 || by == 0 || len(r.g)*r.width < leastMapped || !r.mapped(func(_, _ int, x float64) float64 { return by * x }) {
		return ""
	}
	r.by = by
	return fmt.Sprintf("every element is multiplied by %.6g", by)
}

func (r *rewriting) interleaved() string {
	shape := []int{len(r.g), r.width}
	g, err := tensor.Of(slices.Concat(r.g...), shape...)
	if err != nil {
		return ""
	}
	a, err := tensor.Of(slices.Concat(r.a...), shape...)
	if err != nil {
		return ""
	}
	if d := Interleaved(g, a, r.floor); d > 0 {
		return fmt.Sprintf("the halves of each head of %d are interleaved", d)
	}
	return ""
}

// columnFactors takes one number of each column: with fewer than leastRows rows it would explain
// anything.
func (r *rewriting) columnFactors() string {
	by := make([]float64, r.width)
	for k := range by {
		var ga, gg float64
		for i, g := range r.g {
			ga += g[k] * r.a[i][k]
			gg += g[k] * g[k]
		}
		if gg > 0 {
			by[k] = ga / gg
		} else {
			by[k] = 1
		}
	}
	lost := slices.Contains(by, 0) // what is multiplied by zero nothing brings back
	if lost || len(r.g) < leastRows || !r.mapped(func(_, k int, x float64) float64 { return by[k] * x }) {
		return ""
	}
	return fmt.Sprintf("each column is multiplied by a factor of its own, from %.4g to %.4g", slices.Min(by), slices.Max(by))
}

func (r *rewriting) columns() string {
	if len(r.g) < leastRows {
		return ""
	}
	from := r.assigned(transposed(r.g), transposed(r.a))
	if from == nil || !r.mapped(func(i, k int, _ float64) float64 { return r.g[i][from[k]] }) {
		return ""
	}
	return "the columns are in another order" + example(from, "column")
}

// scaledColumns are columns in another order, each with a positive factor of its own, as channels
// before a ReLU may have.
func (r *rewriting) scaledColumns() string {
	if len(r.g) < leastRows {
		return ""
	}
	golden, actual := transposed(r.g), transposed(r.a)
	size := func(lines [][]float64) []float64 {
		out := make([]float64, len(lines))
		for k, line := range lines {
			for _, x := range line {
				out[k] += x * x
			}
			if out[k] = math.Sqrt(out[k]); out[k] == 0 {
				out[k] = 1
			}
			for i := range line {
				line[i] /= out[k]
			}
		}
		return out
	}
	g, a := size(golden), size(actual)
	from := r.assigned(golden, actual)
	if from == nil || !r.mapped(func(i, k int, _ float64) float64 { return r.g[i][from[k]] / g[from[k]] * a[k] }) {
		return ""
	}
	return "the columns are in another order, each with a factor of its own" + example(from, "column")
}

// rows are in an order of their own in each tensor.
func (r *rewriting) rows() string {
	if !r.whole || r.width < leastRows && !r.exact {
		return ""
	}
	out, text := make([][]float64, len(r.g)), ""
	for first := 0; first < len(r.of); {
		end := first
		for end < len(r.of) && r.of[end] == r.of[first] {
			end++
		}
		from := r.assigned(r.g[first:end], r.a[first:end])
		for i := first; i < end; i++ {
			out[i] = r.g[i]
			if from != nil {
				out[i] = r.g[first+from[i-first]]
			}
		}
		if from != nil && text == "" {
			text = "the rows are in another order" + example(from, "row")
		}
		first = end
	}
	if text == "" || !r.fits(out) {
		return ""
	}
	return text
}

// withinRows are the same values of each row in another order, as a top-k may return them.
func (r *rewriting) withinRows() string {
	if r.width < 2 || r.width > longestChoice {
		return ""
	}
	out := make([][]float64, len(r.g))
	for i, g := range r.g {
		out[i] = make([]float64, r.width)
		sorted, at := slices.Sorted(slices.Values(g)), sequence(r.width)
		slices.SortStableFunc(at, func(x, y int) int { return cmp.Compare(r.a[i][x], r.a[i][y]) })
		for k, place := range at {
			out[i][place] = sorted[k]
		}
	}
	if !r.fits(out) {
		return ""
	}
	return "each row holds the same values in another order"
}

// renamed are integers that stand for the same: for each golden one the most frequent of the
// candidate's, but for a few rows, where a tie may have been decided otherwise.
func (r *rewriting) renamed() string {
	seen := map[[2]float64]int{}
	for i, g := range r.g {
		for k, x := range g {
			seen[[2]float64{x, r.a[i][k]}]++
		}
	}
	pairs := slices.SortedFunc(maps.Keys(seen), func(x, y [2]float64) int {
		return cmp.Or(seen[y]-seen[x], slices.Compare(x[:], y[:]))
	})
	to, taken := map[float64]float64{}, map[float64]bool{}
	for _, p := range pairs {
		if _, known := to[p[0]]; !known && !taken[p[1]] {
			to[p[0]], taken[p[1]] = p[1], true
		}
	}
	others := 0
	for i, g := range r.g {
		if slices.ContainsFunc(sequence(r.width), func(k int) bool { return to[g[k]] != r.a[i][k] }) {
			others++
		}
	}
	if len(to) < 2 || len(r.g)*r.width < 2*len(to) || others > max(1, len(r.g)/otherRows) {
		return ""
	}
	return fmt.Sprintf("the %d numbers stand for each other", len(to))
}

// assigned returns for each line of the candidate the golden line of the same values; nil if there
// is no such order, or none but the golden's own. Lines near each other are found by their product
// with one vector of signs.
func (r *rewriting) assigned(golden, actual [][]float64) []int {
	n := len(golden)
	if n < 2 || n > mostLines {
		return nil
	}
	shadow := func(line []float64) (s, norm float64) {
		bits := uint64(0x9e3779b97f4a7c15)
		for _, x := range line {
			bits ^= bits << 13
			bits ^= bits >> 7
			bits ^= bits << 17
			if bits&1 == 0 {
				s -= x
			} else {
				s += x
			}
			norm += x * x
		}
		return s, math.Sqrt(norm)
	}
	type cast struct {
		s    float64
		line int
	}
	var shadows []cast
	var rms float64
	for i, line := range golden {
		s, norm := shadow(line)
		shadows = append(shadows, cast{s, i})
		rms += norm * norm / float64(n)
	}
	rms = math.Sqrt(rms)
	slices.SortFunc(shadows, func(x, y cast) int { return cmp.Compare(x.s, y.s) })
	from, taken := make([]int, n), make([]bool, n)
	for i, line := range actual {
		s, norm := shadow(line)
		reach := widestShadow*r.floor.RowRelL2*max(norm, rms) + 1e-12*math.Abs(s)
		at, _ := slices.BinarySearchFunc(shadows, s-reach, func(c cast, v float64) int { return cmp.Compare(c.s, v) })
		best, nearest := -1, math.Inf(1)
		for ; at < n && shadows[at].s <= s+reach; at++ {
			if g := shadows[at].line; !taken[g] {
				if d := distance(line, golden[g], nearest); d < nearest || d == nearest && g == i {
					best, nearest = g, d
				}
			}
		}
		if best < 0 {
			return nil
		}
		from[i], taken[best] = best, true
	}
	if slices.Equal(from, sequence(n)) {
		return nil
	}
	return from
}

// distance is the squared distance of two lines, or any more than most.
func distance(x, y []float64, most float64) (d float64) {
	for i := range x {
		if d += (x[i] - y[i]) * (x[i] - y[i]); d > most {
			break
		}
	}
	return d
}

func transposed(rows [][]float64) [][]float64 {
	out := make([][]float64, len(rows[0]))
	for k := range out {
		out[k] = make([]float64, len(rows))
		for i := range rows {
			out[k][i] = rows[i][k]
		}
	}
	return out
}

func sequence(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// example is the first line that another one stands for.
func example(from []int, noun string) string {
	for i, f := range from {
		if f != i {
			return fmt.Sprintf(": %s %d holds %s %d", noun, i, noun, f)
		}
	}
	return ""
}
