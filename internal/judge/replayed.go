package judge

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// replayed is a program of the reference on what the candidate has for its ports.
type replayed struct {
	*program.Program
	c        *Comparison
	k        *Case
	load     replay.Load    // weights, constants and inputs
	done     func()         // lets the system take what was loaded
	ports    [][]*Port      // by port of the program, one for each forward pass; nil where the golden has none
	records  []piece.Record // by port of the program
	result   *piece.Result
	inferred bool     // the program stands for one that is not known: the golden alone shows what is right
	laid     *laidOut // where forward passes were laid out as one; else nil
	readable func() []edit.Weight
}

func (c *Comparison) newReplayed(k *Case, p *program.Program) *replayed {
	r := &replayed{Program: p, c: c, k: k, ports: make([][]*Port, len(p.Ports)), records: make([]piece.Record, len(p.Ports))}
	r.load, r.done = c.search.Evidence.Outside(p)
	r.readable = sync.OnceValue(r.readableWeights)
	return r
}

// known ranges over the programs that were recorded.
func (c *Comparison) known() iter.Seq[*replayed] {
	return func(yield func(*replayed) bool) {
		for _, r := range c.replays {
			if r.inferred {
				continue
			}
			more := yield(r)
			if r.done(); !more {
				return
			}
		}
	}
}

// portOf is the port of the program that a port is of; −1 for none.
func (r *replayed) portOf(p *Port) int {
	return slices.IndexFunc(r.ports, func(of []*Port) bool { return slices.Contains(of, p) })
}

// replayAll replays the programs of all cases. What hangs on ties is left out, and then it is done again.
func (c *Comparison) replayAll() error {
	for i := range c.Cases {
		k := &c.Cases[i]
		all, err := c.replay(k)
		if err != nil {
			return err
		}
		tied, err := c.leaveOutTies(k)
		if err == nil && tied {
			all, err = c.replay(k)
		}
		if err != nil {
			return err
		}
		for _, r := range all {
			r.tell()
		}
		c.replays = append(c.replays, all...)
	}
	return nil
}

func (c *Comparison) replay(k *Case) ([]*replayed, error) {
	all, err := c.layouts(k)
	for _, r := range all {
		err = cmp.Or(err, r.judge())
	}
	return all, err
}

// layouts puts what the candidate has beside the programs of a case, or where none is known beside what stands for it.
func (c *Comparison) layouts(k *Case) ([]*replayed, error) {
	if k.Along != nil && len(k.Along.programs) > 0 {
		return c.layAlong(k), nil
	}
	p, err := k.Program, error(nil)
	if p == nil || k.Along != nil {
		if p, err = c.inferred(*k); err != nil {
			return nil, err
		}
	}
	r := c.newReplayed(k, p)
	r.inferred = p != k.Program
	for i, at := range p.Ports {
		q := c.byKey[k.key(at.Step, at.Layer, at.Name)]
		if q == nil {
			continue
		}
		r.ports[i] = []*Port{q}
		x := &r.records[i]
		q.replayRecord(x, k.alone)
		if k.alone && x.Tensor != nil && !x.Source { // no weight is read again
			x.Made = func() (*replay.Array, error) { return arrayOf(q.entry, p.Values[at.Value].DType) }
		}
	}
	return []*replayed{r}, nil
}

// judge replays the pieces of a program.
func (r *replayed) judge() (err error) {
	c, k := r.c, r.k
	defer r.done()
	run := &piece.Run{Program: r.Program, Records: r.records, Encoding: k.judged.dtype, Load: r.load}
	if r.result, err = piece.Judge(c.ctx, run); err != nil {
		return err
	}
	d := k.unsaid(run, r.result)
	if d == tensor.Invalid {
		return nil
	}
	c.Note(fmt.Sprintf("case %s: the run does not say its encoding, and what differs first holds nothing but numbers of %s: it is judged as %s, "+
		"which encoding in run.json or parity compare --assume encoding=… says better", k.Name, d, d))
	run.Encoding = d
	for _, p := range c.Ports {
		if p.Case == k.Name {
			p.downcast = tensor.Invalid
		}
	}
	r.result, err = piece.Judge(c.ctx, run)
	return err
}

// tell says of each port what replay says.
func (r *replayed) tell() {
	for i, l := range r.result.Local {
		if r.laid != nil {
			r.spread(i, l)
			continue
		}
		for _, p := range r.ports[i] {
			p.Local = l
			p.leaveOutDrawn()
		}
	}
	if r.laid != nil {
		r.noteLayout()
	}
}

// arrayOf is a tensor in the type that the program has for it.
func arrayOf(t *tensor.Tensor, d tensor.DType) (*replay.Array, error) {
	a, err := replay.FromTensor(t)
	if err != nil || a.DType() == d {
		return a, err
	}
	return replay.Of(d, a.Shape(), a.Floats())
}

