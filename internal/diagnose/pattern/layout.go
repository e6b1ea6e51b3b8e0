package pattern

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/vec"
)

// layouts tries the right elements in another order.
type layouts struct {
	*diagnose.Scene
	g, a      *diagnose.Array
	w         int   // elements of a row
	real      []int // rows that are not padding
	tolerance float64
	out       []diagnose.Prediction
}

// unknown is where an element comes from that is not predicted.
const unknown = -1

// layout is the right elements in another order: shifted, permuted, transposed, read with a stride.
func layout(s *diagnose.Scene) []diagnose.Prediction {
	if !s.HasNumbers() || s.Target.Golden.Len() < 4 || s.Target.Golden.Len() > layoutMost {
		return nil
	}
	l := &layouts{Scene: s, g: s.Array(s.Target.Golden), a: s.Array(s.Target.Actual), w: s.Target.Width()}
	same := func(x float64) bool { return x == l.g.Data[0] }
	if !vec.All(l.g.Data, vec.IsFinite) || vec.All(l.g.Data, same) {
		return nil
	}
	l.tolerance = max(floors*s.Target.Floor.RowRelL2, leastTolerance) * vec.RootMeanSquare(l.g.Data)
	for i := range s.Target.Rows() {
		if !s.Target.Pads(i) {
			l.real = append(l.real, i)
		}
	}
	if len(l.real) == 0 {
		return nil
	}
	for _, try := range []func(){l.rowShifts, l.transposed, l.strided, l.permuted, l.mixed} {
		if try(); s.Late() {
			break
		}
	}
	return l.out
}

// near reports whether the candidate has a value of the golden.
func (l *layouts) near(has, golden float64) bool {
	return math.Abs(has-golden) <= l.tolerance+sameElement*math.Abs(golden)
}

// golden is element i of the golden tensor, if there is one.
func (l *layouts) golden(i int) (x float64, known bool) {
	if i < 0 || i >= len(l.g.Data) {
		return 0, false
	}
	return l.g.Data[i], true
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
		i := l.real[k*7919%len(l.real)]*l.w + (k*31+k/3)%l.w
		x, ok := l.golden(from(i))
		if ok && !l.near(l.a.Data[i], x) {
			return false
		}
		known, moved = known || ok, moved || ok && from(i) != i
	}
	return known && moved
}

// predict adds an order. Rows of which an element is not known are left out.
func (l *layouts) predict(id string, rank int, text string, from func(i int) int) {
	p := diagnose.Prediction{ID: id, Rank: rank, Text: text, Value: diagnose.NewArray(l.g.Shape...)}
	known := slices.Repeat([]bool{true}, l.Target.Rows())
	for i := range p.Value.Data {
		x, ok := l.golden(from(i))
		p.Value.Data[i] = x
		known[i/l.w] = known[i/l.w] && ok
	}
	if slices.Contains(known, false) {
		p.Rows = known
	}
	l.out = append(l.out, p)
}

// shifted reads, of n lines of size elements, the line that stands by lines before; where there is
// none, the one that edge returns.
func shifted(by, size, n int, edge func(line int) int) func(i int) int {
	return func(i int) int {
		at := i / size % n
		line := at - by
		if line < 0 || line >= n {
			if line = edge(line); line < 0 {
				return line
			}
		}
		return i + (line-at)*size
	}
}

