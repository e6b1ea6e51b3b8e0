package rebuild

import (
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/trace"
	"github.com/goparity/goparity/tensor"
)

// Graph is the neighbourhood of a target: the values of its block, of the block before it, and of
// all that belongs to no block.
type Graph struct {
	Scene  *diagnose.Scene
	Target *Value
	values []*Value // in the order in which they existed, up to the target
	flow   *trace.Pass
	work   float64 // multiplications left
}

// otherKinds are explained by what they are, not by an op done wrong.
var otherKinds = []string{localise.KindInput, localise.KindWeights, localise.KindCapture,
	localise.KindInteraction, localise.KindDrift}

// Of returns the graph of a scene, for all hypotheses; nil if there is nothing to calculate.
func Of(s *diagnose.Scene) *Graph { return diagnose.Shared(s, newGraph) }

// newGraph collects the values; nil if the scene has no numbers to explain.
func newGraph(s *diagnose.Scene) *Graph {
	if slices.Contains(otherKinds, s.Kind) || !s.HasNumbers() || !s.Target.IsRecorded() {
		return nil
	}
	g := &Graph{Scene: s, work: workLimit, flow: s.Flow().Pass(s.Case, s.Step)}
	if g.flow == nil {
		return nil
	}
	end := slices.IndexFunc(g.flow.Events, func(e trace.Event) bool { return s.Ports[e.Index] == s.Target })
	if end < 0 {
		return nil
	}
	var events []*diagnose.Port
	var index []int // of flow.Events
	for i, e := range g.flow.Events[:end] {
		if p := s.Ports[e.Index]; p.Golden.Len() > 0 {
			events, index = append(events, p), append(index, i)
		}
	}
	own, before := label.Block(s.Target.Layer), ""
	for _, p := range events {
		if b := label.Block(p.Layer); b != own && b != "" && !p.IsInput() {
			before = b
		}
	}
	known := map[content]*Value{}
	for i, p := range events {
		if b := label.Block(p.Layer); b != "" && b != own && b != before {
			continue
		}
		c := g.content(p.Golden)
		v := known[c]
		if v == nil || c.same == 0 {
			v = g.value(p, i)
			g.values = append(g.values, v)
			known[c] = v
		}
		v.add(p)
		for _, j := range g.flow.Copies(index[i]) { // of another block
			if o := s.Ports[g.flow.Events[j].Index]; j < end && slices.Equal(o.Golden.Shape(), p.Golden.Shape()) {
				v.record(o)
			}
		}
		for k, h := range halves(p) {
			u := g.value(h, i)
			u.tried, u.Op = true, &Part{From: From{Made{u}, v, ""}, First: k * u.Width}
			u.add(h)
			g.values = append(g.values, u)
			if c := g.content(h.Golden); known[c] == nil {
				known[c] = u
			}
		}
	}
	g.Target = g.value(s.Target, len(events))
	g.Target.add(s.Target)
	g.values = append(g.values, g.Target)
	return g
}

// content tells tensors apart: by their bytes, where these tell something, and their shape.
type content struct {
	same  int
	shape string
}

func (g *Graph) content(t *tensor.Tensor) content {
	return content{g.Scene.Trace.Identity.Of(t), tensor.FormatShape(t.Shape())}
}

// IsLeaf reports whether the reference recorded a layer, and nothing inside it.
func (g *Graph) IsLeaf(layer string) bool { return g.flow.Leaf(layer) }

// find returns the value that a port holds, nil for a port outside the graph.
func (g *Graph) find(p *diagnose.Port) *Value {
	for _, v := range g.values {
		if v != g.Target && slices.Contains(v.ports, p) {
			return v
		}
	}
	return nil
}

// InputOf is the value that a layer took, nil if it was not recorded.
func (g *Graph) InputOf(layer string) *Value {
	if p := g.Scene.Input(layer); p != nil {
		return g.find(p)
	}
	return nil
}

// before lists the values of float numbers that existed before v.
func (g *Graph) before(v *Value) []*Value {
	var out []*Value
	for _, x := range g.values {
		if x.at < v.at && x != g.Target && x.IsFloat() {
			out = append(out, x)
		}
	}
	return out
}

// Alikes lists the values before v of its number of rows and columns.
func (g *Graph) Alikes(v *Value) []*Value {
	return slices.DeleteFunc(g.before(v), func(x *Value) bool { return !x.IsLike(v) })
}

// Siblings lists the outputs of the other layers beside one, also those that the reference ran
// later: a candidate may take the wrong one of them.
func (g *Graph) Siblings(layer string) []*Value {
	var out []*Value
	for _, v := range g.values {
		if _, ok := v.Op.(*Part); ok && v.Taker() != layer && label.Beside(v.Taker(), layer) {
			out = append(out, v)
		}
	}
	for _, p := range g.Scene.Pass() {
		if p.Layer == layer || !label.Beside(p.Layer, layer) || g.Scene.Output(p.Layer) != p || p == g.Scene.Target {
			continue
		}
		v := g.find(p)
		if v == nil {
			v = g.value(p, math.MaxInt)
			v.tried = true
			v.add(p)
		}
		out = append(out, v)
	}
	return out
}

// Earlier lists the values that the same layer of an earlier block put out, in v's shape.
func (g *Graph) Earlier(v *Value) []*Value {
	layer := v.Layer()
	block := label.Block(layer)
	return slices.DeleteFunc(g.Alikes(v), func(x *Value) bool {
		b := label.Block(x.Layer())
		return b == "" || block == "" || b == block || module.InBlock(x.Layer()) != module.InBlock(layer)
	})
}

// Spend notes work in multiplications, and reports whether there is any left.
func (g *Graph) Spend(n float64) bool {
	g.work -= n
	return g.work > 0
}

// isOver reports whether no work or no time is left.
func (g *Graph) isOver() bool { return g.work <= 0 || g.Scene.Late() }

// isFront reports whether v is made in front of the blocks: nothing in a block is made before it.
func isFront(v *Value) bool {
	return slices.ContainsFunc(v.ports, func(p *diagnose.Port) bool { return label.Block(p.Layer) == "" }) ||
		!slices.ContainsFunc(v.g.values, func(x *Value) bool { return x != v && x.at < v.at && label.Block(x.Layer()) != "" })
}
