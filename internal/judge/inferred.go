package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/program"
)

// opaqueOp is the operator of a piece of which nothing is known but what goes into it.
const opaqueOp = "goparity.opaque"

// inferred returns what stands for the program of a case that has none: an opaque operator for the
// code of each layer, and for that of a container between two of its layers. It takes all that the
// records show it may take: equal bytes are one value.
func (c *Comparison) inferred(k Case) (*program.Program, error) {
	p := &program.Program{Case: k.Name, Engine: "none"}
	before := map[string]program.ID{} // what a layer put out in the forward pass before
	for _, pass := range c.flow().Passes {
		if pass.Case != k.Name {
			continue
		}
		in := &inferring{Pass: pass, c: c, p: p, of: map[int]program.ID{}, inputs: map[string][]program.ID{},
			outputs: map[string][]program.ID{}, before: before, after: map[string]program.ID{}, ends: map[string]int{}}
		first := len(p.Ops)
		in.events()
		p.Passes = append(p.Passes, program.Pass{Step: pass.Step, First: first, End: len(p.Ops)})
		before = in.after
	}
	return p, p.Check()
}

type inferring struct {
	*localise.Pass
	c               *Comparison
	p               *program.Program
	of              map[int]program.ID      // by what bytes are equal
	inputs, outputs map[string][]program.ID // of layers; outputs of what ran directly inside one
	before, after   map[string]program.ID
	ends            map[string]int // by layer, the operators that had run when it returned
}

// events adds the values of a forward pass in the order in which they existed.
func (in *inferring) events() {
	first := len(in.p.Ports)
	for _, e := range in.Events {
		id, known := in.of[e.Same]
		if !known || e.Same == 0 {
			id = in.made(e)
			if e.Same > 0 {
				in.of[e.Same] = id
			}
		}
		id = in.shaped(id, e)
		at := len(in.p.Ops)
		in.p.Ports = append(in.p.Ports, program.Port{Step: in.Step, Layer: e.Layer, Name: e.Port, Value: id, At: at, Until: at, Input: e.Input})
		if e.Input {
			in.inputs[e.Layer] = append(in.inputs[e.Layer], id)
			continue
		}
		in.ends[e.Layer] = at
		in.after[label.Join(e.Layer, e.Port)] = id
		if label.IsRoot(e.Layer) {
			in.outputs[""] = append(in.outputs[""], id)
		}
		for _, up := range in.Around(e.Layer) {
			in.outputs[up] = append(in.outputs[up], id)
			if len(in.Ports(up)) > 0 { // what is made of it further out is made of what that puts out
				break
			}
		}
	}
	for i := first; i < len(in.p.Ports); i++ {
		if q := &in.p.Ports[i]; q.Input {
			q.Until = max(q.At, in.ends[q.Layer])
		}
	}
}

// shaped returns a value in the shape of an event: equal bytes may be seen in another one.
func (in *inferring) shaped(id program.ID, e *localise.Entry) program.ID {
	shape := in.c.Ports[e.Index].entry.Shape()
	v := in.p.Values[id]
	if slices.Equal(v.Shape, shape) {
		return id
	}
	seen := program.Value{Shape: shape, DType: v.DType, Type: v.Type}
	in.p.Values = append(in.p.Values, seen)
	to := program.ID(len(in.p.Values) - 1)
	in.p.Ops = append(in.p.Ops, program.Op{Name: "view", Full: "aten.view.default", Layer: e.Layer, Call: 1, Stack: -1,
		Args: program.Args{{Name: "self", Value: id}, {Name: "size", Value: shape}}, Out: []program.ID{to}})
	return to
}

// made adds the value of an event, and the operator that makes it.
func (in *inferring) made(e *localise.Entry) program.ID {
	t := in.c.Ports[e.Index].entry
	v := program.Value{Shape: t.Shape(), DType: t.DType(), Type: t.DType().String()}
	id := program.ID(len(in.p.Values))
	// Where nothing shows what the model was given, ids and positions are taken to be that.
	if e.Input && (e.Given || !t.DType().IsFloat() && !slices.ContainsFunc(in.Events, func(e *localise.Entry) bool { return e.Given })) {
		v.Input = fmt.Sprintf("%s:%s", in.Step, e.Port)
		in.p.Values = append(in.p.Values, v)
		return id
	}
	operands := in.operands(e)
	in.p.Values = append(in.p.Values, v)
	in.p.Ops = append(in.p.Ops, program.Op{Name: "opaque", Full: opaqueOp, Layer: e.Layer, Call: 1, Stack: -1,
		Args: program.Args{{Name: "tensors", Value: operands}}, Out: []program.ID{id}})
	return id
}

// operands lists what an event may be made of: what its layer took and what ran directly inside it, or
// of an input, and where neither was recorded, what the container has so far. What a layer put out
// in the pass before may be in its cache.
func (in *inferring) operands(e *localise.Entry) (ids []program.ID) {
	if !e.Input {
		ids = slices.Concat(in.inputs[e.Layer], last(in.outputs[e.Layer]))
		if id, ok := in.before[label.Join(e.Layer, e.Port)]; ok {
			ids = append(ids, id)
		}
	}
	if e.Input || len(in.inputs[e.Layer]) == 0 {
		if label.IsRoot(e.Layer) { // of a dump that does not say what holds it
			ids = append(ids, last(in.outputs[""])...)
		}
		for up, l := "", in.Container(e.Layer); l != up; up, l = l, in.Container(l) {
			ids = slices.Concat(ids, in.inputs[l], last(in.outputs[l]))
			if len(in.inputs[l]) > 0 {
				break
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// last returns the last of many values: what lies further back is in these.
func last(ids []program.ID) []program.ID { return ids[max(0, len(ids)-mostOperands):] }