// rowShifts tries rows that are late or early.
func (l *layouts) rowShifts() {
	n := l.Target.Rows() // of one sequence
	if len(l.g.Shape) >= 3 {
		n = l.g.Shape[len(l.g.Shape)-2]
	}
	id, rank := "layout/shifted", 0
	if module.Positions.Has(l.Target.Layer) {
		id, rank = "embedding/position", -1
	}
	for by := -mostRows; by <= mostRows && n > mostRows; by++ {
		if by == 0 {
			continue
		}
		text := "each row holds what belongs " + places(by, "row")
		l.try(id, rank, text, shifted(by, l.w, n, func(int) int { return unknown }))
		l.try(id, rank, text+", and goes round at the edge",
			shifted(by, l.w, n, func(line int) int { return (line + n) % n }))
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
	own := len(l.g.Shape)
	shapes := [][]int{l.g.Shape}
	for _, h := range l.splits() {
		if l.w%h == 0 && l.w/h > 1 && own > 0 {
			shapes = append(shapes, append(slices.Clone(l.g.Shape[:own-1]), h, l.w/h))
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
	out := []int{l.Config.Heads()}
	if kv := l.Config.KVHeads(); kv != out[0] {
		out = append(out, kv)
	}
	if out = slices.DeleteFunc(out, func(h int) bool { return h < 2 || l.w%h != 0 }); len(out) == 0 {
		return []int{2, 4, 8, 12, 16, 24, 32}
	}
	return out
}

// strided tries every k-th element of the buffer, or of each row.
func (l *layouts) strided() {
	n, w := len(l.g.Data), l.w
	for _, k := range []int{2, 3, 4, 8, 16} {
		l.try("layout/strided", 0, fmt.Sprintf("every %d-th element of the buffer is read, and again from the beginning at its end", k),
			func(i int) int { return i * k % n })
		if w%k == 0 {
			l.try("layout/strided", 0, fmt.Sprintf("every %d-th element of each row is read, and again from its beginning at its end", k),
				func(i int) int { return i - i%w + i%w*k%w })
		}
	}
}

// permuted finds, for each column of the candidate, the one golden column that it holds, and then
// the same for rows.
func (l *layouts) permuted() {
	from := l.round()
	if from == nil {
		from = l.assigned(l.w, len(l.real), func(c, k int) int { return l.real[k]*l.w + c })
	}
	if from != nil {
		id, rank, text := l.nameOf(from)
		l.predict(id, rank, text, func(i int) int { return i - i%l.w + from[i%l.w] })
	}
	if l.w < 4 {
		return
	}
	if from := l.assigned(len(l.real), l.w, func(r, k int) int { return l.real[r]*l.w + k }); from != nil {
		source := vec.Sequence(l.Target.Rows())
		for i, f := range from {
			source[l.real[i]] = l.real[f]
		}
		text := fmt.Sprintf("the rows are in another order: row %d holds row %d", l.real[0], l.real[from[0]])
		l.predict("layout/permuted", 2, text, func(i int) int { return source[i/l.w]*l.w + i%l.w })
	}
}

// round is the order of columns that go round at the edge, which few numbers tell; nil for others.
func (l *layouts) round() []int {
	for by := 1; by < l.w && l.w <= widest; by++ {
		at := func(c int) int { return (c + by) % l.w }
		if l.fits(func(i int) int { return i - i%l.w + at(i%l.w) }) {
			order := vec.Sequence(l.w)
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
	w, heads, by := l.w, headsOf(l.Scene), from[0]
	round := !slices.ContainsFunc(vec.Sequence(w), func(c int) bool { return from[c] != (c+by)%w })
	switch {
	case round && 2*by == w && module.IsTimeEmbedding(l.Target.Layer):
		return "modulation/order", 0, "the halves, sine and cosine, are exchanged"
	// Whole parts of a fused projection.
	case module.FusedQKV.Has(l.Target.Layer) && vec.Runs(from) <= 3:
		return "linear/qkv-order", 0, "the parts of the projection stand in another order"
	case module.FusedGateUp.Has(l.Target.Layer) && vec.Runs(from) == 2:
		return "linear/gate-up", 0, "the two parts of the projection are exchanged"
	case round && 2*by == w:
		return "layout/permuted", 0, "the halves of the columns are exchanged"
	case round && heads > 1 && w%heads == 0 && by%(w/heads) == 0:
		return "layout/permuted", 0, "the heads stand in another order, each behind the one before"
	case round:
		return "layout/shifted", 0, "each column holds what belongs " + places(nearest(by, w), "column") + ", and goes round at the edge"
	}
	text = "the columns are in another order"
	if d := vec.BlockSize(from); d > 1 {
		text = fmt.Sprintf("blocks of %d columns, as heads are, stand in another order", d)
	}
	return "layout/permuted", 2, text + fmt.Sprintf(": column 0 holds column %d, column 1 column %d", from[0], from[1])
}

// nearest is a shift by as many columns to the left of w that go round, or fewer to the right, which are positive.
func nearest(by, w int) int {
	if 2*by > w {
		return w - by
	}
	return -by
}

// assigned returns for each of n lines of the candidate the golden line of the same values; nil if
// that is no permutation, or none but the identity. A line that several golden lines fit keeps its
// own place if that is one of them. A line has length elements, of which some are looked at.
func (l *layouts) assigned(n, length int, element func(line, k int) int) []int {
	if n < 3 || length < 2 || n > widest || n*n > mostPairs {
		return nil
	}
	lines := func(a *diagnose.Array) [][]float64 {
		out := make([][]float64, n)
		for i := range out {
			for k := range min(length, lineElements) {
				out[i] = append(out[i], a.Data[element(i, k*length/min(length, lineElements))])
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
	n := len(l.real) * l.w
	if n < diagnose.PerParam || len(l.out) > 0 {
		return
	}
	order := func(a *diagnose.Array) []int {
		out := make([]int, 0, n)
		for _, r := range l.real {
			for c := range l.w {
				out = append(out, r*l.w+c)
			}
		}
		slices.SortFunc(out, func(x, y int) int { return cmp.Compare(a.Data[x], a.Data[y]) })
		return out
	}
	golden, actual := order(l.g), order(l.a)
	source := vec.Sequence(len(l.g.Data))
	var d, norm float64
	for i, at := range actual {
		source[at] = golden[i]
		x := l.g.Data[golden[i]]
		d += (l.a.Data[at] - x) * (l.a.Data[at] - x)
		norm += x * x
	}
	if math.Sqrt(d/norm) < byChance/math.Sqrt(float64(n)) {
		l.predict("layout/permuted", 3, "the same numbers stand in another order", func(i int) int { return source[i] })
	}
}
