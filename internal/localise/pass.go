package localise

import (
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/trace"
)

// event is a value of the reference with what the comparison found of it.
type event struct {
	*trace.Event
	Record
}

func (e *event) differs() bool { return e.Joined && !e.Agrees }

// known reports whether the candidate has it and it is right.
func (e *event) known() bool { return e.Joined && e.Agrees }

// pass is one forward pass.
type pass struct {
	*trace.Pass
	run    *Run
	events []event            // of trace.Pass.Events
	parent map[string]bool    // names, without call, of layers in which the candidate recorded an output of another
	sides  [2]map[string]side // outputs and inputs, by layer
}

// side is what the outputs of a layer are together, or its inputs.
type side struct{ joined, wrong int }

func newPass(r *Run, t *trace.Pass) *pass {
	p := &pass{Pass: t, run: r, events: make([]event, len(t.Events)), parent: map[string]bool{},
		sides: [2]map[string]side{{}, {}}}
	for i := range t.Events {
		e := &p.events[i]
		e.Event, e.Record = &t.Events[i], r.Records[t.Events[i].Index]
		if !e.Joined {
			continue
		}
		of := p.sides[0]
		if e.Input {
			of = p.sides[1]
		}
		s := of[e.Layer]
		s.joined++
		if !e.Agrees {
			s.wrong++
		}
		of[e.Layer] = s
		for up := label.Parent(label.Name(e.Layer)); up != "" && !e.Input; up = label.Parent(up) {
			p.parent[up] = true
		}
	}
	return p
}

// consumer returns the innermost layer that takes a model's differing input, or what the model's
// own code makes of it, before anything wrong comes out of a layer.
func (p *pass) consumer(i int) (layer, port string) {
	cur := &p.events[i]
	for j := i + 1; j < len(p.events); j++ {
		e := &p.events[j]
		if !e.Input && e.differs() {
			break
		}
		same := e.Same == cur.Same && e.Len == cur.Len && (e.Same > 0 || e.Port == cur.Port)
		if e.Input && e.differs() && p.Inside(e.Layer, cur.Layer) && (same || label.IsRoot(cur.Layer)) {
			cur = e
		}
	}
	return cur.Layer, cur.Port
}

func (p *pass) hasJoinedChild(layer string) bool {
	return p.parent[label.Name(layer)]
}

// inputs lists the inputs of a layer that the reference recorded.
func (p *pass) inputs(layer string) []*event { return p.ports(layer, true) }

// outputs lists the outputs of a layer that the reference recorded.
func (p *pass) outputs(layer string) []*event { return p.ports(layer, false) }

func (p *pass) ports(layer string, inputs bool) (out []*event) {
	for _, i := range p.Ports(layer) {
		if e := &p.events[i]; e.Input == inputs {
			out = append(out, e)
		}
	}
	return out
}

// right reports whether a layer has outputs that the candidate recorded, and all of them agree.
func (p *pass) right(layer string) bool {
	out := p.sides[0][layer]
	return out.joined > 0 && out.wrong == 0
}
