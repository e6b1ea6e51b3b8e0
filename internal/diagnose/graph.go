package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// value is one tensor of the reference, under all the names by which it was recorded: a layer's output is often the next one's input.
type value struct {
	ports  []*Port // in the order in which they existed
	at     int     // the time of the first of them
	golden *tensor.Tensor
	shape  []int
	rows   int
	width  int
	actual *tensor.Tensor // of the candidate; nil if it recorded none
	agrees bool           // actual is right
	op     op             // how the reference made it; nil if it was not found out
	tried  bool
}

// op is how the reference makes a value of earlier ones. It was tried on the golden tensors before it is believed: that is the control of every
// prediction made with it.
type op interface {
	inputs() []*value
	// eval gives rows of the value, nil if it cannot.
	eval(e *evaluation, rows []int) []float64
	// faults are the mistakes that are made with this op.
	faults(g *graph, v *value) []fault
}

// fault is an op done wrong.
type fault struct {
	id, text string
	params   int
	rank     int
	eval     func(e *evaluation, rows []int) []float64
	// guess is true if nothing can be predicted: the fault is named, after all that is.
	guess bool
	// fitted is true if eval needs numbers of the candidate's target (evaluation.fit) and so works on the target only.
	fitted bool
}

// graph is the neighbourhood of a target: the values of its block, of the block before it, and of all that belongs to no block.
type graph struct {
	s      *Scene
	values []*value // in the order in which they existed, up to the target
	target *value
	leaves map[string]bool // false for a layer with recorded layers inside it
	work   float64         // multiplications and additions left
}

// The bounds of the work of one scene.
const (
	workLimit  = 6e9 // multiplications and additions
	sampleRows = 256 // of a target, to fit a number on
	probeRows  = 16  // of a target: on these a prediction must look good before it is made in full
	inFull     = 12  // predictions are
	decodeMax  = 1 << 26
)

// otherKinds are explained by what they are, not by an op done wrong.
var otherKinds = []string{localise.KindInput, localise.KindWeights, localise.KindCapture, localise.KindInteraction, localise.KindDrift}

// newGraph collects the values. nil if the scene has no numbers to explain.
func newGraph(s *Scene) *graph {
	if slices.Contains(otherKinds, s.Kind) || s.Target == nil || s.Target.Actual == nil || s.Target.Golden.Len() == 0 || !s.Target.Golden.DType().IsFloat() ||
		!slices.Equal(s.Target.Actual.Shape(), s.Target.Golden.Shape()) {
		return nil
	}
	g := &graph{s: s, work: workLimit, leaves: map[string]bool{}}
	start := map[string]int{}
	for _, p := range s.Ports {
		if p.Case != s.Case || p.Step != s.Step {
			continue
		}
		for l := p.Layer; l != ""; {
			if at, ok := start[l]; !ok || p.Seq < at {
				start[l] = p.Seq
			}
			if l == p.Layer {
				if _, ok := g.leaves[l]; !ok {
					g.leaves[l] = true
				}
			} else {
				g.leaves[l] = false
			}
			l = l[:max(strings.LastIndexByte(l, '.'), 0)]
		}
	}
	type event struct {
		*Port
		at, kind, depth int
	}
	var events []event
	for _, p := range s.Ports {
		if p.Case != s.Case || p.Step != s.Step || p.Golden.Len() == 0 {
			continue
		}
		e := event{Port: p, at: 2*p.Seq + 1, kind: 1, depth: strings.Count(p.Layer, ".")}
		if localise.RoleOf(p.Port) == localise.Input {
			e.at, e.kind = 2*start[p.Layer], 0
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.depth, b.depth), cmp.Compare(a.Seq, b.Seq))
	})
	end := slices.IndexFunc(events, func(e event) bool { return e.Port == s.Target })
	if end < 0 {
		return nil
	}
	own, before := blockOf(s.Target.Layer), ""
	for _, e := range events[:end] {
		if b := blockOf(e.Layer); b != own && b != "" && localise.RoleOf(e.Port.Port) != localise.Input {
			before = b
		}
	}
	byMark := map[string]*value{}
	for i, e := range events[:end+1] {
		b := blockOf(e.Layer)
		if b != "" && b != own && b != before {
			continue
		}
		mark := markOf(e.Golden)
		v := byMark[mark]
		if v == nil || i == end || mark == "" {
			v = &value{at: i, golden: e.Golden, shape: e.Golden.Shape(), width: max(e.Golden.RowLen(), 1)}
			v.rows = v.golden.Len() / v.width
			g.values = append(g.values, v)
			if i < end {
				byMark[mark] = v
			}
		}
		v.ports = append(v.ports, e.Port)
		if v.actual == nil && e.Actual != nil && i < end && slices.Equal(e.Actual.Shape(), e.Golden.Shape()) {
			v.actual, v.agrees = e.Actual, e.Agrees
		}
	}
	g.target = g.values[len(g.values)-1]
	return g
}

