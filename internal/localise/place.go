package localise

import (
	"fmt"
	"strings"
)

// around returns the container whose code makes the input of event i. A tensor that the layers
// around took in unchanged was made outside of them, if the candidate did not record it there.
func (p *pass) around(i int) string {
	layer := p.events[i].Layer
	for {
		c := p.Container(layer)
		passed := false
		for _, o := range p.inputs(c) {
			if c != layer && o.Same > 0 && o.Same == p.events[i].Same {
				passed = !o.Joined
				break
			}
		}
		if !passed {
			return c
		}
		layer = c
	}
}

// begin returns the event at which the interval of a container's code begins that made event i: an
// output inside of it, −1 for the container's beginning.
func (p *pass) begin(container string, i int) int {
	if j := p.Producer(i); j >= 0 && p.events[i].Input && p.events[j].Joined && p.Inside(p.events[j].Layer, container) {
		return j
	}
	for j := i - 1; j >= 0; j-- {
		if e := &p.events[j]; e.Joined && !e.Input && p.Inside(e.Layer, container) {
			return j
		}
	}
	return -1
}

// between sets a verdict: the code between two matched layers made the value, no compared one did.
func (v *Verdict) between(p *pass, container, before string, i int) {
	v.Kind, v.Layer, v.Before = KindBetween, container, before
	after := p.begin(container, i)
	if after >= 0 {
		v.After = p.events[after].Layer
	}
	v.Gaps = p.missed(container, after, i)
	calls := ""
	if n := len(v.Gaps); n > 0 {
		calls = strings.Join(v.Gaps[:min(3, n)], ", ")
		if n > 3 {
			calls += fmt.Sprintf(" and %d more", n-3)
		}
		calls = fmt.Sprintf(" (the reference calls %s there, which the candidate did not record under that name)", calls)
	}
	if p.open(container, after, i) {
		v.opened(p, i)
		what := "what " + container + " returns"
		if before != "" {
			what = "what " + before + " is given"
		}
		v.Text = fmt.Sprintf("%s: %s is the first that is wrong, and what it is made of was not compared%s", v.Place, what, calls)
		return
	}
	v.Proven = true
	from, to := "its beginning", "its end"
	if v.After != "" {
		from = v.After
	}
	if before != "" {
		to = before
	}
	v.Text = fmt.Sprintf("the code of %s between %s and %s computes something else; the layers before it agree%s", container, from, to, calls)
}

// local sets a verdict: a layer without matched children makes a wrong output of right inputs.
func (v *Verdict) local(p *pass, i int) {
	v.Kind = KindLocal
	compared := 0
	for _, e := range p.inputs(v.Layer) {
		if e.Joined {
			compared++
		} else {
			v.Gaps = append(v.Gaps, e.Port)
		}
	}
	alone := p.events[i].Alone
	missing := "no input of it was compared"
	if compared > 0 {
		missing = "its inputs " + strings.Join(v.Gaps, ", ") + " were not compared"
	}
	switch {
	case compared > 0 && len(v.Gaps) == 0:
		v.Proven = true
		v.Text = fmt.Sprintf("%s gets the right inputs and computes something else", v.Layer)
	case alone != nil && !alone.Agrees:
		v.Proven, v.Open = true, true
		v.Text = fmt.Sprintf("%s gives the first wrong output, and a wrong one on the golden inputs too", v.Layer)
	case alone != nil:
		// It is right on what it should have got, so it got something else.
		layer, gaps := v.Layer, v.Gaps
		v.between(p, p.Container(layer), layer, i)
		v.opened(p, i)
		v.Gaps = gaps
		v.Text = fmt.Sprintf("%s gives the first wrong output, but the right one on the golden inputs: what %s gives it is wrong, of which %s", layer, v.Layer, missing)
	default:
		v.opened(p, i)
		v.Text = fmt.Sprintf("%s: %s gives the first wrong output, and %s", v.Place, v.Layer, missing)
	}
}

// interaction corrects a verdict: what is wrong in the model although everything that it was given
// is right, and right when it runs on the same inputs, is not wrong by itself. An input that the
// candidate did not record leaves the standard run's verdict as it is.
func (v *Verdict) interaction(p *pass, i int) {
	e := &p.events[i]
	if !v.Proven {
		return
	}
	switch v.Kind {
	case KindLocal:
		if e.Alone == nil || !e.Alone.Agrees {
			return
		}
	case KindBetween:
		if !p.rightAlone(v, e) {
			return
		}
	}
	inputs := p.inputs(v.Layer)
	for _, in := range inputs {
		if !in.known() {
			if v.Kind == KindBetween {
				v.Evidence = append(v.Evidence, fmt.Sprintf("%s is right on the golden inputs, but its %s was not compared", v.Layer, in.Port))
			}
			return
		}
	}
	if len(inputs) == 0 {
		return
	}
	v.Kind, v.After, v.Before, v.Gaps = KindInteraction, "", "", nil
	v.Text = fmt.Sprintf("%s gets the right inputs and is wrong in the model, but right when it runs on the golden inputs", v.Layer)
}

// rightAlone reports whether the code of an interval gave the right result on golden inputs: seen
// at the container's end, or in a nested run at the input that the code makes.
func (p *pass) rightAlone(v *Verdict, e *event) bool {
	if p.run.Nested || v.Before == "" {
		return e.Alone != nil && e.Alone.Agrees
	}
	n := 0
	for _, o := range p.outputs(v.Layer) {
		if o.Alone != nil {
			if !o.Alone.Agrees {
				return false
			}
			n++
		}
	}
	return n > 0 && !p.right(v.Layer)
}
