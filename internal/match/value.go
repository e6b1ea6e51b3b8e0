package match

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// value is what a tensor holds, by a sample. Equal tensors of a run are one value.
type value struct {
	n      int       // elements of the tensor, padding rows left out
	sample []float64 // of them
	norm   float64   // of the sample
	key    float64   // a random projection of the sample: values that are near have near ones
	// table says that it may be one of positions, a mask or probabilities, which models share that
	// have nothing else in common.
	table bool

	from  []*node // the layers whose output it is
	other *value  // the other run's value that it equals; nil if there is none
	axes  []int   // the order of axes that lays a candidate's value onto the golden's; nil as it is
}

// signs are the random direction of the projections, the same for all samples.
var signs = func() []float64 {
	r := rand.New(rand.NewPCG(1, 2))
	s := make([]float64, maxSample)
	for i := range s {
		s[i] = float64(2*r.IntN(2) - 1)
	}
	return s
}()

// sampleOf reads a sample, without padding rows. It returns nil for what is not known by its value:
// integers, few elements, a constant. What is not finite counts as zero.
func sampleOf(t *tensor.Tensor, padding padMask) *value {
	if !t.DType().IsFloat() {
		return nil
	}
	if f, _ := padding.Fit(t.Shape(), t.Shape(), allowance{}); f.RowMask != nil {
		if rows, err := t.SelectRows(f.RowMask); err == nil {
			t = rows
		}
	}
	n := t.Len()
	if n < minElements {
		return nil
	}
	v := &value{n: n, sample: make([]float64, min(n, maxSample))}
	if n <= maxSample {
		t.Float64s(v.sample, 0)
	} else {
		runs := maxSample / sampleRun
		for i := range runs {
			t.Float64s(v.sample[i*sampleRun:(i+1)*sampleRun], i*(n-sampleRun)/(runs-1))
		}
	}
	for i, x := range v.sample {
		if math.IsNaN(x - x) {
			v.sample[i], v.table = 0, true
		}
	}
	v.norm = floats.Norm(v.sample, 2)
	if math.IsInf(v.norm, 0) || floats.Min(v.sample) == floats.Max(v.sample) {
		return nil
	}
	v.key = floats.Dot(signs[:len(v.sample)], v.sample) / v.norm
	v.table = v.table || isTable(v.sample[:min(t.RowLen(), len(v.sample))], v.sample)
	return v
}

// isTable reports whether numbers may be a mask, a table of positions or probabilities: few
// different ones, a first row of one number, or shares that add up to one.
func isTable(row, sample []float64) bool {
	distinct := map[float64]bool{}
	for _, x := range sample {
		if distinct[x] = true; len(distinct) > 4 {
			constant := len(row) > 1 && floats.Min(row) == floats.Max(row)
			shares := floats.Min(sample) >= 0 && floats.Max(sample) <= 1 && math.Abs(floats.Sum(row)-1) < 1e-2
			return constant || shares
		}
	}
	return true
}

// same reports whether two tensors of one run are equal.
func (v *value) same(o *value) bool { return v.n == o.n && slices.Equal(v.sample, o.sample) }

// distance is ‖v − o‖ / ‖v‖ of the samples, +Inf if they are of tensors of different sizes.
func (v *value) distance(o *value) float64 {
	if v.n != o.n {
		return math.Inf(1)
	}
	return floats.Distance(v.sample, o.sample, 2) / v.norm
}

// resemblance is the correlation of two values that may be those of one layer on both sides of an
// error; 0 where it may be chance.
func (v *value) resemblance(o *value) float64 {
	if v == nil || o == nil || v.n != o.n || v.table || o.table {
		return 0
	}
	if c := stat.Correlation(v.sample, o.sample, nil); c*math.Sqrt(float64(len(v.sample))) >= alikeSigmas {
		return c
	}
	return 0
}

// free reports whether a layer has no partner.
func (n *node) free() bool { return n.pair == nil && !n.fused }

