// Package localise says where a candidate computes something other than the reference: it turns what
// replay found wrong (Fault) into a place (Verdict), by the dataflow of the reference's run (Flow).
//
// The [Pass.Events] are the recorded tensors at the time when their values existed. A layer is recorded after
// it ran, its inputs together with its outputs; but it had its inputs before anything inside it
// ran, so that is where they stand. Which tensor is which is told by bytes: an input that holds the
// bytes of an earlier output is that output. Where bytes do not tell, the order of execution does.
//
// A fault is an entry of the flow whose piece of the reference's program makes something else of
// what the candidate had there; package internal/judge/piece finds them. Of each:
//
//	the recording is wrong, and not the model            → capture
//	an input of the model itself                         → input, in the innermost layer that takes it
//	an input of a layer                                  → between, in the container whose code made it
//	an output of a module that returns what it was given → between, in its container
//	an output of a container with recorded children      → between its last child and its end
//	an output of any other layer                         → local, in that layer
//	local or between, but right on the golden inputs     → interaction
//	judged by the golden, and no order of execution      → unordered
//
// The first fault in the order of execution is the place, all are the frontier, and what else differs
// has it from them (Verdict.Blame). A wrong recording is the place only where nothing else is wrong.
// Where what the piece is made of lies outside of the layer, the place is open: in that layer, or
// between it and the last one that is known to be right. Where something fails and there is no
// fault, errors add up (Drift), and no layer is accused.
package localise

import (
	"bytes"
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Key names one port of a reference in one forward pass.
type Key struct{ Case, Step, Layer, Port string }

// Entry is one recorded tensor of the reference.
type Entry struct {
	Key
	Seq  int // execution index in the run: a layer's ports were recorded when it returned
	Same int // entries of one number above 0 hold equal bytes; 0 where bytes tell nothing
	Record

	Index int // of the entry among those given to NewFlow, which sets this and what follows
	Input bool
	Given bool // an input of the model itself
	At    int  // execution index at which its value existed; an input exists before anything inside its layer
}

// Record is what the comparison found of an entry.
type Record struct {
	Joined bool    // the candidate has it
	Agrees bool    // within the noise floor, or means the same (masks)
	Len    int     // elements in the reference
	Error  float64 // relative L2 of the worst row; +Inf if a NaN, an infinity or an integer has no match

	Alone *Alone // of the run on golden inputs; nil without one
}

// Alone is what a port was in the run on golden inputs: an output, or for an input of a nested run
// what had been computed for it before it was replaced.
type Alone struct {
	Agrees bool
	Error  float64
}

func (e *Entry) differs() bool { return e.Joined && !e.Agrees }

// known reports whether the candidate has it and it is right.
func (e *Entry) known() bool { return e.Joined && e.Agrees }

// Flow is the dataflow of all forward passes of a run.
type Flow struct {
	Entries []Entry
	Passes  []*Pass // steps in natural order; of one step in the order in which the cases came

	Nested bool // golden inputs were given inside layers too: a container's output shows only its last code
	// Unordered are the cases that are not in the order of execution, so that only the names tell which of
	// two layers ran first (label.Ordered).
	Unordered map[string]bool
}

// NewFlow makes the flow of a run of its entries, which are in the order in which they were recorded.
func NewFlow(entries []Entry) *Flow {
	of := map[Key][]int{} // by case and step
	var passes []Key
	for i := range entries {
		k := Key{Case: entries[i].Case, Step: entries[i].Step}
		if of[k] == nil {
			passes = append(passes, k)
		}
		of[k] = append(of[k], i)
	}
	slices.SortStableFunc(passes, func(a, b Key) int { return label.Natural(a.Step, b.Step) })
	f := &Flow{Entries: entries}
	for _, k := range passes {
		f.Passes = append(f.Passes, f.newPass(of[k]))
	}
	return f
}

// Identify sets Same of the entries by the bytes of their tensors, tensors[i] of entry i. It reads
// all of them, so only a flow whose producers are asked for needs it.
func (f *Flow) Identify(ctx context.Context, tensors []*tensor.Tensor) error {
	same, err := Identify(ctx, tensors)
	if err != nil {
		return err
	}
	for i := range f.Entries {
		f.Entries[i].Same = same[i]
	}
	return nil
}

// Pass finds the forward pass of a case and step; nil if nothing of it was recorded.
func (f *Flow) Pass(caseName, step string) *Pass {
	for _, p := range f.Passes {
		if p.Case == caseName && p.Step == step {
			return p
		}
	}
	return nil
}

// Pass is one forward pass.
type Pass struct {
	Case, Step string
	Events     []*Entry // in the order in which the values existed

	tree
	flow  *Flow
	ports map[string][]int // events by layer
}

func (f *Flow) newPass(indices []int) *Pass {
	entries := f.Entries
	p := &Pass{Case: entries[indices[0]].Case, Step: entries[indices[0]].Step, tree: newTree(entries, indices), flow: f,
		ports: map[string][]int{}}
	for _, i := range indices {
		e := &entries[i]
		e.Index, e.Input, e.At = i, label.IsInput(e.Port), e.Seq
		if e.Input {
			e.At = p.Start(e.Layer)
		}
		p.Events = append(p.Events, e)
	}
	depth := func(e *Entry) int { // inputs come first, and the outer layer had one first
		if e.Input {
			return label.Depth(e.Layer)
		}
		return math.MaxInt
	}
	slices.SortStableFunc(p.Events, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(depth(a), depth(b)), cmp.Compare(a.Seq, b.Seq))
	})
	holds := map[string]bool{} // roots that hold other layers
	for _, e := range p.Events {
		if name := label.Name(e.Layer); !label.IsRoot(name) {
			root, _, _ := strings.Cut(name, ".")
			holds[root] = true
		}
	}
	ran := false // a layer that is no part of the model is a root, too: nothing ran before the model itself
	for i, e := range p.Events {
		p.ports[e.Layer] = append(p.ports[e.Layer], i)
		e.Given = e.Input && label.IsRoot(e.Layer) && (!ran || holds[label.Name(e.Layer)])
		ran = ran || !e.Input
	}
	return p
}