// blockOf is the label up to its first number: "model.layers.3" of "model.layers.3.mlp"; "" if it has none.
func blockOf(layer string) string {
	at := 0
	for part := range strings.SplitSeq(layer, ".") {
		at += len(part)
		if _, err := strconv.Atoi(part); err == nil {
			return layer[:at]
		}
		at++
	}
	return ""
}

// markOf tells tensors apart by their shape and some of their elements. "" for a tensor that says too little: it may be equal by chance.
func markOf(t *tensor.Tensor) string {
	const n = 24
	var b strings.Builder
	b.WriteString(tensor.FormatShape(t.Shape()))
	first, varied := 0.0, false
	for i := range n {
		x := t.At(int(uint64(i) * uint64(t.Len()-1) / (n - 1)))
		if i == 0 {
			first = x
		}
		varied = varied || x != first
		b.WriteString(strconv.FormatUint(math.Float64bits(x), 36))
		b.WriteByte(',')
	}
	if !varied {
		return ""
	}
	return b.String()
}

// find gives the value that a port holds, nil for a port outside the graph.
func (g *graph) find(layer, port string) *value {
	for _, v := range g.values {
		for _, p := range v.ports {
			if p.Layer == layer && p.Port == port && v != g.target {
				return v
			}
		}
	}
	return nil
}

// before lists the values of float numbers that existed before v.
func (g *graph) before(v *value) []*value {
	var out []*value
	for _, x := range g.values {
		if x.at < v.at && x != g.target && x.golden.DType().IsFloat() {
			out = append(out, x)
		}
	}
	return out
}

// siblings lists the outputs of the other layers beside one, those too that the reference ran later: a candidate may take the wrong one of them.
func (g *graph) siblings(layer string) []*value {
	var out []*value
	for _, p := range g.s.Ports {
		if p.Case != g.s.Case || p.Step != g.s.Step || p.Layer == layer || !sameParent(p.Layer, layer) || g.s.Output(p.Layer) != p || p == g.s.Target {
			continue
		}
		v := g.find(p.Layer, p.Port)
		if v == nil {
			v = &value{ports: []*Port{p}, at: math.MaxInt, golden: p.Golden, shape: p.Golden.Shape(), width: max(p.Golden.RowLen(), 1), tried: true}
			v.rows = v.golden.Len() / v.width
			if p.Actual != nil && slices.Equal(p.Actual.Shape(), p.Golden.Shape()) {
				v.actual, v.agrees = p.Actual, p.Agrees
			}
		}
		out = append(out, v)
	}
	return out
}

// alikes lists the values before v of the same number of elements and width.
func (g *graph) alikes(v *value) []*value {
	return slices.DeleteFunc(g.before(v), func(x *value) bool { return x.width != v.width || x.rows != v.rows })
}

// name is the value's first label, an output's if it has one.
func (v *value) name() string {
	for _, p := range v.ports {
		if localise.RoleOf(p.Port) != localise.Input {
			return p.Layer
		}
	}
	return v.ports[0].Layer
}

// text names the value for people.
func (v *value) text() string {
	for _, p := range v.ports {
		if localise.RoleOf(p.Port) != localise.Input {
			return "the output of " + p.Layer
		}
	}
	return "the input of " + v.ports[0].Layer
}

// made is the layer that put the value out first, "" for one that only went in.
func (v *value) made() (layer string, port *Port) {
	for _, p := range v.ports {
		if localise.RoleOf(p.Port) != localise.Input {
			return p.Layer, p
		}
	}
	return "", nil
}

// rowAt is the row of v that belongs to row i of n rows of a tensor of this shape: v may lack leading axes (a bias, a position table) or inner
// ones (one row of modulation for each of the batch). −1 if they do not go together.
func (v *value) rowAt(i int, shape []int, n int) int {
	switch {
	case v.rows == n:
		return i
	case v.rows == 0 || n%v.rows != 0:
		return -1
	case len(shape) > 1 && v.rows == shape[0] && v.shape[0] == shape[0]:
		return i / (n / v.rows)
	}
	return i % v.rows
}

// evaluation is one pass over the graph: of the golden tensors, or of the candidate's with one op done wrong.
type evaluation struct {
	g         *graph
	candidate bool
	at        *value // where the fault is
	fault     *fault
	dirty     map[*value]bool
	memo      map[memoKey][]float64
}

type memoKey struct {
	v    *value
	rows uint64
}

