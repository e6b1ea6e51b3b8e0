package localise

import (
	"fmt"
	"slices"

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
	events []event // of trace.Pass.Events
	index
	parent map[string]bool  // names, without call, of layers in which the candidate recorded an output of another
	alikes map[string][]int // once blocks was called
	excess map[int]float64  // what Run.Excess told, by event
	noise  []int            // events that disagree, but with no more than came in
}

func newPass(r *Run, t *trace.Pass) *pass {
	p := &pass{Pass: t, run: r, events: make([]event, len(t.Events)), parent: map[string]bool{}, excess: map[int]float64{}}
	for i := range t.Events {
		e := &p.events[i]
		e.Event, e.Record = &t.Events[i], r.Records[t.Events[i].Index]
		if !e.Joined || e.Input {
			continue
		}
		for up := label.Parent(label.Name(e.Layer)); up != ""; up = label.Parent(up) {
			p.parent[up] = true
		}
	}
	p.index = newIndex(p)
	return p
}

// first is the verdict of this pass without its case and step; nil if nothing that disagrees is an
// error.
func (p *pass) first() *Verdict {
	var capture, drift *Verdict
	var strays []string
	for i := range p.events {
		e := &p.events[i]
		switch {
		case !e.differs():
		case p.stray(i):
			strays = append(strays, fmt.Sprintf("%s of %s differs, but nothing that follows from it does: it was left out", e.Port, e.Layer))
		default:
			if e.Held != "" {
				if capture == nil || e.Shown && !p.events[capture.at].Shown {
					capture = &Verdict{Kind: KindCapture, Layer: e.Layer, Port: e.Port, Proven: true, at: i, Text: e.Held}
				}
				continue
			}
			if why := p.captured(i); why != "" {
				if capture == nil {
					capture = &Verdict{Kind: KindCapture, Layer: e.Layer, Port: e.Port, Proven: true, at: i,
						Text: fmt.Sprintf("what was recorded as %s of %s is not what the model went on with: %s", e.Port, e.Layer, why)}
				}
				continue
			}
			if p.again(i) {
				p.noise = append(p.noise, i)
				p.excuse(e)
				continue
			}
			v := p.verdict(i, drift != nil)
			if v == nil {
				p.noise = append(p.noise, i)
				if p.excuse(e); drift == nil { // it is noise: what follows from it is too
					drift = p.accumulated(i)
				}
				continue
			}
			if drift != nil {
				v.Evidence = append(v.Evidence, "what differs before it is no more than rounding makes")
			}
			if capture != nil {
				v.Evidence = append(v.Evidence, capture.Text)
			}
			v.Evidence = append(v.Evidence, strays...)
			return v
		}
	}
	if capture != nil {
		return capture
	}
	return drift
}

// again reports whether an output is a tensor that was found to be noise already, put out again by
// the layer around.
func (p *pass) again(i int) bool {
	j := p.Producer(i)
	return j >= 0 && !p.events[i].Input && slices.Contains(p.noise, j) && p.events[i].Error <= jump*p.events[j].Error
}

// verdict tells the kind of a divergence; nil if the error is no more than came in and has no
// source. after says that there was such an error before.
func (p *pass) verdict(i int, after bool) *Verdict {
	e := &p.events[i]
	if e.Input && p.modelInput(i) {
		v := &Verdict{Kind: KindInput, Proven: true, at: i}
		v.Layer, v.Port = p.consumer(i)
		v.Text = fmt.Sprintf("the two runs were not given the same input: %s of %s differs", e.Port, e.Layer)
		return v
	}
	if p.weak(i, after) {
		j := -1
		if !after {
			j = p.source(i)
		}
		if j < 0 {
			return nil
		}
		i, e = j, &p.events[j]
	}
	if v := p.spread(i); v != nil {
		return v
	}
	if rivals := p.rivals(i); len(rivals) > 0 {
		return p.unplaced(i, rivals)
	}
	v := &Verdict{Layer: e.Layer, Port: e.Port, at: i}
	switch {
	case e.Input:
		v.between(p, p.around(i), e.Layer, i)
	case p.hasJoinedChild(e.Layer):
		v.between(p, e.Layer, "", i)
	default:
		v.local(p, i)
	}
	v.rounded(p, i)
	v.interaction(p, i)
	v.Frontier = p.frontier(v)
	return v
}

// modelInput reports whether a differing input came from outside: an input of the root, or a tensor
// that holds the same as one. In a dump that does not show the root's inputs, ids and positions are
// believed to.
func (p *pass) modelInput(i int) bool {
	e := &p.events[i]
	if label.IsRoot(e.Layer) {
		return true
	}
	if e.Same > 0 && p.asked.missing[e.Same] {
		return true
	}
	return e.Integer && !p.asked.joined && (e.Same == 0 || !p.asked.any)
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

// enclosing returns the innermost container of a layer of which the candidate recorded an output;
// "" if there is none.
func (p *pass) enclosing(layer string) string {
	for c := p.Container(layer); c != layer && c != ""; {
		if p.outputsOf(c).joined > 0 {
			return c
		}
		up := p.Container(c)
		if up == c {
			break
		}
		c = up
	}
	return ""
}

// right reports whether a layer has outputs that the candidate recorded, and all of them agree.
func (p *pass) right(layer string) bool {
	out := p.outputsOf(layer)
	return out.joined > 0 && out.wrong == 0
}

// stray reports whether an input differs although the layer that takes it gives the right output,
// as does the one around it, and no other record of the same tensor differs. Inputs without names
// are paired by shape and order, and a pair may be wrong.
func (p *pass) stray(i int) bool {
	e := &p.events[i]
	if !e.Input || label.IsRoot(e.Layer) || e.Integer || !p.right(e.Layer) {
		return false
	}
	if c := p.enclosing(e.Layer); c == "" || !p.right(c) {
		return false
	}
	return e.Same == 0 || p.wrong[e.Same] == 1 // itself
}
