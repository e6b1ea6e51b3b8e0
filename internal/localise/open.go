package localise

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// opened sets an interval that the records leave open: from the last output before event i that
// agrees up to a layer's output, or its input if before is that layer.
func (v *Verdict) opened(p *pass, i int) {
	v.Open, v.Proven, v.After = true, false, ""
	layer := p.events[i].Layer
	for j := i - 1; j >= 0 && v.After == ""; j-- {
		if e := &p.events[j]; !e.Input && e.known() && e.Layer != layer && (!p.run.Unordered[p.Case] || label.Ordered(e.Layer, layer)) {
			v.After = e.Layer
		}
	}
	switch {
	case v.Before == "" && v.After == "":
		v.Place = fmt.Sprintf("in %s, or before it", v.Layer)
	case v.Before == "":
		v.Place = fmt.Sprintf("in %s, or between %s and %s", v.Layer, v.After, v.Layer)
	case v.After == "":
		v.Place = "before " + v.Before
	default:
		v.Place = fmt.Sprintf("between %s and %s", v.After, v.Before)
	}
}

// rounded corrects a verdict in 16 bits: an error that the roundings of layers that the candidate did
// not record may add up to does not show that the code around them is wrong.
func (v *Verdict) rounded(p *pass, i int) {
	e := &p.events[i]
	if e.Alone != nil || e.Epsilon < finest || e.Error > slight*e.Epsilon {
		return
	}
	after := p.begin(v.Layer, i)
	if v.Kind == KindLocal {
		after = p.Since(p.Start(v.Layer)) - 1
	}
	calls := p.missed(v.Layer, after, i)
	if len(calls) == 0 {
		return
	}
	if v.Place == "" {
		v.Place = "in " + v.Layer
	}
	v.Open, v.Proven, v.Gaps = true, false, calls
	v.Text = fmt.Sprintf("%s: %s of %s is off by no more than roundings of 16 bits may add up to in the %d layers that the candidate did not record there: "+
		"record them to tell whether one is wrong", v.Place, e.Port, e.Layer, len(calls))
}

// Closed reports whether all that an output of a layer is made of was recorded on both sides, in the
// forward pass of the verdict.
func (v *Verdict) Closed(layer, port string) bool {
	p := v.pass
	for _, i := range p.Ports(layer) {
		if e := &p.events[i]; e.Port == port && p.hasJoinedChild(layer) {
			return !p.open(layer, p.begin(layer, i), i)
		}
	}
	inputs := p.inputs(layer)
	return len(inputs) > 0 && !slices.ContainsFunc(inputs, func(in *event) bool { return !in.Joined })
}

// open reports whether the records do not tell what event i was made of: where the interval before
// it begins with its container, that one's inputs, and what the layers took that ran in it and of
// which the candidate recorded nothing. after is the event at its beginning, −1 for the container's.
func (p *pass) open(container string, after, i int) bool {
	if p.handed(i) {
		return false
	}
	return after < 0 && !p.given(container) || slices.ContainsFunc(p.missed(container, after, i), func(layer string) bool {
		return p.reaches(layer, i) && !p.given(layer)
	})
}

// handed reports whether a layer was given the very bytes that another one put out: what the
// reference calls between the two, the candidate does not.
func (p *pass) handed(i int) bool {
	e := &p.events[i]
	return e.Input && e.Twin != "" && p.right(e.Twin)
}

// missed lists the layers that ran between two events of a container, of which the candidate
// recorded no output.
func (p *pass) missed(container string, after, i int) (layers []string) {
	seen := map[string]bool{}
	for j := after + 1; j < i; j++ {
		e := &p.events[j]
		if !e.Joined && !e.Input && !seen[e.Layer] && p.Inside(e.Layer, container) {
			seen[e.Layer] = true
			layers = append(layers, e.Layer)
		}
	}
	return layers
}

// given reports whether the reference recorded what a layer took, and the candidate has all of it
// right, under whatever name.
func (p *pass) given(layer string) bool {
	n := 0
	for _, i := range p.Ports(layer) {
		if p.events[i].Input {
			if n++; !p.has(i) {
				return false
			}
		}
	}
	return n > 0
}

// has reports whether the candidate recorded the value of event i, and has it right wherever it did.
func (p *pass) has(i int) bool {
	found := false
	for _, j := range append([]int{i}, p.Copies(i)...) {
		if p.events[j].differs() {
			return false
		}
		found = found || p.events[j].Joined
	}
	return found
}

// reaches reports whether an output of a layer may have a part in event i: it holds the same, or no
// layer is known to have taken it.
func (p *pass) reaches(layer string, i int) bool {
	return slices.ContainsFunc(p.Ports(layer), func(j int) bool {
		copies := p.Copies(j)
		return !p.events[j].Input && (slices.Contains(copies, i) ||
			!slices.ContainsFunc(copies, func(k int) bool { return p.events[k].Input }))
	})
}
