package localise

import (
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// frontier lists the innermost layers that get right inputs and return wrong outputs. A layer of
// which no input was compared counts only if nothing inside it got a wrong one, or if it is the
// place of a local verdict. What is right on golden inputs made no error; what is wrong on them
// made one, whatever it got.
func (p *pass) frontier(v *Verdict) []string {
	type state struct{ in, inBad, outBad, alone, aloneBad bool }
	states := map[string]*state{}
	var order []string
	of := func(layer string) *state {
		s := states[layer]
		if s == nil {
			s = &state{}
			states[layer] = s
			order = append(order, layer)
		}
		return s
	}
	for i := range p.events {
		e := &p.events[i]
		s := of(e.Layer)
		if e.Joined && e.Input {
			s.in = true
		}
		if e.differs() {
			s.inBad = s.inBad || e.Input
			s.outBad = s.outBad || !e.Input
		}
		if e.Alone == nil {
			continue
		}
		if e.Input { // what the code around computed for it
			c := of(p.Container(e.Layer))
			c.aloneBad = c.aloneBad || !e.Alone.Agrees && e.differs()
			continue
		}
		s.alone = true
		s.aloneBad = s.aloneBad || !e.Alone.Agrees && e.differs()
	}
	inside := map[*state]state{} // what is known of the inputs of all layers inside of one
	for o, inner := range states {
		if !inner.in {
			continue
		}
		for _, l := range p.Around(o) {
			if s := states[l]; s != nil && !s.in && s.outBad {
				inside[s] = state{in: true, inBad: inside[s].inBad || inner.inBad}
			}
		}
	}
	for s, inner := range inside {
		s.in, s.inBad = true, s.inBad || inner.inBad
	}
	var out []string
	for _, l := range order {
		s := states[l]
		switch {
		case l == v.Layer:
			if s.outBad {
				out = append(out, l)
			}
		case s.aloneBad:
			out = append(out, l)
		case s.alone && !p.run.Nested:
		case s.outBad && !s.inBad && s.in:
			out = append(out, l)
		}
	}
	outer := map[string]bool{}
	for _, o := range out {
		for _, l := range p.Around(o) {
			outer[l] = true
		}
	}
	return slices.DeleteFunc(out, func(l string) bool { return outer[p.Listed(l)] })
}

// inherited notes for each layer of this pass that only passes on an error where that comes from.
// The place of the verdict, the frontier and the model's own output are never among them.
func (p *pass) inherited(v *Verdict, blame map[passLayer]string) {
	if v.Kind == KindCapture || v.Kind == KindDrift || v.Kind == KindUnordered {
		return
	}
	own := append([]string{v.Layer}, v.Frontier...)
	if v.Before != "" {
		own = append(own, v.Before)
	}
	isOwn, holds := map[string]bool{}, map[string]string{} // layer → the first of own inside of it
	for _, l := range own {
		isOwn[l] = true
		for _, around := range p.Around(l) {
			if holds[around] == "" {
				holds[around] = l
			}
		}
	}
	for i := range p.events {
		e := &p.events[i]
		if e.Input || !e.differs() || label.IsRoot(e.Layer) || isOwn[e.Layer] {
			continue
		}
		from, within := holds[e.Layer]
		if !within {
			from = v.Layer
		}
		switch {
		case within:
		case e.Alone != nil:
			if !e.Alone.Agrees {
				continue
			}
		case i < v.at || !p.passesOn(i):
			continue
		}
		blame[passLayer{v.Case, v.Step, e.Layer}] = from
	}
}

// passesOn reports, without a run on golden inputs, whether a layer got something wrong and is not
// off by much more than that.
func (p *pass) passesOn(i int) bool {
	in := p.inputsOf(p.events[i].Layer)
	return in.joined == 0 || in.wrong > 0 && !p.made(i, sure)
}
