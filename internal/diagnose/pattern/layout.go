package pattern

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
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

// Layout is the right elements in another order: read from elsewhere or with other strides, or permuted.
func Layout(s *diagnose.Scene) []diagnose.Prediction {
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
	for _, try := range []func(){l.strided, l.permuted, l.mixed} {
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

// predict adds an order, in which element i of the candidate is element from(i) of the golden. Rows that hold what
// stands nowhere in that are left out.
func (l *layouts) predict(id string, rank int, text string, from func(i int) int) {
	p := diagnose.Prediction{ID: id, Rank: rank, Text: text, Value: diagnose.NewArray(l.g.Shape...)}
	known := slices.Repeat([]bool{true}, l.Target.Rows())
	for i := range p.Value.Data {
		if at := from(i); at >= 0 && at < len(l.g.Data) {
			p.Value.Data[i] = l.g.Data[at]
		} else {
			known[i/l.w] = false
		}
	}
	if slices.Contains(known, false) {
		p.Rows = known
	}
	l.out = append(l.out, p)
}

// strided finds the buffer of a sequence, or of all, read from another element on, or with other strides: as far as it goes, round
// its end, or each row round its own. Where three of the candidate's elements stand in the golden tells all others.
func (l *layouts) strided() {
	for _, size := range slices.Compact([]int{length(l.g.Shape) * l.w, len(l.g.Data)}) {
		l.buffer(size)
	}
}

func (l *layouts) buffer(size int) {
	w := l.w
	rows := size / w
	if w < 2 {
		return
	}
	exchanged := func() (id, text string) {
		return "layout/transposed", fmt.Sprintf("[%d %d] is read with rows and columns exchanged", rows, w)
	}
	l.try(exchanged, size, vec.Transposition([]int{rows, w}, 0, 1))
	mid := rows / 2 * w // at an edge what comes from beyond the buffer may stand
	here, beside, above := l.holders(mid, size), l.holders(mid+1, size), []int{-w}
	if rows > 1 {
		above = l.holders(mid-w, size)
	}
	for _, at := range here {
		for _, next := range beside {
			for _, before := range above {
				row, column := at-before, next-at
				if rows == 1 {
					row = w
				}
				if column == 1-w { // the end of a row that goes round its own
					column = 1
				}
				if row != 0 && (row != w || column != 1 || at != mid) {
					l.read(at-rows/2*row, column, row, size)
				}
			}
		}
	}
}

// read tries buffers of a size read from an element on, with the strides of a column and a row.
func (l *layouts) read(at, column, row, size int) {
	w := l.w
	modulo := func(i, n int) int { return (i%n + n) % n }
	straight := func(i int) int { return at + i%w*column + i/w*row }
	says := func() (id, text string) { return l.strides(at, column, row, size) }
	l.try(says, size, straight)
	l.try(says, size, func(i int) int { return modulo(straight(i), size) })
	l.try(says, size, func(i int) int {
		return modulo(at+i/w*row-modulo(at, w), size) + modulo(at+i%w*column, w)
	})
}

// try predicts that element i of each buffer of a size is element from(i) of the golden one, if some elements say so.
func (l *layouts) try(says func() (id, text string), size int, from func(i int) int) {
	inside := func(i int) int {
		if j := from(i % size); j >= 0 && j < size {
			return i/size*size + j
		}
		return -1
	}
	known := 0
	for k := range sampled {
		i := l.real[k*7919%len(l.real)]*l.w + (k*31+k/3)%l.w
		j := inside(i)
		if j >= 0 && !l.near(l.a.Data[i], l.g.Data[j]) {
			return
		}
		if j >= 0 {
			known++
		}
	}
	if 2*known > sampled {
		id, text := says()
		l.predict(id, 0, text, inside)
	}
}

// strides says how a buffer is read.
func (l *layouts) strides(at, column, row, size int) (id, text string) {
	w, heads := l.w, headsOf(l.Scene)
	switch rows := size / w; {
	case column == 1 && row == w && at%w == 0:
		by := -at / w
		if 2*max(by, -by) > rows {
			by += rows
		}
		if id = "layout/shifted"; module.Positions.Has(l.Target.Layer) {
			id = "embedding/position"
		}
		return id, fmt.Sprintf("each row holds what belongs %s", places(by, "row"))
	case column == 1 && row == w && 2*max(at, -at) == w && module.IsTimeEmbedding(l.Target.Layer):
		return "modulation/order", "the halves, sine and cosine, are exchanged"
	case column == 1 && row == w && heads > 1 && w%heads == 0 && at%(w/heads) == 0:
		return "layout/permuted", "the heads stand in another order"
	case column == 1 && row == w && 2*max(at, -at) == w:
		return "layout/permuted", "the halves of the columns are exchanged"
	case column == 1 && row == w:
		return "layout/shifted", fmt.Sprintf("each element is what belongs %s", places(-at, "place"))
	}
	return "layout/strided", fmt.Sprintf("the buffer is read from element %d on, %d elements from column to column and %d from row to row", at, column, row)
}

// holders lists the golden elements of the first buffer of a size that have a value of the candidate, the nearest ones.
func (l *layouts) holders(i, size int) (at []int) {
	for k, x := range l.g.Data[:size] {
		if l.near(l.a.Data[i], x) {
			at = append(at, k)
		}
	}
	slices.SortFunc(at, func(x, y int) int {
		return cmp.Compare(math.Abs(l.g.Data[x]-l.a.Data[i]), math.Abs(l.g.Data[y]-l.a.Data[i]))
	})
	return at[:min(len(at), mostHolders)]
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

// permuted finds, for each column of the candidate, the one golden column that it holds, and then
// the same for rows.
func (l *layouts) permuted() {
	rows, columns := structure.Orders(l.own(l.Target.Golden), l.own(l.Target.Actual), l.Target.Floor)
	if from := columns; from != nil {
		id, text := "layout/permuted", "the columns are in another order"
		switch { // whole parts of a fused projection
		case module.FusedQKV.Has(l.Target.Layer) && vec.Runs(from) <= 3:
			id = "linear/qkv-order"
		case module.FusedGateUp.Has(l.Target.Layer) && vec.Runs(from) == 2:
			id = "linear/gate-up"
		}
		if d := vec.BlockSize(from); d > 1 {
			text = fmt.Sprintf("blocks of %d columns, as heads are, stand in another order", d)
		}
		text += fmt.Sprintf(": column 0 holds column %d, column 1 column %d", from[0], from[1])
		l.predict(id, 2, text, func(i int) int { return i - i%l.w + from[i%l.w] })
	}
	if from := rows; from != nil {
		source := vec.Sequence(l.Target.Rows())
		for i, f := range from {
			source[l.real[i]] = l.real[f]
		}
		text := fmt.Sprintf("the rows are in another order: row %d holds row %d", l.real[0], l.real[from[0]])
		l.predict("layout/permuted", 2, text, func(i int) int { return source[i/l.w]*l.w + i%l.w })
	}
}

// own is a tensor without padding.
func (l *layouts) own(t *tensor.Tensor) *tensor.Tensor {
	return diagnose.SelectRows(t, l.Target.Kept(nil))
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
