package report

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/vec"
)

// Mode is which of the candidate's two runs figures are of.
type Mode string

// The modes.
const (
	Standard Mode = "standard" // each layer sees what its own model computed
	Injected Mode = "injected" // each layer gets the golden inputs
)

// In gives the figures of a row in one mode, nil if there are none.
func (l *Layer) In(mode Mode) *Metrics {
	if mode == Injected {
		return l.Injected
	}
	return l.Standard
}

// Component is the part of a model that a layer belongs to, by its name: it groups statistics and colours points.
type Component string

// The components, in the order in which they are listed.
const (
	Attention Component = "attention"
	MLP       Component = "mlp"
	Norm      Component = "norm"
	Embedding Component = "embedding"
	Head      Component = "head"
	Other     Component = "other" // blocks, whole models and what no word tells
)

// Components are all of them.
var Components = []Component{Attention, MLP, Norm, Embedding, Head, Other}

// words tell the component of an element of a name, in the order in which they are tried. Short ones must be words of
// it: "q_proj" has q and proj.
var words = []struct {
	component Component
	pattern   *regexp.Regexp
}{
	{Norm, regexp.MustCompile(`norm|(^|_)ln(_|\d|$)`)},
	{Attention, regexp.MustCompile(`attn|attention|rotary|qkv|rope|query|softmax|(^|_)(key|value|[qkvo]_?proj)(_|$)`)},
	{Embedding, regexp.MustCompile(`embed|(^|_)w[tp]e(_|$)`)},
	{MLP, regexp.MustCompile(`mlp|ffn|feed_?forward|intermediate|expert|activation|gelu|silu|(^|_)(ff|moe|fc|gate|up|down|act)\d*(_|$)`)},
	{Head, regexp.MustCompile(`(^|_)(head|classifier|pooler|score|logits)(_|$)`)},
}

// ComponentOf returns the component of a layer. The element nearest to the end of its name that
// says one decides: "layers.0.self_attn.q_norm" is a norm, "layer.3.attention.output.dense"
// attention.
func ComponentOf(layer string) Component {
	elements := strings.Split(strings.ToLower(label.Name(layer)), ".")
	for i, element := range slices.Backward(elements) {
		for _, w := range words {
			if w.pattern.MatchString(element) {
				return w.component
			}
		}
		if i > 0 && element == "output" && label.IsNumber(elements[i-1]) {
			return MLP // the second half of a BERT block has no other name
		}
	}
	return Other
}

// Point is one output of a model along its depth, or, of an injected run, an input as it had been
// computed before it was replaced.
type Point struct {
	Layer     string
	Component Component
	Rows      []*Layer // of all cases and steps
	Computed  bool     // an input: only its injected figures are shown
	First     *Layer   // the row of the first divergence: one of Rows, or an input just before them
}

// Depth lists the points of a report in the order in which the golden ran them, of rows with figures.
func Depth(r *Report) (points []Point) {
	var mark *Layer
	if r.placed() {
		mark = r.divergent()
	}
	at := map[[2]string]int{} // by layer and port
	waits := false            // the first divergence, for its point or the one after it
	for i := range r.Layers {
		l := &r.Layers[i]
		waits = waits || l == mark
		computed := l.IsInput() && l.Injected != nil
		if !computed && (l.IsInput() || l.Kind == label.RoleComputed.String() || l.figures() == nil) {
			continue
		}
		k := [2]string{l.Layer, l.Port}
		if _, ok := at[k]; !ok {
			at[k] = len(points)
			points = append(points, Point{Layer: l.Layer, Component: ComponentOf(l.Layer), Computed: computed})
		}
		p := &points[at[k]]
		if p.Rows = append(p.Rows, l); waits {
			p.First, waits = mark, false
		}
	}
	return points
}

// Worst returns the row of a point that is furthest off in a mode; nil if it has none.
func (p *Point) Worst(mode Mode) (worst *Layer) {
	for _, l := range p.Rows {
		shown := l.In(mode) != nil && !(p.Computed && mode == Standard)
		if shown && (worst == nil || l.In(mode).error() > worst.In(mode).error()) {
			worst = l
		}
	}
	return worst
}

// error is the mean squared error; +Inf if a NaN or an infinity has no match, or if it is no error.
func (m *Metrics) error() float64 {
	if m.BadNonFinite > 0 || !(m.MSE >= 0) {
		return math.Inf(1)
	}
	return float64(m.MSE)
}

// Error is the mean squared error of the worst row of a point in a mode, +Inf if a NaN or an
// infinity of it has no match; ok is false if the point was not compared in that mode.
func (p *Point) Error(mode Mode) (mse float64, ok bool) {
	l := p.Worst(mode)
	if l == nil {
		return 0, false
	}
	return l.In(mode).error(), true
}

// Statistics are over mean squared errors. Infinite ones are counted, and part of maximum, mean and median.
type Statistics struct {
	Layers                 int     // different ones
	N, Zero, Infinite      int     // outputs
	Min, Max, Mean, Median float64 // 0 for none
}

// StatisticsOf is over the points of one component, or of all if it is empty, in a mode.
func StatisticsOf(points []Point, mode Mode, component Component) (s Statistics) {
	var all []float64
	layers := map[string]bool{}
	for i := range points {
		p := &points[i]
		if x, ok := p.Error(mode); ok && (component == "" || p.Component == component) {
			all, layers[p.Layer] = append(all, x), true
		}
	}
	if s.Layers, s.N = len(layers), len(all); s.N == 0 {
		return s
	}
	s.Mean = floats.Sum(all) / float64(s.N)
	s.Zero = vec.Count(all, func(x float64) bool { return x == 0 })
	s.Infinite = vec.Count(all, func(x float64) bool { return math.IsInf(x, 0) })
	slices.Sort(all)
	s.Min, s.Max, s.Median = all[0], all[s.N-1], (all[(s.N-1)/2]+all[s.N/2])/2
	return s
}
