package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/vec"
)

// layouts tries the right elements in another order.
type layouts struct {
	*Scene
	shape     []int
	g, a      []float64 // the whole tensors
	real      []int     // rows that are not padding
	tolerance float64
	out       []prediction
}

// unknown is where an element comes from that is not predicted.
const unknown = -1

// layout is the right elements in another order: shifted, permuted, transposed, read with a stride.
func layout(s *Scene) []prediction {
	t := s.Target
	if t.Golden.Len() < 4 || t.Golden.Len() > layoutMost {
		return nil
	}
	l := &layouts{Scene: s, shape: t.Golden.Shape(), g: s.all(t.Golden), a: s.all(t.Actual)}
	if !vec.All(l.g, vec.IsFinite) || vec.AllSame(l.g) {
		return nil
	}
	l.tolerance = max(floors*t.Floor.RowRelL2, leastTolerance) * vec.RootMeanSquare(l.g)
	l.real = slices.DeleteFunc(vec.Sequence(t.Rows()), t.pads)
	for _, try := range []func(){l.rowShifts, l.transposed, l.strided, l.permuted, l.mixed} {
		if try(); s.late() {
			break
		}
	}
	return l.out
}

// near reports whether the candidate has a value of the golden.
func (l *layouts) near(has, golden float64) bool {
	return math.Abs(has-golden) <= l.tolerance+sameElement*math.Abs(golden)
}

// try predicts element i of the candidate as element from(i) of the golden.
func (l *layouts) try(id string, rank int, text string, from func(i int) int) {
	if l.fits(from) {
		l.predict(id, rank, text, from)
	}
}

// fits reports whether an order does at some sampled elements, and moves one of them.
func (l *layouts) fits(from func(i int) int) bool {
	known, moved := false, false
	for k := range sampled {
		i := l.real[k*7919%len(l.real)]*l.width + (k*31+k/3)%l.width
		at := from(i)
		if at < 0 {
			continue
		}
		if !l.near(l.a[i], l.g[at]) {
			return false
		}
		known, moved = true, moved || at != i
	}
	return known && moved
}

// predict adds an order. Rows of which an element is not known are left out.
func (l *layouts) predict(id string, rank int, text string, from func(i int) int) {
	p := prediction{id: id, rank: rank, text: text, value: make([]float64, len(l.golden)), known: slices.Repeat([]bool{true}, len(l.rows))}
	for i := range p.value {
		if at := from(l.rows[i/l.width]*l.width + i%l.width); at >= 0 {
			p.value[i] = l.g[at]
		} else {
			p.known[i/l.width] = false
		}
	}
	l.out = append(l.out, p)
}

// shifted reads, of n lines of size elements, the line that stands by lines before; where there is
// none, it goes round or is not known.
func shifted(by, size, n int, round bool) func(i int) int {
	return func(i int) int {
		at := i / size % n
		line := at - by
		if line < 0 || line >= n {
			if !round {
				return unknown
			}
			line = (line + n) % n
		}
		return i + (line-at)*size
	}
}

// rowShifts tries rows that are late or early.
func (l *layouts) rowShifts() {
	n := l.Target.Rows() // of one sequence
	if len(l.shape) >= 3 {
		n = l.shape[len(l.shape)-2]
	}
	id, rank := "layout/shifted", 0
	if label.PositionTables.Has(l.Target.Layer) {
		id, rank = "embedding/position", -1
	}
	for by := -mostRows; by <= mostRows && n > mostRows; by++ {
		if by != 0 {
			text := "each row holds what belongs " + places(by, "row")
			l.try(id, rank, text, shifted(by, l.width, n, false))
			l.try(id, rank, text+", and goes round at the edge", shifted(by, l.width, n, true))
		}
	}
}

func places(by int, noun string) string {
	what := fmt.Sprintf("%d %ss", max(by, -by), noun)
	if by == 1 || by == -1 {
		what = "one " + noun
	}
	if by > 0 {
		return what + " before"
	}
	return what + " further on"
}

