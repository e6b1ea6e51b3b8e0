package localise

import (
	"fmt"
	"slices"
)

// interaction corrects a verdict: what is wrong in the model although everything that it was given
// is right, and right when it runs on the same inputs, is not wrong by itself. An input that the
// candidate did not record leaves the standard run's verdict as it is.
func (v *Verdict) interaction(p *Pass, e *Event) {
	inputs := p.of(v.Layer, true)
	unknown := slices.ContainsFunc(inputs, func(in *Event) bool { return !in.known() })
	if !v.Proven || len(inputs) == 0 || unknown || !p.rightAlone(v, e) {
		return
	}
	v.Kind, v.After, v.Before, v.Gaps = KindInteraction, "", "", nil
	v.Text = fmt.Sprintf("%s gets the right inputs and is wrong in the model, but right when it runs on the golden inputs", v.Layer)
}

// apart is how many times further off a port has to be in the model than on golden inputs, to be right there: in 16 bits
// the limits of both are wide.
const apart = 2

// rightAlone reports whether an output is right on golden inputs, and clearly better than in the model.
func (e *Event) rightAlone() bool {
	return e.Alone != nil && e.Alone.Agrees && apart*e.Alone.Error <= e.Error
}

// rightAlone reports whether the code of a place gave the right result on golden inputs, seen at the
// container's end where the place is an interval before another layer.
func (p *Pass) rightAlone(v *Verdict, e *Event) bool {
	if v.Before == "" {
		return e.rightAlone()
	}
	alone, joined, wrong := false, false, false
	for _, o := range p.of(v.Layer, false) {
		joined, wrong = joined || o.Joined, wrong || o.differs()
		if o.Alone == nil {
			continue
		}
		if !o.Alone.Agrees || !o.Agrees && !o.rightAlone() {
			return false
		}
		alone = true
	}
	return alone && (wrong || !joined)
}