// read samples what the layers hold.
func (s *side) read(padding padMask) {
	known := map[float64][]*value{} // by norm
	for _, n := range s.inOrder() {
		call := n.at(pass{s.steps[0], 1})
		if call == nil {
			continue
		}
		n.end, n.leaf = len(s.layers), true
		s.layers = append(s.layers, n)
		if n.out = call.main(); n.out != nil {
			if n.value = s.once(known, sampleOf(n.out.tensor, padding)); n.value != nil {
				n.value.from = append(n.value.from, n)
			}
		}
		for _, p := range call.ports[label.RoleInput] {
			if v := s.once(known, sampleOf(p.tensor, padding)); v != nil {
				n.in = append(n.in, v)
			}
		}
	}
	s.nest()
	counts := numbersOf(labels(s.layers))
	for _, n := range s.layers {
		n.blocks = counts.of(n.label)
		n.words = wordsOf(n.label, n.blocks)
	}
}

// once returns the value of the run that is equal to v, or v if it is new.
func (s *side) once(known map[float64][]*value, v *value) *value {
	if v == nil {
		return nil
	}
	if i := slices.IndexFunc(known[v.norm], v.same); i >= 0 {
		return known[v.norm][i]
	}
	known[v.norm] = append(known[v.norm], v)
	s.values = append(s.values, v)
	return v
}

// nest finds the layers inside of which others lie.
func (s *side) nest() {
	for _, n := range s.layers {
		for outer := label.Parent(n.label); outer != ""; outer = label.Parent(outer) {
			if o := s.named[outer]; o != nil {
				o.leaf, s.nested = false, true
			}
		}
	}
}

// inBlock reports whether a layer lies in a numbered block.
func (n *node) inBlock() bool { return len(n.blocks) > 0 }

// key is the label of a layer without the numbers of blocks.
func (n *node) key() string { return withStars(n.label, n.blocks) }