// transposed tries the tensor read with two axes exchanged, with an axis of heads split off or not.
func (l *layouts) transposed() {
	own := len(l.shape)
	shapes := [][]int{l.shape}
	for _, h := range l.splits() {
		if l.width%h == 0 && l.width/h > 1 && own > 0 {
			shapes = append(shapes, append(slices.Clone(l.shape[:own-1]), h, l.width/h))
		}
	}
	for _, shape := range shapes {
		for x := range own - 1 { // within a row it is a permutation
			for y := x + 1; y < len(shape); y++ {
				if shape[x] == 1 || shape[y] == 1 {
					continue
				}
				rank := 0
				if y < len(shape)-1 || len(shape) > own {
					rank = 1
				}
				l.try("layout/transposed", rank, fmt.Sprintf("%v is read with the axes %d and %d exchanged", shape, x, y),
					vec.Transposition(shape, x, y))
			}
		}
	}
}

// splits lists in how many heads a width may split: what the config says, else the usual numbers.
func (l *layouts) splits() []int {
	out := slices.DeleteFunc([]int{l.Config.Heads(), l.Config.KVHeads()}, func(h int) bool { return h < 2 || l.width%h != 0 })
	if len(out) == 0 {
		return []int{2, 4, 8, 12, 16, 24, 32}
	}
	return slices.Compact(out)
}

// strided tries every k-th element of the buffer, or of each row.
func (l *layouts) strided() {
	for _, k := range []int{2, 3, 4, 8, 16} {
		for _, of := range []struct {
			what string
			n    int
		}{{"the buffer", len(l.g)}, {"each row", l.width}} {
			if of.n == len(l.g) || of.n%k == 0 {
				l.try("layout/strided", 0, fmt.Sprintf("every %d-th element of %s is read, and again from the beginning at its end", k, of.what),
					func(i int) int { return i - i%of.n + i%of.n*k%of.n })
			}
		}
	}
}

// permuted finds, for each column of the candidate, the one golden column that it holds, and then
// the same for rows.
func (l *layouts) permuted() {
	from := l.round()
	if from == nil {
		from = l.assigned(l.width, len(l.real), func(c, k int) int { return l.real[k]*l.width + c })
	}
	if from != nil {
		id, rank, text := l.nameOf(from)
		l.predict(id, rank, text, func(i int) int { return i - i%l.width + from[i%l.width] })
	}
	if l.width < 4 {
		return
	}
	if from := l.assigned(len(l.real), l.width, func(r, k int) int { return l.real[r]*l.width + k }); from != nil {
		source := vec.Sequence(l.Target.Rows())
		for i, f := range from {
			source[l.real[i]] = l.real[f]
		}
		first := slices.IndexFunc(l.real, func(r int) bool { return source[r] != r })
		text := fmt.Sprintf("the rows are in another order: row %d holds row %d", l.real[first], source[l.real[first]])
		l.predict("layout/permuted", 2, text, func(i int) int { return source[i/l.width]*l.width + i%l.width })
	}
}

// round is the order of columns that go round at the edge, which few numbers tell; nil for others.
func (l *layouts) round() []int {
	for by := 1; by < l.width && l.width <= widest; by++ {
		at := shifted(-by, 1, l.width, true)
		if l.fits(at) {
			order := vec.Sequence(l.width)
			for c := range order {
				order[c] = at(c)
			}
			return order
		}
	}
	return nil
}

