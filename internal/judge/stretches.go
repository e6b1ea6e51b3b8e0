package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/tensor"
)

// stretches lists what is only written otherwise.
func (c *Comparison) stretches() (list []report.Stretch) {
	for _, r := range c.replays {
		for _, stretch := range r.result.Stretches {
			var ports []string
			text := ""
			for _, t := range stretch {
				for _, p := range r.ports[t] {
					if p.rewritten() && p.Step == r.ports[stretch[0]][0].Step {
						ports, text = append(ports, label.Join(p.Layer, p.Port)), p.allowance.text
					}
				}
			}
			if len(ports) > 0 {
				list = append(list, report.Stretch{Case: r.Case, Ports: ports, Text: text})
			}
		}
	}
	return list
}

// explained lists for each stretch whether it is another way to write the same: replay has shown it or,
// where it was opaque, its outputs are known maps of the golden's. A single one in a run may be a wrong
// record, unless it is a map that attention undoes by itself.
func (r *replayed) explained(c *Comparison) []bool {
	known := make([]bool, len(r.result.Stretches))
	sure := make([]bool, len(known))
	values := map[program.ID]bool{}
	for i, stretch := range r.result.Stretches {
		known[i], sure[i] = true, true
		for _, t := range stretch {
			l := r.result.Local[t]
			if l == nil || !r.inferred && (l.Opaque == "" || l.Tied) {
				continue
			}
			for _, p := range r.ports[t] {
				if p.Passes() || p.misfit() || !p.Judged() || !p.Golden.DType().IsFloat() {
					continue
				}
				m := c.mapOf(p)
				known[i] = known[i] && m.Kind != structure.MapNone
				sure[i] = m.Kind == structure.MapInterleaved || m.Kind == structure.MapFactor && (ofHeads(m.Factor) || r.wentOnWith(t, p) != nil)
				values[r.Ports[t].Value] = known[i]
			}
		}
	}
	several := 0
	for _, is := range values {
		if is {
			several++
		}
	}
	for i := range known {
		known[i] = known[i] && (sure[i] || several > 1)
	}
	return known
}

// captured returns the fault of a recording that holds another tensor than the model went on with: it
// is what is known to be another one, or the same tensor is right under another name. It is nil for a
// stretch that is only written otherwise.
func (r *replayed) captured(stretch []int, index map[*Port]int, held map[*Port]diagnose.Held, twins map[*Port]string) *localise.Fault {
	if r.alone { // what it would be compared with is made of it
		return nil
	}
	for _, t := range stretch {
		for _, p := range r.ports[t] {
			twin := ""
			if r.one(stretch) {
				twin = twins[p]
			}
			if text := r.recordedOtherwise(t, p, held[p].Text, twin); text != "" {
				return &localise.Fault{Index: index[p], Held: text}
			}
		}
	}
	return nil
}

// folded are values that hold the same bytes as another one each, which the reference's do not, while all after
// them is right. Where several values have such a twin, the candidate has folded the one into the other, as a norm
// into a convolution; where one has, or another record of the value is right, it is the recording that is wrong, and
// folded is nil.
func (r *replayed) folded(of map[*Port]string) map[program.ID]bool {
	twins, right, values := map[program.ID]bool{}, map[program.ID]bool{}, map[program.ID]bool{}
	for t, ports := range r.ports {
		for _, p := range ports {
			v := r.Ports[t].Value
			right[v] = right[v] || p.Judged() && p.Comparable() && p.Agrees
			twins[v] = twins[v] || p.Judged() && !p.Agrees && of[p] != ""
		}
	}
	maps.DeleteFunc(twins, func(v program.ID, is bool) bool { return !is || right[v] })
	if len(twins) < 2 {
		return nil
	}
	for _, s := range r.result.Stretches {
		if !slices.ContainsFunc(s, func(t int) bool { return !twins[r.Ports[t].Value] }) {
			values[r.Ports[s[0]].Value] = true
		}
	}
	return values
}

