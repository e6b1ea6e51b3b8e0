package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// layoutLimit is the size up to which other orders of the elements are tried.
const layoutLimit = 1 << 22

// Layout tries the right elements in another order: shifted, permuted, transposed, read with a stride.
var Layout = Func(func(s *Scene) []Prediction {
	t := s.Target
	if t == nil || t.Actual == nil || !t.Golden.DType().IsFloat() || t.Golden.Len() < 4 || t.Golden.Len() > layoutLimit ||
		t.Golden.Len() != t.Actual.Len() {
		return nil
	}
	l := &layouts{s: s, g: s.Array(t.Golden), a: s.Array(t.Actual)}
	if !finite(l.g.Data) || isAll(l.g.Data, l.g.Data[0]) {
		return nil
	}
	l.tolerance = max(10*t.Floor.RowRelL2, 1e-4) * rootMeanSquare(l.g.Data)
	for i := range l.g.Rows() {
		if i >= len(t.PadRows) || !t.PadRows[i] {
			l.real = append(l.real, i)
		}
	}
	if len(l.real) == 0 {
		return nil
	}
	for _, try := range []func(){l.shifts, l.transposed, l.strided, l.permuted, l.rowsPermuted, l.mixed} {
		if try(); s.Late() {
			break
		}
	}
	return l.out
})

// layouts tries orders on one pair.
type layouts struct {
	s         *Scene
	g, a      *Array
	real      []int // rows that are not padding
	tolerance float64
	out       []Prediction
}

// try predicts element i of the candidate as element from(i) of the golden; a negative one is not known. An order that fails at one of some
// sampled elements is dropped at once.
func (l *layouts) try(id string, rank int, text string, from func(i int) int) {
	n, w := len(l.g.Data), l.g.Width()
	known, moved := 0, 0
	for k := range 64 {
		i := l.real[k*7919%len(l.real)]*w + (k*31+k/3)%w
		f := from(i)
		if f < 0 || f >= n {
			continue
		}
		known++
		if f != i {
			moved++
		}
		if !(math.Abs(l.a.Data[i]-l.g.Data[f]) <= l.tolerance+1e-3*math.Abs(l.g.Data[f])) {
			return
		}
	}
	if known == 0 || moved == 0 {
		return
	}
	p := Prediction{ID: id, Rank: rank, Text: text, Value: NewArray(l.g.Shape...)}
	rows := make([]bool, l.g.Rows())
	all := true
	for r := range rows {
		rows[r] = true
		for c := range w {
			f := from(r*w + c)
			if f < 0 || f >= n {
				rows[r], all = false, false
				break
			}
			p.Value.Data[r*w+c] = l.g.Data[f]
		}
	}
	if !all {
		p.Rows = rows
	}
	l.out = append(l.out, p)
}

// tryZero is try with zeros for what is not known.
func (l *layouts) tryZero(id, text string, from func(i int) int) {
	v := NewArray(l.g.Shape...)
	bad := 0
	for i := range v.Data {
		if f := from(i); f >= 0 && f < len(v.Data) {
			v.Data[i] = l.g.Data[f]
		}
		if d := math.Abs(l.a.Data[i] - v.Data[i]); !(d <= l.tolerance+1e-3*math.Abs(v.Data[i])) {
			if bad++; bad > len(v.Data)/4 {
				return
			}
		}
	}
	l.out = append(l.out, Prediction{ID: "layout/shifted", Text: text, Value: v})
}

