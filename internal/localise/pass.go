package localise

import (
	"fmt"
	"sort"
	"strings"
)

// event is a record at the time when its value existed.
type event struct {
	Record
	role  Role
	at    int // execution index; an input exists before anything inside its layer
	depth int
}

func (e *event) differs() bool { return e.Joined && !e.Agrees }

// known: the candidate has it, and it is right.
func (e *event) known() bool { return e.Joined && e.Agrees }

// pass is one forward pass: its events in the order in which the values existed.
type pass struct {
	*tree
	events []event
	nested bool
	same   map[int][]int    // events by Record.Same
	layer  map[string][]int // events by layer
	asked  []int            // the inputs of the root
	alikes map[string][]int // once blocks was called
	parent map[string]bool  // names, without call, of layers in which the candidate recorded an output of another

	measure   func(in, out Record) float64     // Run.Excess
	unordered func(caseName, a, b string) bool // Run.Unordered
	excess    map[int]float64                  // what it told, by event
	noise     []int                            // events that disagree, but with no more than came in
}

func newPass(records []Record, nested bool) *pass {
	p := &pass{tree: newTree(records), nested: nested, same: map[int][]int{}, layer: map[string][]int{}, parent: map[string]bool{}}
	for _, r := range records {
		e := event{Record: r, role: RoleOf(r.Port), at: r.Seq, depth: strings.Count(r.Layer, ".")}
		if e.role == Input {
			e.at = p.start(r.Layer)
		}
		p.events = append(p.events, e)
	}
	sort.SliceStable(p.events, func(i, j int) bool {
		a, b := &p.events[i], &p.events[j]
		switch {
		case a.at != b.at:
			return a.at < b.at
		case a.role != b.role:
			return a.role < b.role
		case a.role == Input && a.depth != b.depth:
			return a.depth < b.depth // the outer layer had it first
		}
		return a.Seq < b.Seq
	})
	for i := range p.events {
		e := &p.events[i]
		p.layer[e.Layer] = append(p.layer[e.Layer], i)
		if e.Same > 0 {
			p.same[e.Same] = append(p.same[e.Same], i)
		}
		if e.role == Input && isRoot(e.Layer) {
			p.asked = append(p.asked, i)
		}
		if !e.Joined || e.role == Input {
			continue
		}
		name, _ := cutCall(e.Layer)
		for at := strings.LastIndexByte(name, '.'); at >= 0; at = strings.LastIndexByte(name, '.') {
			name = name[:at]
			p.parent[name] = true
		}
	}
	return p
}

// first is the verdict of this pass without its case and step; nil if nothing that disagrees is an error.
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
			if why := p.captured(i); why != "" {
				if capture == nil {
					capture = &Verdict{Kind: KindCapture, Layer: e.Layer, Port: e.Port, Proven: true, at: i,
						Text: fmt.Sprintf("what was recorded as %s of %s is not what the model went on with: %s", e.Port, e.Layer, why)}
				}
				continue
			}
			v := p.verdict(i, drift != nil)
			if v == nil {
				p.noise = append(p.noise, i)
				if e.Agrees = true; drift == nil { // it is noise: what follows from it is too
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

// verdict tells the kind of a divergence; nil if the error is no more than came in, and came from nowhere. after says that there was such a one.
func (p *pass) verdict(i int, after bool) *Verdict {
	e := &p.events[i]
	if e.role == Input && p.modelInput(i) {
		v := &Verdict{Kind: KindInput, Proven: true, at: i}
		v.Layer, v.Port = p.consumer(i)
		v.Text = fmt.Sprintf("the two runs were not asked the same: %s of %s differs", e.Port, e.Layer)
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
	case e.role == Input:
		v.between(p, p.around(i), e.Layer, i)
	case p.hasJoinedChild(e.Layer):
		v.between(p, e.Layer, "", i)
	default:
		v.local(p, i)
	}
	v.interaction(p, i)
	v.Frontier = p.frontier(v)
	return v
}

// modelInput reports whether a differing input came from outside: an input of the root, or a tensor that holds the same as one. In a dump
// that does not show the root's inputs, ids and positions are believed to.
func (p *pass) modelInput(i int) bool {
	e := &p.events[i]
	if isRoot(e.Layer) {
		return true
	}
	recorded, joined := false, false
	for _, j := range p.asked {
		o := &p.events[j]
		if e.Same > 0 && o.Same == e.Same && !o.Joined {
			return true
		}
		recorded, joined = true, joined || o.Joined
	}
	return e.Integer && !joined && (e.Same == 0 || !recorded)
}

// consumer gives the innermost layer that takes a model's differing input, or what the model's own code makes of it, before anything wrong
// comes out of a layer.
func (p *pass) consumer(i int) (layer, port string) {
	cur := &p.events[i]
	for j := i + 1; j < len(p.events); j++ {
		e := &p.events[j]
		if e.role == Output && e.differs() {
			break
		}
		same := e.Same == cur.Same && e.Len == cur.Len && (e.Same > 0 || e.Port == cur.Port)
		if e.role == Input && e.differs() && inside(e.Layer, cur.Layer) && (same || isRoot(cur.Layer)) {
			cur = e
		}
	}
	return cur.Layer, cur.Port
}

func (p *pass) hasJoinedChild(layer string) bool {
	name, _ := cutCall(layer)
	return p.parent[name]
}

// inputs gives the inputs of a layer that the reference recorded.
func (p *pass) inputs(layer string) (out []*event) { return p.ports(layer, Input) }

// outputs gives the outputs of a layer that the reference recorded.
func (p *pass) outputs(layer string) (out []*event) { return p.ports(layer, Output) }

func (p *pass) ports(layer string, role Role) (out []*event) {
	for _, i := range p.layer[layer] {
		if e := &p.events[i]; e.role == role {
			out = append(out, e)
		}
	}
	return out
}

// enclosing gives the innermost container of a layer of which the candidate recorded an output; "" if there is none.
func (p *pass) enclosing(layer string) string {
	for c := p.container(layer); c != layer && c != ""; {
		for _, o := range p.outputs(c) {
			if o.Joined {
				return c
			}
		}
		up := p.container(c)
		if up == c {
			break
		}
		c = up
	}
	return ""
}

// right reports whether a layer has outputs that the candidate recorded, and all of them agree.
func (p *pass) right(layer string) bool {
	n := 0
	for _, o := range p.outputs(layer) {
		if o.Joined {
			if !o.Agrees {
				return false
			}
			n++
		}
	}
	return n > 0
}

// stray: an input that differs although the layer that takes it gives the right output, as does the one around it, and no other record of the
// same tensor differs. Inputs are paired by their shape and order where they have no names, and a pair may be none.
func (p *pass) stray(i int) bool {
	e := &p.events[i]
	if e.role != Input || isRoot(e.Layer) || e.Integer || !p.right(e.Layer) {
		return false
	}
	if c := p.enclosing(e.Layer); c == "" || !p.right(c) {
		return false
	}
	for _, j := range p.same[e.Same] {
		if j != i && p.events[j].differs() {
			return false
		}
	}
	return true
}

func isRoot(layer string) bool { return !strings.Contains(layer, ".") }