func (g *graph) golden() *evaluation { return &evaluation{g: g} }

func (g *graph) faulty(v *value, f *fault) *evaluation {
	return &evaluation{g: g, candidate: true, at: v, fault: f, dirty: map[*value]bool{}, memo: map[memoKey][]float64{}}
}

// get gives rows of a value, one behind the other; nil if that is not known. Nobody writes to the result.
func (e *evaluation) get(v *value, rows []int) []float64 {
	if !e.candidate {
		return read(v.golden, v.width, rows)
	}
	if v.actual != nil && v != e.g.target {
		return read(v.actual, v.width, rows)
	}
	if v != e.at && !e.isDirty(v) {
		return read(v.golden, v.width, rows)
	}
	if len(rows) == 0 {
		return nil
	}
	key := memoKey{v, hashOf(rows)}
	if got, ok := e.memo[key]; ok {
		return got
	}
	var out []float64
	if v == e.at {
		out = e.fault.eval(e, rows)
	} else {
		out = v.op.eval(e, rows)
	}
	e.memo[key] = out
	return out
}

// isDirty reports whether the candidate's value, which it did not record, must be another than the golden one.
func (e *evaluation) isDirty(v *value) bool {
	if v == e.at {
		return true
	}
	if v.actual != nil && v != e.g.target {
		return !v.agrees
	}
	if d, ok := e.dirty[v]; ok || v.op == nil {
		return d
	}
	e.dirty[v] = false
	d := slices.ContainsFunc(v.op.inputs(), e.isDirty)
	e.dirty[v] = d
	return d
}

// all gives every row.
func (e *evaluation) all(v *value) []float64 {
	if v.golden.Len() > decodeMax {
		return nil
	}
	return e.get(v, seq(v.rows))
}

// matching gives, for each of the rows of out, the row of v that belongs to it.
func (e *evaluation) matching(v, out *value, rows []int) []float64 {
	if v.rows == out.rows {
		return e.get(v, rows)
	}
	own := make([]int, len(rows))
	for i, r := range rows {
		if own[i] = v.rowAt(r, out.shape, out.rows); own[i] < 0 {
			return nil
		}
	}
	return e.get(v, own)
}

// hashOf is FNV-1a of the numbers.
func hashOf(rows []int) uint64 {
	h := uint64(14695981039346656037)
	for _, r := range rows {
		h = (h ^ uint64(r)) * 1099511628211
	}
	return h
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func read(t *tensor.Tensor, width int, rows []int) []float64 {
	if len(rows)*width > decodeMax {
		return nil
	}
	out := make([]float64, len(rows)*width)
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j] == rows[j-1]+1 {
			j++
		}
		t.Float64s(out[i*width:j*width], rows[i]*width)
		i = j
	}
	return out
}

// spread picks n of m rows: the first, the last and others evenly between; all if there are no more.
func spread(m, n int) []int {
	if m <= n {
		return seq(m)
	}
	out := make([]int, n)
	for i := range out {
		out[i] = int(int64(i) * int64(m-1) / int64(n-1))
	}
	return out
}

// relative is ‖a − b‖ / ‖b‖: +Inf for tensors that do not go together or hold what is no number.
func relative(a, b []float64) float64 {
	if len(a) != len(b) || len(a) == 0 {
		return math.Inf(1)
	}
	var d, n float64
	for i, x := range b {
		d += (a[i] - x) * (a[i] - x)
		n += x * x
	}
	switch r := math.Sqrt(d / n); {
	case d == 0:
		return 0
	case math.IsNaN(r):
		return math.Inf(1)
	default:
		return r
	}
}

// noise is the relative error that a right op may have on the golden tensors: they were rounded on their way.
func (v *value) noise() float64 {
	floor := 0.0
	for _, p := range v.ports {
		floor = max(floor, p.Floor.RelL2)
	}
	switch v.golden.DType() {
	case tensor.F64:
		return max(floor, 1e-9)
	case tensor.F32:
		return max(floor, 2e-5)
	case tensor.F16:
		return max(floor, 4e-3)
	}
	return max(floor, 3e-2)
}

// control is how far an op misses the golden value.
func (g *graph) control(v *value, o op) float64 {
	rows := spread(v.rows, probeRows)
	return relative(o.eval(g.golden(), rows), read(v.golden, v.width, rows))
}

// explain finds out how the reference made a value.
func (g *graph) explain(v *value) {
	if v.tried {
		return
	}
	v.tried = true
	best := v.noise()
	for _, find := range []func(*graph, *value) []op{findLeaf, findAlias, findAttention, findSum, findProduct, findModulation, findParameter, findUnary, findRow} {
		for _, o := range find(g, v) {
			if miss := g.control(v, o); miss <= best {
				best, v.op = miss/2, o // a later one must be clearly better
			}
		}
		if v.op != nil || g.work <= 0 {
			return
		}
	}
	if layer, port := v.made(); port != nil && g.leaves[layer] {
		v.op = &given{v: v, layer: layer, input: g.inputOf(layer)}
	}
}