// unsaid returns the type of 16 bits in which a run of wider tensors computes that does not say so: most
// pieces are off, and the first that is wrong holds nothing but its numbers. It is Invalid for any
// other run.
func (k *Case) unsaid(run *piece.Run, found *piece.Result) tensor.DType {
	if _, err := tensor.ParseDType(k.Actual.Info.Encoding.Compute); err == nil || len(found.Faults) == 0 || compare.Has16Bits(run.Encoding) {
		return tensor.Invalid
	}
	pieces, wrong := 0, 0
	for _, l := range found.Local {
		if l.Opaque == "" && l.First <= l.Last {
			pieces++
			if l.Wrong {
				wrong++
			}
		}
	}
	t := run.Records[found.Faults[0]].Tensor
	if pieces == 0 || 2*wrong < pieces || t == nil || !t.DType().IsFloat() || t.Len() < localise.LeastFloats {
		return tensor.Invalid
	}
	x := t.Floats()
	for _, d := range []tensor.DType{tensor.BF16, tensor.F16} {
		narrow, err := replay.Of(d, t.Shape(), x)
		if err == nil && slices.Equal(narrow.Floats(), x) && !vec.All(x, func(v float64) bool { return v == math.Trunc(v) }) {
			return d
		}
	}
	return tensor.Invalid
}

// replayRecord sets what the candidate has for a port, as replay takes it. Alone, its golden is made of it,
// and tells nothing.
func (p *Port) replayRecord(r *piece.Record, alone bool) {
	r.Misfit = p.misfit()
	if r.Misfit || !p.Comparable() || p.sides == nil || p.printed != nil {
		return
	}
	if !alone {
		r.Golden = piece.Golden{Known: true, Agrees: p.Agrees, Error: math.Max(p.inFloors()), Measured: p.measured, Tied: p.tied}
	}
	f, ok := p.inOwnShape()
	if !ok {
		return
	}
	var err error
	if r.Tensor, err = replay.FromTensor(f.actual); err == nil {
		r.Tensor, err = p.additive(r.Tensor)
	}
	if err != nil {
		r.Tensor = nil
		return
	}
	r.Source = p.Unjudged()
	if f.pad != nil && slices.Contains(f.pad, true) {
		r.Lines = make([]bool, len(f.pad))
		for i, pad := range f.pad {
			r.Lines[i] = !pad
		}
		if !f.has || slices.ContainsFunc(r.Tensor.Floats(), math.IsNaN) { // what it computed there, other rows may hang on
			r.Complete = padded(r.Tensor, r.Lines)
		}
	}
}

// inFloors returns the error of a port, of the tensor and of its worst row, in noise floors of its type.
func (p *Port) inFloors() (whole, row float64) {
	r, f := p.Base.Result, p.floor()
	switch cost := r.Cost; {
	case p.isDowncast(r), p.outliers, r.BadNonFinite != 0:
	case p.measured && cost != nil:
		return cost.Tensor / compare.MostCost, cost.Row / 2 / compare.MostCost // a row has to show more, see judgeBase
	case p.DType.IsFloat():
		return r.RelL2 / f.RelL2, r.WorstRow.RelL2 / f.RowRelL2
	case p.Agrees:
		return 0, 0
	}
	return math.Inf(1), math.Inf(1)
}

// leaveOutDrawn leaves out what hangs on random numbers that the reference drew: the candidate has drawn
// others.
func (p *Port) leaveOutDrawn() {
	if p.Local.Drawn && (!p.Agrees || p.misfit()) {
		p.allow(unjudged, "hangs on random numbers, of which each run draws its own")
	}
}

// padded puts the lines of a tensor that are no padding into a replayed one.
func padded(have *replay.Array, lines []bool) func(*replay.Array) (*replay.Array, error) {
	return func(made *replay.Array) (*replay.Array, error) {
		x, own := made.Floats(), have.Floats()
		if len(x) != len(own) || len(lines) == 0 || len(x)%len(lines) != 0 {
			return have, nil
		}
		n := len(x) / len(lines)
		for i, is := range lines {
			if is {
				copy(x[i*n:(i+1)*n], own[i*n:(i+1)*n])
			}
		}
		return replay.Of(made.DType(), have.Shape(), x) // of a narrower type the lowest number would be an infinity
	}
}

// additive returns a bool mask as the numbers that the golden's additive one has for what is denied and
// allowed, so that operators can add it; any other tensor as it is.
func (p *Port) additive(have *replay.Array) (*replay.Array, error) {
	if p.Actual.DType() != tensor.Bool || !p.Golden.DType().IsFloat() {
		return have, nil
	}
	if _, isMask := vec.MasksDiffer(p.Golden, p.Actual); !isMask {
		return have, nil
	}
	golden := make([]float64, p.Golden.Len())
	p.Golden.Float64s(golden, 0)
	denied := slices.Min(golden)
	if denied == 0 { // it denies nothing
		denied = -math.MaxFloat32
	}
	x := slices.Clone(have.Floats())
	for i, allowed := range x {
		x[i] = denied * (1 - allowed)
		if allowed == 1 {
			x[i] = 0 // -Inf · 0 is NaN
		}
	}
	return replay.Of(p.Golden.DType(), have.Shape(), x)
}

// opaqueOp is the operator of a piece of which nothing is known but what goes into it.
const opaqueOp = "goparity.opaque"

// inferred returns what stands for the program of a case that has none: an opaque operator for the
// code of each layer, and for that of a container between two of its layers. It takes all that the
// records show it may take: equal bytes are one value.
func (c *Comparison) inferred(k Case) (*program.Program, error) {
	p := &program.Program{Case: k.Name, Engine: "none"}
	before := map[string]program.ID{} // what a layer put out in the forward pass before
	for _, pass := range c.flow.Passes {
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