// Ports lists the events of a layer.
func (p *Pass) Ports(layer string) []int { return p.ports[layer] }

// Producer returns the latest output before event i that holds the same bytes; −1 if there is none.
func (p *Pass) Producer(i int) int {
	for j := i - 1; j >= 0; j-- {
		if o := p.Events[j]; !o.Input && o.Same > 0 && o.Same == p.Events[i].Same {
			return j
		}
	}
	return -1
}

// of lists the inputs of a layer that the reference recorded, or its outputs.
func (p *Pass) of(layer string, inputs bool) (out []*Entry) {
	for _, i := range p.ports[layer] {
		if e := p.Events[i]; e.Input == inputs {
			out = append(out, e)
		}
	}
	return out
}

// holdsJoined reports whether the candidate recorded an output of something inside a layer.
func (p *Pass) holdsJoined(layer string) bool {
	return slices.ContainsFunc(p.Events, func(e *Entry) bool { return e.Joined && !e.Input && label.Inside(e.Layer, layer) })
}

// LeastFloats is how many elements a floating-point tensor has at least to tell something by its
// bytes. It is a matter of chance, not measured. Token ids and positions tell something if they are
// two and not all the same.
const LeastFloats = 16

// Identify numbers tensors by their bytes: those of one dtype with equal bytes have one number. It is 0
// for what is constant or tiny, which is equal by chance. It reads them on all cores; the error is for a
// context that ended, or a file that could not be read any more.
func Identify(ctx context.Context, tensors []*tensor.Tensor) (numbers []int, err error) {
	type content struct { // up to a collision of 64-bit hashes
		dtype tensor.DType
		n     int
		hash  uint64
	}
	seed, contents := maphash.MakeSeed(), make([]content, len(tensors))
	err = vec.Each(ctx, len(tensors), func(i int) error {
		t := tensors[i]
		data, ok := t.Bytes()
		if !ok { // a view
			data, _ = t.Copy().Bytes()
		}
		if telling(t, data) {
			contents[i] = content{t.DType(), t.Len(), maphash.Bytes(seed, data)}
		}
		return nil
	})
	known := map[content]int{{}: 0}
	for _, c := range contents {
		if _, ok := known[c]; !ok {
			known[c] = len(known)
		}
		numbers = append(numbers, known[c])
	}
	return numbers, err
}

