package match

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
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
func sampleOf(t *tensor.Tensor, padding layout.Padding) *value {
	if !t.DType().IsFloat() {
		return nil
	}
	if f, _ := padding.Fit(t.Shape(), t.Shape(), layout.Allow{}); f.RowMask != nil {
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
func (s *side) read(padding layout.Padding) {
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
