package report

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/vec"
)

// Verification is the document of one mode that a layer verification leaves next to its tensors: the verdict, the
// execution order, statistics of the mean squared errors, in all and by component, and every layer with its metrics
// and shapes.
func (r *Report) Verification(mode Mode) *Document {
	d, points := r.composed(), Depth(r)
	d.Heading = "LAYER VERIFICATION REPORT, " + modes[mode].text
	d.executed(points)
	d.statistics(points, mode)
	d.details(points, mode)
	d.source()
	return &d.Document
}

// Modes is the document that compares the two modes, for each layer that is wrong in one of them.
func (r *Report) Modes() *Document {
	d, points := r.composed(), Depth(r)
	d.statistics(points, Standard, Injected)
	d.wrongInModes(points)
	d.source()
	return &d.Document
}

func (r *Report) composed() *composer {
	d := r.composer(View{})
	d.place()
	d.causes()
	d.judged()
	return d
}

var modes = map[Mode]struct{ name, text string }{
	Standard: {"without injection", "without injection: each layer saw what its own model computed"},
	Injected: {"with injection", "with injection: each layer was given the golden inputs"},
}

func (d *composer) executed(points []Point) {
	s := Section{Heading: "EXECUTION ORDER VERIFICATION"}
	switch o := d.r.Order; {
	case o == nil:
		s.Lines = lines("", "not known: one of the two sides recorded no order")
	case o.Same:
		s.Lines = lines("PASSED", count(StatisticsOf(points, Standard, "").Layers, "layer")+" in identical order")
	default:
		s.Lines = append(lines("DIFFERS", count(o.N, "layer")+" in another place (reported only: independent siblings may swap)"),
			lines("", o.Differences...)...)
	}
	d.add(s, unlimited)
}

// resultIn is the status of a row in a mode: of an injected run what its tolerance says of the metrics, if it tells.
func (l *Layer) resultIn(mode Mode) Status {
	switch {
	case mode == Standard || l.Injected == nil:
		return l.Status
	case l.Tolerance == nil:
		return StatusIgnored
	}
	status, _ := l.judge(l.Injected, &Tolerance{}, l.Tolerance)
	return status
}

func (d *composer) statistics(points []Point, of ...Mode) {
	t := &Table{Head: []string{"", "layers", "tensors", "min", "max", "mean", "median", "zero", "infinite"}, Metrics: 8}
	for _, mode := range of {
		for _, c := range append([]Component{""}, Components...) {
			s, name := StatisticsOf(points, mode, c), cmp.Or(string(c), "all")
			if len(of) > 1 {
				name += ", " + modes[mode].name
			}
			if s.N > 0 {
				t.Rows = append(t.Rows, []string{name, fmt.Sprint(s.Layers), fmt.Sprint(s.N), scientific(s.Min), scientific(s.Max),
					scientific(s.Mean), scientific(s.Median), fmt.Sprint(s.Zero), fmt.Sprint(s.Infinite)})
			}
		}
	}
	d.add(Section{Heading: "MSE STATISTICS", Table: t, Lines: lines("", "zero: equal bit by bit, or equal in value. "+
		"infinite: a NaN or an infinity without its match; counted in max, mean and median")}, unlimited)
}

// scientific writes a metric of a report that people compare with others: "1.234567e-12".
func scientific(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return num(Float(v))
	}
	return fmt.Sprintf("%.6e", v)
}