// recordedOtherwise says why the recording of an output is wrong; "" if nothing shows that. twin is what it
// holds the same bytes as.
func (r *replayed) recordedOtherwise(t int, p *Port, held, twin string) string {
	// Where the tensor was recorded again, and is as wrong, it is no matter of the recording.
	again := func(i int) bool {
		return i != t && slices.ContainsFunc(r.ports[i], func(q *Port) bool { return q.Step == p.Step && q.Comparable() && !q.Agrees })
	}
	switch {
	case !p.Judged() || p.Agrees || p.Actual == nil || p.misfit():
		return ""
	case slices.ContainsFunc(r.Records(r.Ports[t].Value), again):
		return ""
	case held != "":
		return held
	case slices.Contains([]structure.MapKind{structure.MapFactor, structure.MapOrder}, p.mapAlone().Kind):
		return "" // a scale that the candidate's layer leaves to its caller, or heads before tokens
	}
	const text = "what was recorded as %s of %s is not what the model went on with: "
	if q := r.wentOnWith(t, p); q != nil {
		return fmt.Sprintf(text+"the same tensor agrees as %s of %s", p.Port, p.Layer, q.Port, q.Layer)
	}
	if twin != "" {
		return fmt.Sprintf(text+"it holds the same bytes as %s, which the reference's does not", p.Port, p.Layer, twin)
	}
	return ""
}

// wentOnWith is a later record of the tensor of a port that agrees; nil for none.
func (r *replayed) wentOnWith(t int, p *Port) *Port {
	for _, i := range r.Records(r.Ports[t].Value) {
		for _, q := range r.ports[i] {
			if i > t && q.Step == p.Step && q.Agrees {
				return q
			}
		}
	}
	return nil
}

// one reports whether ports are labels of one value.
func (r *replayed) one(ports []int) bool {
	return !slices.ContainsFunc(ports, func(t int) bool { return r.Ports[t].Value != r.Ports[ports[0]].Value })
}

// mapOf returns the map that makes of a port's golden what the candidate has. A pass of few rows does not show it by
// itself: then those of all passes do.
func (c *Comparison) mapOf(p *Port) structure.Map {
	m := p.mapAlone()
	if m.Kind != structure.MapNone || !p.Comparable() || p.Golden.Len() >= fewRows*p.Golden.RowLen() {
		return m
	}
	var golden, actual []*tensor.Tensor
	for _, q := range c.Ports {
		if q.Case != p.Case || q.Layer != p.Layer || q.Port != p.Port || !q.Comparable() || q.misfit() || q.printed != nil {
			continue
		}
		rows := []int{q.Golden.Len() / max(q.Golden.RowLen(), 1), q.Golden.RowLen()}
		g, err := q.Golden.Reshape(rows...)
		a, err2 := q.Actual.Reshape(rows...)
		if err == nil && err2 == nil {
			golden, actual = append(golden, g), append(actual, a)
		}
	}
	if len(golden) < 2 {
		return m
	}
	g, err := tensor.Concat(0, golden...)
	a, err2 := tensor.Concat(0, actual...)
	if err != nil || err2 != nil {
		return m
	}
	return structure.Rewritten(g, a, p.Floor)
}

// excuse notes what is only written otherwise, and how, where its first tensor is a known map of the
// golden's.
func (c *Comparison) excuse(r *replayed, stretch []int) {
	first, how := r.Ports[stretch[0]], ""
	for _, p := range r.ports[stretch[0]] {
		if p.misfit() {
			p.allow(unjudged, "%s; it is judged by what is made of it", p.Problem)
			continue
		}
		if m := c.mapOf(p); m.Kind == structure.MapFactor && ofHeads(m.Factor) {
			how = fmt.Sprintf(" (1/√%.0f is folded in)", 1/(m.Factor*m.Factor))
		} else if m.Kind != structure.MapNone {
			how = " (" + m.Text + ")"
		}
	}
	for _, t := range stretch {
		for _, p := range r.ports[t] {
			if !p.Passes() {
				p.allow(rewritten, "written otherwise from %s on%s: %s", label.Join(first.Layer, first.Name), how, undone)
			}
		}
	}
}

// ofHeads reports whether a factor is 1/√d of the width d of a head.
func ofHeads(by float64) bool {
	d := 1 / (by * by)
	return by > 0 && d > 3.5 && d < 1025 && math.Abs(d-math.Round(d)) < 1e-4*d
}
