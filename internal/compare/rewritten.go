package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/tensor"
)

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
	MapOrder               // columns or rows in another order
)

// Rewritten returns the known map that makes the golden tensor the candidate's, up to a floor: a factor, a
// factor of each column, halves of heads that are interleaved, or columns or rows in another order.
//
// These are what a port may fold into a product or undo after it: 1/√d into q, a norm's weight into
// the next matrix, the order of channels, experts or heads. Whether it is undone the map does not tell.
// A NaN or an infinity has none, and integers have none.
func Rewritten(golden, actual *tensor.Tensor, floor Limits) Map {
	r := &rewriting{floor: floor}
	if !r.read(golden, actual) {
		return Map{}
	}
	for _, w := range []struct {
		kind MapKind
		find func() string
	}{{MapFactor, r.factor}, {MapInterleaved, r.interleaved}, {MapColumns, r.columnFactors}, {MapOrder, r.columns}, {MapOrder, r.rows}} {
		if text := w.find(); text != "" {
			return Map{Kind: w.kind, Text: text, Factor: r.by}
		}
	}
	return Map{}
}

// rewriting has the rows of a pair: all of them where these are few, else the first.
type rewriting struct {
	floor  Limits
	width  int
	g, a   [][]float64    // rows
	actual *tensor.Tensor // of a
	off    float64        // the norm of the difference
	whole  bool           // they are all rows
	by     float64        // of factor
}

func (r *rewriting) read(golden, actual *tensor.Tensor) bool {
	r.width = golden.RowLen()
	if r.width == 0 || golden.Len() == 0 || !slices.Equal(golden.Shape(), actual.Shape()) || !golden.DType().IsFloat() || !actual.DType().IsFloat() {
		return false
	}
	r.whole = golden.Len() <= mostRewritten
	for row := range min(golden.Len()/r.width, max(mostRewritten/r.width, leastRows)) {
		g, a := make([]float64, r.width), make([]float64, r.width)
		golden.Float64s(g, row*r.width)
		actual.Float64s(a, row*r.width)
		r.g, r.a = append(r.g, g), append(r.a, a)
	}
	all := slices.Concat(r.a...)
	r.off = floats.Distance(slices.Concat(r.g...), all, 2)
	var err error
	r.actual, err = tensor.Of(all, len(r.a), r.width)
	return err == nil && r.off <= math.MaxFloat64 // with a NaN or an infinity it is not
}

// fits reports whether predicted rows are the candidate's.
func (r *rewriting) fits(predicted []float64) bool {
	p, err := tensor.Of(predicted, len(r.a), r.width)
	if err != nil {
		return false
	}
	result, err := Tensors(p, r.actual, Tolerance{})
	return err == nil && result.Agrees(r.floor) && r.off >= explains*result.NormDiff
}

// mapped predicts each element of the candidate. Most maps are far off in the first row.
func (r *rewriting) mapped(f func(row, column int) float64) bool {
	var out []float64
	for i, a := range r.a {
		for k := range a {
			out = append(out, f(i, k))
		}
		row := out[len(out)-r.width:]
		if far := farOff * r.floor.RowRelL2 * max(floats.Norm(a, 2), floats.Norm(row, 2)); floats.Distance(row, a, 2) > far {
			return false
		}
	}
	return r.fits(out)
}

// nearest is the factor of the golden numbers of some columns that comes nearest to the candidate's.
func (r *rewriting) nearest(from, to int) (by float64, zeros bool) {
	var ga, gg float64
	for i, g := range r.g {
		for k, x := range g[from:to] {
			ga += float64(x * r.a[i][from+k])
			gg += float64(x * x)
		}
	}
	return ga / gg, gg == 0
}

func (r *rewriting) factor() string {
	by, zeros := r.nearest(0, r.width)
	if zeros || by == 0 || len(r.g)*r.width < leastMapped || !r.mapped(func(i, k int) float64 { return by * r.g[i][k] }) {
		return ""
	}
	r.by = by
	return fmt.Sprintf("every element is multiplied by %.6g", by)
}

// interleaved finds heads of which the halves are interleaved on one side: 0 1 2 3 4 5 6 7 is 0 4 1 5 2 6 3 7
// there. Rows are cut into heads of an even width of 4 or more.
func (r *rewriting) interleaved() string {
	for d := 4; d <= r.width; d += 2 {
		for _, n := range []int{2, d / 2} {
			from := func(k int) int { return k - k%d + k%d%n*(d/n) + k%d/n }
			if r.width%d == 0 && r.mapped(func(i, k int) float64 { return r.g[i][from(k)] }) {
				return fmt.Sprintf("the halves of each head of %d are interleaved", d)
			}
		}
	}
	return ""
}

// columnFactors takes one number of each column: with fewer than leastRows rows it would explain
// anything.
func (r *rewriting) columnFactors() string {
	by := make([]float64, r.width)
	for k := range by {
		by[k] = 1
		if f, zeros := r.nearest(k, k+1); !zeros {
			by[k] = f
		}
	}
	lost := slices.Contains(by, 0) // what is multiplied by zero nothing brings back
	if lost || len(r.g) < leastRows || !r.mapped(func(i, k int) float64 { return by[k] * r.g[i][k] }) {
		return ""
	}
	return fmt.Sprintf("each column is multiplied by a factor of its own, from %.4g to %.4g", slices.Min(by), slices.Max(by))
}

func (r *rewriting) columns() string {
	if len(r.g) < leastRows {
		return ""
	}
	of := func(from []int, i, k int) float64 { return r.g[i][from[k]] }
	return r.order("column", transposed(r.g), transposed(r.a), of)
}

func (r *rewriting) rows() string {
	if !r.whole || r.width < leastRows {
		return ""
	}
	return r.order("row", r.g, r.a, func(from []int, i, k int) float64 { return r.g[from[i]][k] })
}

// order finds lines in another order; of is the element that comes there from a line.
func (r *rewriting) order(noun string, golden, actual [][]float64, of func(from []int, i, k int) float64) string {
	from, at := r.assigned(golden, actual), 0
	for at < len(from) && from[at] == at {
		at++
	}
	if at == len(from) || !r.mapped(func(i, k int) float64 { return of(from, i, k) }) {
		return ""
	}
	return fmt.Sprintf("the %[1]ss are in another order: %[1]s %[2]d holds %[1]s %[3]d", noun, at, from[at])
}

// assigned returns for each line of the candidate the golden line of the same values; nil if there is no
// such order. Lines near each other are found by their product with one vector of signs.
func (r *rewriting) assigned(golden, actual [][]float64) (from []int) {
	n := len(golden)
	if n > mostLines {
		return nil
	}
	shadow := func(line []float64) (s float64) {
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
		}
		return s
	}
	type cast struct {
		s    float64
		line int
	}
	var shadows []cast
	for i, line := range golden {
		shadows = append(shadows, cast{shadow(line), i})
	}
	rms := floats.Norm(slices.Concat(golden...), 2) / math.Sqrt(float64(n))
	slices.SortFunc(shadows, func(x, y cast) int { return cmp.Compare(x.s, y.s) })
	taken := make([]bool, n)
	for i, line := range actual {
		s := shadow(line)
		reach := float64(widestShadow*r.floor.RowRelL2*max(floats.Norm(line, 2), rms)) + float64(1e-12*math.Abs(s))
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
		from, taken[best] = append(from, best), true
	}
	return from
}

// distance is the squared distance of two lines, or any more than most.
func distance(x, y []float64, most float64) (d float64) {
	for i := range x {
		if d += float64((x[i] - y[i]) * (x[i] - y[i])); d > most {
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