// inputOf is the value that a layer took, nil if it was not recorded.
func (g *graph) inputOf(layer string) *value {
	if p := g.s.Input(layer); p != nil {
		return g.find(layer, p.Port)
	}
	return nil
}

// cone explains the target and what the candidate did not record on the way to it.
func (g *graph) cone() []*value {
	const limit = 48
	var out []*value
	seen := map[*value]bool{}
	var visit func(v *value)
	visit = func(v *value) {
		if seen[v] || len(out) == limit || g.work <= 0 {
			return
		}
		seen[v] = true
		if g.explain(v); v.op == nil {
			return
		}
		out = append(out, v)
		for _, in := range v.op.inputs() {
			if in.actual == nil {
				visit(in)
			}
		}
	}
	visit(g.target)
	return out
}

// Rebuilt tries, at each op between what the candidate recorded and the target, the mistakes that are made with it.
var Rebuilt = Func(func(s *Scene) []Prediction {
	g := newGraph(s)
	if g == nil {
		return nil
	}
	sample, marks := g.sample()
	if len(sample) == 0 {
		return nil
	}
	golden := read(s.Target.Golden, g.target.width, sample)
	actual := read(s.Target.Actual, g.target.width, sample)
	probe := worst(sample, golden, actual, g.target.width)
	goldenProbe := read(s.Target.Golden, g.target.width, probe)
	actualProbe := read(s.Target.Actual, g.target.width, probe)
	far := relative(actualProbe, goldenProbe)

	type tried struct {
		v   *value
		f   fault
		fit float64
	}
	var good []tried
	var out []Prediction
	for _, v := range g.cone() {
		for _, f := range v.op.faults(g, v) {
			if g.work <= 0 || s.Late() {
				break
			}
			if (f.fitted || f.guess) && v != g.target {
				continue
			}
			if f.guess {
				out = append(out, Prediction{ID: f.id, Text: f.text, Rank: f.rank})
				continue
			}
			got := g.faulty(v, &f).get(g.target, probe)
			if fit := relative(actualProbe, got); fit < far*2/3 || math.IsInf(far, 1) && !math.IsInf(fit, 1) {
				good = append(good, tried{v, f, fit})
			}
		}
	}
	slices.SortStableFunc(good, func(a, b tried) int { return cmp.Compare(a.fit, b.fit) })
	for _, t := range good[:min(len(good), inFull)] {
		got := g.faulty(t.v, &t.f).get(g.target, sample)
		if got == nil {
			continue
		}
		p := Prediction{ID: t.f.id, Text: t.f.text, Params: t.f.params, Rank: t.f.rank - 1, // a known mechanism before a pattern of the values
			Rows: marks}
		if t.v != g.target {
			p.Layer = t.v.name()
		}
		if p.Value = (&Array{Shape: g.target.shape, Data: got}); marks != nil {
			p.Value.Shape = []int{len(sample), g.target.width}
		}
		out = append(out, p)
	}
	return out
})

// sample lists the rows of the target that are predicted, and marks them; no marks for all.
func (g *graph) sample() (rows []int, marks []bool) {
	marks = g.s.Sample()
	if pad := g.s.Target.PadRows; marks == nil && pad != nil {
		marks = make([]bool, g.target.rows)
		for i := range marks {
			marks[i] = i >= len(pad) || !pad[i]
		}
	}
	for i := range g.target.rows {
		if marks == nil || marks[i] {
			rows = append(rows, i)
		}
	}
	return rows, marks
}

// worst picks the rows in which the candidate is furthest from the golden, and some of the others, in order.
func worst(rows []int, golden, actual []float64, width int) []int {
	if len(rows) <= probeRows {
		return rows
	}
	far := make([]float64, len(rows))
	for i := range rows {
		far[i] = relative(actual[i*width:(i+1)*width], golden[i*width:(i+1)*width])
	}
	byFar := seq(len(rows))
	slices.SortStableFunc(byFar, func(a, b int) int { return cmp.Compare(far[b], far[a]) })
	n := len(byFar)
	pick := append(slices.Clone(byFar[:probeRows*3/4]), byFar[n-probeRows/4:]...)
	slices.Sort(pick)
	for i, at := range pick {
		pick[i] = rows[at]
	}
	return pick
}

// spend notes work, and reports whether there is any left.
func (g *graph) spend(n float64) bool {
	g.work -= n
	return g.work > 0
}
