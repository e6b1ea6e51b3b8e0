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
	number   *float64 // that eval took from the candidate, for the text; nil for none
	// refine gives more of the same, which is tried if this fits better than the golden by far.
	refine func() []fault
	// guess is true if nothing can be predicted: the fault is named, after all that is.
	guess bool
	// fitted is true if eval reads the candidate's target, and so works on the target only.
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
	workLimit  = 6e9     // multiplications and additions
	sampleRows = 256     // of a target, to fit a number on
	probeRows  = 16      // of a target: on these a prediction must look good before it is made in full
	inFull     = 12      // predictions are, and guesses
	sameID     = 3       // of them have one id
	decodeMax  = 1 << 25 // elements are decoded at once
)

// otherKinds are explained by what they are, not by an op done wrong.
var otherKinds = []string{localise.KindInput, localise.KindWeights, localise.KindCapture, localise.KindInteraction, localise.KindDrift}

// graph is the neighbourhood of the target, for all hypotheses of the scene; nil if there is nothing to calculate.
func (s *Scene) graph() *graph {
	if !s.looked {
		s.near, s.looked = newGraph(s), true
	}
	return s.near
}

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
		v.add(e.Port, i < end)
		if i == end {
			break
		}
		for k, h := range halves(e.Port) {
			u := &value{at: i, golden: h.Golden, shape: h.Golden.Shape(), rows: v.rows, width: v.width / 2, tried: true}
			u.op = &part{v, u, k * u.width}
			u.add(h, true)
			g.values = append(g.values, u)
			if mark := markOf(h.Golden); mark != "" && byMark[mark] == nil {
				byMark[mark] = u
			}
		}
	}
	g.target = g.values[len(g.values)-1]
	return g
}

// add notes a port that holds the value. What the candidate has there counts unless the port is the target.
func (v *value) add(p *Port, counts bool) {
	v.ports = append(v.ports, p)
	if v.actual == nil && p.Actual != nil && counts && slices.Equal(p.Actual.Shape(), p.Golden.Shape()) {
		v.actual, v.agrees = p.Actual, p.Agrees
	}
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
	if t.Len() == 0 {
		return ""
	}
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
	for _, v := range g.values {
		if _, ok := v.op.(*part); ok && v.ports[0].Layer != layer && sameParent(v.ports[0].Layer, layer) {
			out = append(out, v)
		}
	}
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

// spend notes work, and reports whether there is any left.
func (g *graph) spend(n float64) bool {
	g.work -= n
	return g.work > 0
}
