package localise

import "fmt"

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
		if !e.rightAlone() {
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

// apart is how many times further off a port has to be in the model than on golden inputs, to be right there: in 16 bits
// the limits of both are wide.
const apart = 2

// rightAlone reports whether an output is right on golden inputs, and clearly better than in the model.
func (e *event) rightAlone() bool {
	return e.Alone != nil && e.Alone.Agrees && apart*e.Alone.Error <= e.Error
}

// rightAlone reports whether the code of an interval gave the right result on golden inputs, seen at
// the container's end.
func (p *pass) rightAlone(v *Verdict, e *event) bool {
	if v.Before == "" {
		return e.rightAlone()
	}
	n := 0
	for _, o := range p.outputs(v.Layer) {
		if o.Alone != nil {
			if !o.Alone.Agrees || !o.Agrees && !o.rightAlone() {
				return false
			}
			n++
		}
	}
	return n > 0 && !p.right(v.Layer)
}