// nameOf names an order of columns.
func (l *layouts) nameOf(from []int) (id string, rank int, text string) {
	w, heads, by, d := l.width, l.heads(), from[0], vec.BlockSize(from)
	round := !slices.ContainsFunc(vec.Sequence(w), func(c int) bool { return from[c] != (c+by)%w })
	switch {
	case round && 2*by == w && label.IsTimeEmbedding(l.Target.Layer):
		return "modulation/order", 0, "the halves, sine and cosine, are exchanged"
	// Whole parts of a fused projection.
	case label.FusedQKV.Has(l.Target.Layer) && vec.Runs(from) <= 3:
		return "linear/qkv-order", 0, "the parts of the projection stand in another order"
	case label.FusedGateUp.Has(l.Target.Layer) && vec.Runs(from) == 2:
		return "linear/gate-up", 0, "the two parts of the projection are exchanged"
	case round && (2*by == w || heads > 1 && w%heads == 0 && by%(w/heads) == 0):
		return "layout/permuted", 0, fmt.Sprintf("blocks of %d columns, as halves and heads are, stand in another order", d)
	case round:
		if -by < by-w { // the shorter way
			by -= w
		}
		return "layout/shifted", 0, "each column holds what belongs " + places(-by, "column") + ", and goes round at the edge"
	}
	text = "the columns are in another order"
	if d > 1 {
		text = fmt.Sprintf("blocks of %d columns, as heads are, stand in another order", d)
	}
	return "layout/permuted", 2, text + fmt.Sprintf(": column 0 holds column %d, column 1 column %d", from[0], from[1])
}

// assigned returns for each of n lines of the candidate the golden line of the same values; nil if
// that is no permutation, or none but the identity. A line that several golden lines fit keeps its
// own place if that is one of them. A line has length elements, of which some are looked at.
func (l *layouts) assigned(n, length int, element func(line, k int) int) []int {
	if n < 3 || length < 2 || n > widest || n*n > mostPairs {
		return nil
	}
	lines := func(x []float64) [][]float64 {
		out := make([][]float64, n)
		for i := range out {
			for _, k := range vec.Spread(length, lineElements) {
				out[i] = append(out[i], x[element(i, k)])
			}
		}
		return out
	}
	golden, actual := lines(l.g), lines(l.a)
	first := vec.Sequence(n) // golden lines by their first value
	slices.SortStableFunc(first, func(a, b int) int { return cmp.Compare(golden[a][0], golden[b][0]) })
	from, taken := make([]int, n), make([]bool, n)
	for i, a := range actual {
		reach := l.tolerance + 2*sameElement*math.Abs(a[0])
		at, _ := slices.BinarySearchFunc(first, a[0]-reach,
			func(g int, v float64) int { return cmp.Compare(golden[g][0], v) })
		from[i] = unknown
		for ; at < n && golden[first[at]][0] <= a[0]+reach; at++ {
			if g := first[at]; !taken[g] && slices.EqualFunc(a, golden[g], l.near) && (from[i] < 0 || g == i) {
				from[i] = g
			}
		}
		if from[i] < 0 {
			return nil
		}
		taken[from[i]] = true
	}
	if slices.Equal(from, vec.Sequence(n)) {
		return nil
	}
	return from
}

// mixed finds the same numbers in any other order. In two tensors of like distribution the sorted
// numbers are near each other too, but not as near as rounding: with n elements they differ by more
// than 0.1/√n.
func (l *layouts) mixed() {
	n := len(l.real) * l.width
	if n < PerParam || len(l.out) > 0 {
		return
	}
	sorted := func(x []float64) (order []int, values []float64) {
		order = slices.DeleteFunc(vec.Sequence(len(x)), func(i int) bool { return l.Target.pads(i / l.width) })
		slices.SortFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
		return order, vec.Select(x, len(x), order)
	}
	from, golden := sorted(l.g)
	to, actual := sorted(l.a)
	if vec.Relative(actual, golden) < byChance/math.Sqrt(float64(n)) {
		source := vec.Sequence(len(l.g))
		for i, at := range to {
			source[at] = from[i]
		}
		l.predict("layout/permuted", 3, "the same numbers stand in another order", func(i int) int { return source[i] })
	}
}