// shifts tries rows and columns that are late or early, and the whole buffer read some elements further on.
func (l *layouts) shifts() {
	n, w := len(l.g.Data), l.g.Width()
	shape := l.g.Shape
	length := l.g.Rows() // of one sequence
	if len(shape) >= 3 {
		length = shape[len(shape)-2]
	}
	for by := -4; by <= 4; by++ {
		if by == 0 || length <= 4 {
			continue
		}
		inside := func(i int) int { // the element by rows before, of the same sequence
			r := i / w
			if at := r%length - by; at < 0 || at >= length {
				return -1
			}
			return i - by*w
		}
		id, rank := "layout/shifted", 0
		if positionNames.has(lastPart(l.s.Target.Layer)) {
			id, rank = "embedding/position", -1
		}
		text := fmt.Sprintf("each row holds what belongs %s", places(by, "row"))
		l.try(id, rank, text, inside)
		l.tryZero(id, text+", with zeros at the edge", inside)
		l.try(id, rank, text+", and goes round at the edge", func(i int) int {
			r := i / w
			return (r-r%length+(r%length-by+length)%length)*w + i%w
		})
	}
	for by := 1 - w; by < w && w <= 1<<14; by++ {
		if by == 0 {
			continue
		}
		roll := func(i int) int { return i - i%w + (i%w-by+w)%w }
		if !l.plausible(roll) {
			continue
		}
		id, text := "layout/shifted", fmt.Sprintf("each column holds what belongs %s, and goes round at the edge", places(by, "column"))
		switch heads := l.s.heads(); {
		case isTimeEmbedding(l.s.Target.Layer) && 2*max(by, -by) == w:
			id, text = "modulation/order", "the halves, sine and cosine, are exchanged"
		case 2*max(by, -by) == w:
			id, text = "layout/permuted", "the halves of the columns are exchanged"
		case heads > 1 && w%heads == 0 && by%(w/heads) == 0:
			id, text = "layout/permuted", "the heads stand in another order: "+text
		}
		l.try(id, 0, text, roll)
	}
	for by := -64; by <= 64; by++ {
		if by == 0 || by <= -w || by >= w {
			continue
		}
		text := fmt.Sprintf("each column holds what belongs %s", places(by, "column"))
		l.tryEdge(text, func(i int) int {
			if c := i%w - by; c < 0 || c >= w {
				return -1
			}
			return i - by
		})
		l.try("layout/shifted", 1, fmt.Sprintf("the buffer is read %d elements off", -by), func(i int) int {
			if i-by < 0 || i-by >= n {
				return -1
			}
			return i - by
		})
	}
}

// tryEdge tries zeros, and the nearest column again, where columns came from outside.
func (l *layouts) tryEdge(text string, from func(i int) int) {
	if !l.plausible(from) {
		return
	}
	l.tryZero("layout/shifted", text+", with zeros at the edge", from)
	w := l.g.Width()
	l.try("layout/shifted", 0, text+", with the outermost again at the edge", func(i int) int {
		if f := from(i); f >= 0 {
			return f
		}
		if i%w < w/2 {
			return i - i%w
		}
		return i - i%w + w - 1
	})
}

// isTimeEmbedding reports whether a label is that of the embedding of a diffusion model's time.
func isTimeEmbedding(layer string) bool {
	for part := range strings.SplitSeq(layer, ".") {
		if strings.HasPrefix(part, "t_embed") || strings.HasPrefix(part, "time") {
			return true
		}
	}
	return false
}