// telling reports whether a tensor with equal bytes has to be this one.
func telling(t *tensor.Tensor, data []byte) bool {
	if t.DType().IsFloat() && t.Len() < LeastFloats || t.Len() < 2 {
		return false
	}
	size := t.DType().Size()
	return !bytes.Equal(data[size:], data[:len(data)-size])
}

// tree knows which layers were recorded and what ran inside what. A layer that is called several
// times is one container for each call.
type tree struct {
	calls map[string][]call // by name, in the order of the calls
	end   map[string]int    // execution index of the last record of a layer
	start map[string]int    // of the first record of a layer or of anything inside it
}

// call is one call of a layer.
type call struct {
	layer string
	done  int // execution index at which it and all calls before it had ended
}

func newTree(entries []Entry, indices []int) tree {
	t := tree{calls: map[string][]call{}, end: map[string]int{}, start: map[string]int{}}
	for _, i := range indices {
		t.end[entries[i].Layer] = entries[i].Seq // the last one stays
	}
	for layer, end := range t.end {
		name := label.Name(layer)
		t.calls[name] = append(t.calls[name], call{layer, end})
	}
	for _, calls := range t.calls {
		slices.SortFunc(calls, func(a, b call) int {
			_, x := label.CutCall(a.layer)
			_, y := label.CutCall(b.layer)
			return cmp.Compare(x, y)
		})
		for i := range calls[1:] {
			calls[i+1].done = max(calls[i+1].done, calls[i].done)
		}
	}
	for _, i := range indices {
		e := &entries[i]
		for l := e.Layer; l != ""; l = t.parent(l) {
			if _, ok := t.start[l]; !ok {
				t.start[l] = e.Seq
			}
		}
	}
	return t
}

// parent returns the layer around a layer, whether it was recorded or not: of its calls the one in
// which the layer ran.
func (t *tree) parent(layer string) string {
	up := label.Parent(layer)
	return t.callOf(layer, label.Name(up), up)
}

// callOf returns the call of a container in which a layer ran: the one of the same number if both
// were called equally often, else the first one that ended after the layer. other is returned for a
// container that was not recorded.
func (t *tree) callOf(layer, container, other string) string {
	calls := t.calls[container]
	switch len(calls) {
	case 0:
		return other
	case 1:
		return calls[0].layer
	}
	name, number := label.CutCall(layer)
	if len(t.calls[name]) == len(calls) && number <= len(calls) {
		return calls[number-1].layer
	}
	end := t.end[layer]
	i := sort.Search(len(calls)-1, func(i int) bool { return calls[i].done >= end })
	return calls[i].layer
}

// Start returns the execution index at which the first thing inside a recorded layer was recorded:
// containers are recorded after what is inside them, but get their inputs before.
func (t *tree) Start(layer string) int { return t.start[layer] }

// Container returns the innermost recorded layer around a layer; where none was recorded its parent
// by name, and for a root the layer itself.
func (t *tree) Container(layer string) string {
	for up := label.Parent(label.Name(layer)); up != ""; up = label.Parent(up) {
		if c := t.callOf(layer, up, ""); c != "" {
			return c
		}
	}
	return cmp.Or(label.Parent(layer), layer)
}

// Around lists what lies around a layer, the innermost first: of a recorded container the call in
// which the layer ran, of another one its name without a call.
func (t *tree) Around(layer string) (out []string) {
	for up := label.Parent(label.Name(layer)); up != ""; up = label.Parent(up) {
		out = append(out, t.callOf(layer, up, up))
	}
	return out
}

// Inside reports whether a layer ran inside another one. Of a container that was called several
// times only the call counts in which it ran.
func (t *tree) Inside(layer, outer string) bool {
	return label.Inside(layer, outer) && t.callOf(layer, label.Name(outer), outer) == outer
}