// blockNumbers lists the numbers of the blocks, each once.
func (s *side) blockNumbers() []int {
	inBlocks := keep(s.layers, (*node).inBlock)
	numbers := collect(inBlocks, func(n *node) int { return n.blocks[0].number })
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// sameBlock reports whether two layers are in blocks that belong together.
func (p *search) sameBlock(g, a *node) bool {
	return !g.inBlock() || !a.inBlock() || g.blocks[0].number+p.shift == a.blocks[0].number
}

// index finds values of a run: those of one size, sorted by their keys.
type index map[int][]*value

func newIndex(values []*value) index {
	x := index{}
	for _, v := range values {
		x[v.n] = append(x[v.n], v)
	}
	for _, list := range x {
		slices.SortFunc(list, func(a, b *value) int { return cmp.Compare(a.key, b.key) })
	}
	return x
}

// nearest returns the value at the smallest distance, nil if none is within the tolerance.
func (x index) nearest(v *value, tolerance float64) (best *value) {
	list := x[v.n]
	at, _ := slices.BinarySearchFunc(list, v.key-reach*tolerance,
		func(o *value, key float64) int { return cmp.Compare(o.key, key) })
	for _, o := range list[at:] {
		if o.key > v.key+reach*tolerance {
			break
		}
		if d := v.distance(o); d <= tolerance && (best == nil || d < v.distance(best)) {
			best = o
		}
	}
	return best
}

// equate marks the values that are each other's nearest.
func (p *search) equate() {
	golden, actual := newIndex(p.golden.values), newIndex(p.actual.values)
	for _, g := range p.golden.values {
		if a := actual.nearest(g, p.tolerance); a != nil && golden.nearest(a, p.tolerance) == g {
			g.other, a.other = a, g
		}
	}
}

// pairEqual pairs the layers that hold equal values.
func (p *search) pairEqual(by evidence) {
	var pairs []edge
	for _, v := range p.golden.values {
		if v.other != nil {
			pairs = append(pairs, p.sameValue(free(v.from), free(v.other.from))...)
		}
	}
	p.generalise(pairs, by)
}

// sameValue pairs layers that hold one value: those that go together better than with any other,
// then what is left by the order of execution.
func (p *search) sameValue(golden, actual []*node) []edge {
	var edges []edge
	for _, g := range golden {
		for _, a := range actual {
			edges = append(edges, edge{g, a, p.likeness(g, a)})
		}
	}
	pairs, _ := assign(edges)
	for _, e := range pairs {
		golden, actual = without(golden, e.golden), without(actual, e.actual)
	}
	if len(golden) == len(actual) && !p.golden.byName && !p.actual.byName {
		for i, g := range golden {
			pairs = append(pairs, edge{golden: g, actual: actual[i]})
		}
	}
	return pairs
}

// equateMoved marks the values that are one in two layouts: the axes in another order, as heads
// before tokens, or the last row of each sequence alone, as the end of a generating model may have
// it.
func (p *search) equateMoved() {
	actual := p.actual.few()
	for _, g := range p.golden.few() {
		for _, a := range actual {
			if max(axes(g.out.shape), axes(a.out.shape)) > 2 || isLastRow(g.out.shape, a.out.shape) {
				p.equateLayouts(g, a)
			}
		}
	}
}

// equateLayouts marks the values of two layers if they are one in two layouts.
func (p *search) equateLayouts(g, a *node) {
	if g.value != nil && a.value != nil && !g.accounted() && !a.accounted() && p.isMoved(g, a) {
		g.value.other, a.value.other = a.value, g.value
	}
}

// equateNamed marks the values of layers that are joined by names, and whose shapes do not fit, if they are one in two layouts.
func (p *search) equateNamed() {
	for _, j := range p.joins {
		g, a := j.golden[0].out, j.actual[0].out
		if j.fused() || j.ofPorts() || g == nil || a == nil {
			continue
		}
		if _, fits := p.padding.Fit(g.shape, a.shape, allowance{}); !fits {
			p.equateLayouts(j.golden[0], j.actual[0])
		}
	}
}

// few returns layers whose values the other run may have in another layout, of the first blocks.
func (s *side) few() (out []*node) {
	tried := map[string]int{}
	for _, n := range s.layers {
		if n.free() && n.value != nil && !n.accounted() && tried[n.key()] < maxTries && len(out) < maxOpen {
			tried[n.key()]++
			out = append(out, n)
		}
	}
	return out
}

// isMoved reports whether two layers hold one value in two layouts.
func (p *search) isMoved(g, a *node) bool {
	if isLastRow(g.out.shape, a.out.shape) {
		f, _ := p.padding.Fit(g.out.shape, a.out.shape, allowance{LastRow: true})
		last, err := f.Golden.Apply(g.out.tensor)
		if err != nil {
			return false
		}
		v := sampleOf(last, padMask{})
		return v != nil && v.distance(a.value) <= p.tolerance
	}
	rank := len(a.out.shape)
	if g.value.n != a.value.n || g.value.n > maxWhole || rank > 4 ||
		math.Abs(g.whole()-a.whole()) > 2*p.tolerance*g.whole() {
		return false
	}
	for _, order := range combin.Permutations(rank, rank) {
		turned, err := View{{Kind: Transpose, Order: order}}.Apply(a.out.tensor)
		if slices.IsSorted(order) || err != nil {
			continue
		}
		if v := sampleOf(turned, padMask{}); v != nil && g.value.distance(v) <= p.tolerance {
			a.value.axes = order
			return true
		}
	}
	return false
}

// axes counts the axes that are longer than 1.
func axes(shape []int) int { return len(keep(shape, func(size int) bool { return size > 1 })) }

// whole is the norm of all elements, in whichever order these lie.
func (n *node) whole() float64 {
	if n.norm == 0 {
		buf := make([]float64, n.out.tensor.Len())
		n.out.tensor.Float64s(buf, 0)
		n.norm = floats.Norm(buf, 2)
	}
	return n.norm
}

// byColumns finds fused layers by value: a layer whose columns are the outputs of several layers of
// the other side.
func (p *search) byColumns() {
	for _, whole := range []*side{p.actual, p.golden} {
		parts := keep(whole.other.layers, func(n *node) bool {
			return n.value != nil && n.free() && n.leaf && len(n.out.shape) > 1
		})
		tried := map[string]int{}
		for _, n := range whole.layers {
			if !p.open(n) || n.value == nil || len(n.out.shape) < 2 || tried[n.key()] >= maxTries {
				continue
			}
			tried[n.key()]++
			if found := p.parts(n, parts); len(found) > 1 {
				p.stack(n, found, byValue)
			}
		}
	}
}

// width is the size of the last axis of a layer's output.
func (n *node) width() int { return n.out.shape[len(n.out.shape)-1] }

// parts finds the layers whose outputs, one after the other along the last axis, are a layer's
// output; nil if there are none.
func (p *search) parts(whole *node, parts []*node) (found []*node) {
	for from := 0; from < whole.width(); from += found[len(found)-1].width() {
		columns := map[int]*value{} // from there on, by their number
		i := slices.IndexFunc(parts, func(n *node) bool {
			v, known := columns[n.width()]
			if !known {
				v = p.columns(whole, from, n.width())
				columns[n.width()] = v
			}
			return n.width() < whole.width() && v != nil && v.distance(n.value) <= p.tolerance
		})
		if i < 0 || len(found) == maxParts {
			return nil
		}
		found = append(found, parts[i])
	}
	return found
}

// columns samples some columns of a layer's output; nil if it has not so many.
func (p *search) columns(n *node, from, width int) *value {
	part, err := n.out.tensor.Slice(len(n.out.shape)-1, from, from+width)
	if err != nil {
		return nil
	}
	return sampleOf(part, p.padding)
}

// stack generalises a fused layer and its parts over the blocks.
func (p *search) stack(whole *node, parts []*node, by evidence) {
	f := finding{by: by}
	for i, part := range parts {
		g, a := part, whole
		if whole.side == p.golden {
			g, a = whole, part
		}
		t := patternOf(g, a)
		if i > 0 && t.shift != f.shift {
			return // the blocks are counted in several ways
		}
		f.shift = t.shift
		f.golden, f.actual = append(f.golden, t.golden), append(f.actual, t.actual)
	}
	f.golden, f.actual = slices.Compact(f.golden), slices.Compact(f.actual)
	if min(len(f.golden), len(f.actual)) == 1 {
		p.apply(f)
	}
}

// equal reports whether two layers hold one value, or the columns of one those of the others.
func (p *search) equal(j *joined) bool {
	whole, parts := j.actual[0], j.golden
	if len(parts) == 1 {
		whole, parts = j.golden[0], j.actual
	}
	if !j.fused() {
		return whole.value != nil && parts[0].value != nil && whole.value.other == parts[0].value
	}
	from := 0
	for _, part := range parts {
		v := p.columns(whole, from, part.width())
		if v == nil || part.value == nil || v.distance(part.value) > p.tolerance {
			return false
		}
		from += part.width()
	}
	return from == whole.width()
}

// byWidths finds fused layers after an error, by their place and their widths: a layer of a stretch
// that no single one fits, and the only two or three of the other side that were given the same and
// are as wide together.
func (p *search) byWidths(wholes, parts []*node) {
	for _, w := range wholes {
		single := func(n *node) bool { return p.shapesFit(n, w) || p.shapesFit(w, n) }
		if len(w.out.shape) < 2 || slices.ContainsFunc(parts, single) {
			continue
		}
		var found [][]*node
		for i := 0; i < len(parts) && len(found) == 0; i++ { // the first blocks tell
			group := keep(parts[i:], func(n *node) bool { return givenOne(parts[i], n) })
			for n := 2; n <= min(3, len(group)); n++ {
				if makeUp(w, group[:n]) {
					found = append(found, group[:n])
				}
			}
		}
		if len(found) == 1 {
			p.stack(w, found[0], byPlace)
			return
		}
	}
}

// makeUp reports whether layers that stand side by side are as wide as another one together. Their
// names must not say otherwise.
func makeUp(whole *node, parts []*node) bool {
	sum, last := 0, 0
	for _, n := range parts {
		at := 0
		for i, part := range []string{"q", "k", "v", "gate", "up"} {
			if slices.Contains(n.words, part) {
				at = i + 1
			}
		}
		if len(n.out.shape) < 2 || !n.leaf || n.out.tensor.Len()*whole.width() != whole.out.tensor.Len()*n.width() ||
			n.out.dtype.Kind() != whole.out.dtype.Kind() || at > 0 && at < last {
			return false
		}
		sum, last = sum+n.width(), at
	}
	return sum == whole.width()
}

// givenOne reports whether two layers share an input, as far as inputs were recorded.
func givenOne(n, o *node) bool {
	return len(n.in) == 0 || slices.ContainsFunc(o.in, func(v *value) bool { return slices.Contains(n.in, v) })
}