// plausible looks at a few elements.
func (l *layouts) plausible(from func(i int) int) bool {
	w, hits, known := l.g.Width(), 0, 0
	for k := range 8 {
		i := l.real[k*31%len(l.real)]*w + w/2 + k%max(w/4, 1)
		if i >= len(l.a.Data) {
			continue
		}
		f := from(i)
		if f < 0 || f >= len(l.g.Data) {
			continue
		}
		known++
		if math.Abs(l.a.Data[i]-l.g.Data[f]) <= l.tolerance+1e-3*math.Abs(l.g.Data[f]) {
			hits++
		}
	}
	return known > 0 && hits == known
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

// transposed tries the tensor read with two neighbouring axes exchanged, with an axis of heads split off or not.
func (l *layouts) transposed() {
	shapes := [][]int{l.g.Shape}
	w := l.g.Width()
	for _, h := range l.s.headCounts(w) {
		s := append(slices.Clone(l.g.Shape[:len(l.g.Shape)-1]), h, w/h)
		shapes = append(shapes, s)
	}
	for _, shape := range shapes {
		for x := range shape {
			for y := x + 1; y < len(shape) && x < len(l.g.Shape)-1; y++ { // within a row it is a permutation
				if shape[x] == 1 || shape[y] == 1 {
					continue
				}
				rank := 0
				if y < len(shape)-1 || len(shape) > len(l.g.Shape) {
					rank = 1
				}
				from := transposition(shape, x, y)
				l.try("layout/transposed", rank, fmt.Sprintf("%v is read with the axes %d and %d exchanged", shape, x, y), from)
			}
		}
	}
}

// transposition gives, for an element of the tensor with axes x and y exchanged and read in row-major order, its number in the tensor.
func transposition(shape []int, x, y int) func(i int) int {
	swapped := slices.Clone(shape)
	swapped[x], swapped[y] = shape[y], shape[x]
	strides := make([]int, len(shape))
	n := 1
	for k := len(shape) - 1; k >= 0; k-- {
		strides[k] = n
		n *= shape[k]
	}
	strides[x], strides[y] = strides[y], strides[x]
	return func(i int) int {
		out := 0
		for k := len(swapped) - 1; k >= 0; k-- {
			out += i % swapped[k] * strides[k]
			i /= swapped[k]
		}
		return out
	}
}

// headCounts lists in how many heads a width may split: what the config says, else the usual ones.
func (s *Scene) headCounts(width int) []int {
	var out []int
	add := func(h int) {
		if h > 1 && width%h == 0 && width/h > 1 && !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	for _, key := range []string{"num_attention_heads", "num_key_value_heads", "n_head", "num_heads"} {
		if h, ok := s.Config.Int(key); ok {
			add(h)
		}
	}
	if len(out) == 0 {
		for _, h := range []int{2, 4, 8, 12, 16, 24, 32} {
			add(h)
		}
	}
	return out
}

// strided tries rows that lie further apart or closer than they are read, and every k-th element.
func (l *layouts) strided() {
	n, w := len(l.g.Data), l.g.Width()
	for _, k := range []int{2, 3, 4, 8, 16} {
		l.try("layout/strided", 0, fmt.Sprintf("every %d-th element of the buffer is read, and again from the beginning at its end", k),
			func(i int) int { return i * k % n })
		l.try("layout/strided", 0, fmt.Sprintf("every %d-th element of the buffer is read", k), func(i int) int { return i * k })
		if w%k == 0 {
			l.try("layout/strided", 0, fmt.Sprintf("every %d-th element of each row is read, and again from its beginning at its end", k),
				func(i int) int { return i - i%w + i%w*k%w })
			l.try("layout/strided", 0, fmt.Sprintf("each row is read %d times, every %d-th element", k, k), func(i int) int {
				c := i % w
				return i - c + c%(w/k)*k
			})
		}
		l.try("layout/strided", 0, fmt.Sprintf("every %d-th row is read", k), func(i int) int { return i/w*k*w%n + i%w })
	}
	for stride := 1; stride <= 2*w; stride++ {
		if stride == w || stride > w+64 && stride < 2*w || stride < w-64 && stride != w/2 {
			continue
		}
		l.try("layout/strided", 0, fmt.Sprintf("rows of %d elements are read %d elements apart", w, stride), func(i int) int { return i/w*stride + i%w })
	}
}

// permuted finds, for each column of the candidate, the one golden column that it holds.
func (l *layouts) permuted() {
	w := l.g.Width()
	if w < 3 || w > 1<<14 || len(l.real) < 2 {
		return
	}
	column := func(a *Array, c int) []float64 {
		out := make([]float64, min(len(l.real), 32))
		for k := range out {
			out[k] = a.Row(l.real[k*len(l.real)/len(out)])[c]
		}
		return out
	}
	golden, actual := make([][]float64, w), make([][]float64, w)
	for c := range w {
		golden[c], actual[c] = column(l.g, c), column(l.a, c)
	}
	from := l.assign(golden, actual)
	if from == nil {
		return
	}
	id, text := "layout/permuted", "the columns are in another order"
	switch name := lastPart(l.s.Target.Layer); { // whole parts of a fused projection
	case fusedNames.has(name) && runs(from) <= 3:
		id = "linear/qkv-order"
	case fusedGateNames.has(name) && runs(from) == 2:
		id = "linear/gate-up"
	}
	if d := blockSize(from); d > 1 {
		text = fmt.Sprintf("blocks of %d columns, as heads are, stand in another order", d)
	}
	text += fmt.Sprintf(": column 0 holds column %d, column 1 column %d", from[0], from[1])
	l.out = append(l.out, l.reordered(id, text, 2, func(i int) int { return i - i%w + from[i%w] }))
}

// runs is of how many runs of neighbouring columns a permutation consists.
func runs(from []int) int {
	n := 1
	for i := 1; i < len(from); i++ {
		if from[i] != from[i-1]+1 {
			n++
		}
	}
	return n
}

// rowsPermuted does the same for rows.
func (l *layouts) rowsPermuted() {
	rows := len(l.real)
	if rows < 3 || rows > 1<<14 || l.g.Width() < 4 {
		return
	}
	sample := func(a *Array, r int) []float64 {
		out := make([]float64, min(l.g.Width(), 32))
		for k := range out {
			out[k] = a.Row(r)[k*l.g.Width()/len(out)]
		}
		return out
	}
	golden, actual := make([][]float64, rows), make([][]float64, rows)
	for i, r := range l.real {
		golden[i], actual[i] = sample(l.g, r), sample(l.a, r)
	}
	from := l.assign(golden, actual)
	if from == nil {
		return
	}
	source := make([]int, l.g.Rows())
	for r := range source {
		source[r] = r
	}
	for i, f := range from {
		source[l.real[i]] = l.real[f]
	}
	w := l.g.Width()
	l.out = append(l.out, l.reordered("layout/permuted", fmt.Sprintf("the rows are in another order: row %d holds row %d", l.real[0], l.real[from[0]]), 2,
		func(i int) int { return source[i/w]*w + i%w }))
}

func (l *layouts) reordered(id, text string, rank int, from func(i int) int) Prediction {
	p := Prediction{ID: id, Text: text, Rank: rank, Value: NewArray(l.g.Shape...)}
	for i := range p.Value.Data {
		p.Value.Data[i] = l.g.Data[from(i)]
	}
	return p
}

// assign gives for each actual line the golden line of the same values; nil if that is no permutation, or none but the identity. A line that two
// golden lines fit equally well keeps its own place if that is one of them.
func (l *layouts) assign(golden, actual [][]float64) []int {
	n := len(golden)
	if n*n > 1<<26 {
		return nil
	}
	first := make([]int, n) // golden lines by their first value
	for i := range first {
		first[i] = i
	}
	slices.SortFunc(first, func(a, b int) int {
		switch x, y := golden[a][0], golden[b][0]; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return a - b
	})
	fits := func(a, g []float64) bool {
		for k, x := range a {
			if !(math.Abs(x-g[k]) <= l.tolerance+1e-3*math.Abs(g[k])) {
				return false
			}
		}
		return true
	}
	from, taken, moved := make([]int, n), make([]bool, n), 0
	for i, a := range actual {
		reach := l.tolerance + 2e-3*math.Abs(a[0])
		at, _ := slices.BinarySearchFunc(first, a[0]-reach, func(g int, v float64) int {
			if golden[g][0] < v {
				return -1
			}
			return 1
		})
		from[i] = -1
		for ; at < n && golden[first[at]][0] <= a[0]+reach; at++ {
			if g := first[at]; !taken[g] && fits(a, golden[g]) && (from[i] < 0 || g == i) {
				from[i] = g
			}
		}
		if from[i] < 0 {
			return nil
		}
		taken[from[i]] = true
		if from[i] != i {
			moved++
		}
	}
	if moved == 0 {
		return nil
	}
	return from
}

// blockSize is the largest number of columns that stay together in a permutation that moves blocks of this size.
func blockSize(from []int) int {
	for d := len(from) / 2; d > 1; d-- {
		if len(from)%d != 0 {
			continue
		}
		whole := true
		for i, f := range from {
			if from[i-i%d]%d != 0 || f != from[i-i%d]+i%d {
				whole = false
				break
			}
		}
		if whole {
			return d
		}
	}
	return 1
}

// mixed finds the same numbers in any other order. In two tensors of like distribution the sorted numbers are near each other too, but not as
// near as rounding: with n elements they differ by more than 0.1/√n.
func (l *layouts) mixed() {
	n, w := len(l.real)*l.g.Width(), l.g.Width()
	if n < perParam || len(l.out) > 0 {
		return
	}
	order := func(a *Array) []int {
		out := make([]int, 0, n)
		for _, r := range l.real {
			for c := range w {
				out = append(out, r*w+c)
			}
		}
		slices.SortFunc(out, func(x, y int) int { return cmp.Compare(a.Data[x], a.Data[y]) })
		return out
	}
	golden, actual := order(l.g), order(l.a)
	p := Prediction{ID: "layout/permuted", Text: "the same numbers stand in another order", Rank: 3, Value: NewArray(l.g.Shape...)}
	copy(p.Value.Data, l.g.Data)
	var d, norm float64
	for i, at := range actual {
		x := l.g.Data[golden[i]]
		p.Value.Data[at] = x
		d += (l.a.Data[at] - x) * (l.a.Data[at] - x)
		norm += x * x
	}
	if math.Sqrt(d/norm) < 0.1/math.Sqrt(float64(n)) {
		l.out = append(l.out, p)
	}
}