// details lists each row that has metrics in a mode, with its shapes, and counts them by what came of them.
func (d *composer) details(points []Point, mode Mode) {
	inputs := map[[3]string][]string{} // shapes, by case, step and layer
	of := func(l *Layer) [3]string { return [3]string{l.Case, l.Step, l.Layer} }
	for _, l := range d.r.rows(func(l *Layer) bool { return l.IsInput() && l.Golden != nil }) {
		inputs[of(l)] = append(inputs[of(l)], l.Golden.Shape.String())
	}
	t := &Table{Head: []string{"layer", "MSE", "rel. L2", "worst row", "max |a-g|", "1-cosine", "result", "shape", "inputs", ""}, Metrics: 5}
	results := Summary{Status: map[Status]int{}}
	for _, at := range points {
		for _, l := range at.Rows {
			m := l.In(mode)
			if m == nil || at.Computed && mode == Standard {
				continue
			}
			given, shape, first, result := "", "", "", l.resultIn(mode)
			if !at.Computed {
				given = strings.Join(inputs[of(l)], ", ")
			}
			if l.Golden != nil {
				shape = l.Golden.Shape.String()
			}
			if l == at.First && mode == Standard {
				first = "first divergence"
			}
			results.Status[result]++
			t.Rows = append(t.Rows, []string{at.nameOf(l, d.names), scientific(m.error()), num(m.RelL2), num(m.RowRelL2), num(m.MaxAbs),
				num(m.CosineDistance), string(result), shape, given, joined("; ", first, m.nonFinite())})
		}
	}
	all := slices.Concat(lines("Total Layers", fmt.Sprint(StatisticsOf(points, mode, "").Layers)), lines("tensors", results.counts()))
	for i, lones := range [][]Lone{d.r.Unmatched.Golden, d.r.Unmatched.Actual} {
		if n := len(lones); n > 0 {
			all = append(all, Line{Lead: []string{"only the golden has", "only the candidate has"}[i], Text: count(n, "port")})
		}
	}
	d.add(Section{Heading: "SUMMARY", Lines: all}, unlimited)
	d.add(Section{Heading: "DETAILED LAYER RESULTS (execution order)", Table: t}, unlimited)
}

func (p *Point) nameOf(l *Layer, names naming) string {
	return names.row(l) + map[bool]string{true: " (computed)"}[p.Computed]
}

func (d *composer) wrongInModes(points []Point) {
	s := Section{Heading: "Layers that are wrong in one of the modes (relative L2)", Lines: lines("", "local = ‖a_injected − g‖, inherited = "+
		"‖a_standard − a_injected‖", "A layer that contains others may be wrong on golden inputs because one of these is; the verdict above says which made the error.")}
	t := &Table{Head: []string{"layer", "without", "with injection", "local", "inherited", ""}, Metrics: 4}
	injected := false
	for _, p := range points {
		for _, l := range p.Rows {
			wrong := l.resultIn(Injected).failing() // on golden inputs
			injected = injected || l.Injected != nil
			if l.Standard == nil || !(l.Status.failing() && !p.Computed || l.Injected != nil && wrong) {
				continue
			}
			row := []string{p.nameOf(l, d.names), num(l.Standard.RelL2), noMetric, noMetric, noMetric, "not injected"}
			if l.Injected != nil {
				row[2], row[5] = num(l.Injected.RelL2), map[bool]string{false: "right on golden inputs", true: "wrong on golden inputs too"}[wrong]
			}
			if l.LocalL2 != nil && l.InheritedL2 != nil {
				row[3], row[4] = num(*l.LocalL2), num(*l.InheritedL2)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	switch {
	case !injected:
		s.Lines = lines("", "There was no injected run: it is not known which layers are wrong on golden inputs too.")
	case len(t.Rows) == 0:
		s.Lines = lines("", "none")
	default:
		s.Table = t
	}
	d.add(s, maxModeRows)
}

// Mode is which of the candidate's two runs metrics are of.
type Mode string

const (
	Standard Mode = "standard" // each layer sees what its own model computed
	Injected Mode = "injected" // each layer gets the golden inputs
)

// In gives the metrics of a row in one mode, nil if there are none.
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

var Components = []Component{Attention, MLP, Norm, Embedding, Head, Other}

// words tell the component of an element of a name, the first that matches. Short ones must be words of it.
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

// Point is an output along the depth, or of an injected run an input as it was computed before it was replaced.
type Point struct {
	Layer     string
	Component Component
	Rows      []*Layer // of all cases and steps
	Computed  bool     // an input: only its injected metrics are shown
	First     *Layer   // the row of the first divergence: one of Rows, or an input just before them
}

// Depth lists the points of a report in the order in which the golden ran them, of rows with metrics.
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
		if !computed && (l.IsInput() || l.Kind == label.RoleComputed.String() || l.metrics() == nil) {
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

// Error is the MSE of the worst row of a point in a mode, +Inf for a bad NaN or infinity; not ok: not compared.
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
