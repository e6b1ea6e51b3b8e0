package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
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
func (r *replayed) explained() []bool {
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
				m := p.mapOf()
				known[i] = known[i] && m.Kind != compare.MapNone
				sure[i] = m.Kind == compare.MapInterleaved || m.Kind == compare.MapFactor && (ofHeads(m.Factor) || r.wentOnWith(t, p) != nil)
				values[r.Ports[t].Value] = known[i]
			}
		}
	}
	maps.DeleteFunc(values, func(_ program.ID, is bool) bool { return !is })
	for i := range known {
		known[i] = known[i] && (sure[i] || len(values) > 1)
	}
	return known
}

// returned reports whether a stretch ends in what the model returns, and that fails: no one undoes it, whatever else is
// made of it, as a pooled row. The model is the layer in which all others lie; a cache is the engine's own.
func (r *replayed) returned(stretch []int) bool {
	return slices.ContainsFunc(stretch, func(t int) bool {
		at := r.Ports[t]
		beside := func(q program.Port) bool { return !label.Within(q.Layer, label.Name(at.Layer)) }
		return !at.Input && !label.IsCache(at.Name) && !slices.ContainsFunc(r.Ports, beside) &&
			slices.ContainsFunc(r.ports[t], func(p *Port) bool { return p.Comparable() && !p.misfit() && !p.Passes() })
	})
}

// captured returns the fault of a recording that holds another tensor than the model went on with: it
// is what is known to be another one, or the same tensor is right under another name. It is nil for a
// stretch that is only written otherwise.
func (r *replayed) captured(stretch []int, folded bool) *localise.Fault {
	if r.k.alone { // what it would be compared with is made of it
		return nil
	}
	for _, t := range stretch {
		for _, p := range r.ports[t] {
			if text := r.recordedOtherwise(t, p, !folded && r.one(stretch)); text != "" {
				return &localise.Fault{Index: p.at, Held: text}
			}
		}
	}
	return nil
}

// folded are values that hold the same bytes as another one each, which the reference's do not, while all after
// them is right. Where several values have such a twin, the candidate has folded the one into the other, as a norm
// into a convolution; where one has, or another record of the value is right, it is the recording that is wrong, and
// folded is nil.
func (r *replayed) folded() map[program.ID]bool {
	twins, right, values := map[program.ID]bool{}, map[program.ID]bool{}, map[program.ID]bool{}
	for t, ports := range r.ports {
		for _, p := range ports {
			v := r.Ports[t].Value
			right[v] = right[v] || p.Judged() && p.Comparable() && p.Agrees
			twins[v] = twins[v] || p.Judged() && !p.Agrees && p.twin != ""
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

// recordedOtherwise says why the recording of an output is wrong; "" if nothing shows that. With twins, that it
// holds the same bytes as another one does.
func (r *replayed) recordedOtherwise(t int, p *Port, twins bool) string {
	// Where the tensor was recorded again, and is as wrong, it is no matter of the recording.
	again := func(i int) bool {
		return i != t && slices.ContainsFunc(r.ports[i], func(q *Port) bool { return q.Step == p.Step && q.Comparable() && !q.Agrees })
	}
	switch {
	case !p.Judged() || p.Agrees || p.Actual == nil || p.misfit():
		return ""
	case slices.ContainsFunc(r.Records(r.Ports[t].Value), again):
		return ""
	case p.held != "":
		return p.held
	case slices.Contains([]compare.MapKind{compare.MapFactor, compare.MapOrder}, p.mapAlone().Kind):
		return "" // a scale that the candidate's layer leaves to its caller, or heads before tokens
	}
	const text = "what was recorded as %s of %s is not what the model went on with: "
	if q := r.wentOnWith(t, p); q != nil {
		return fmt.Sprintf(text+"the same tensor agrees as %s of %s", p.Port, p.Layer, q.Port, q.Layer)
	}
	if twins && p.twin != "" {
		return fmt.Sprintf(text+"it holds the same bytes as %s, which the reference's does not", p.Port, p.Layer, p.twin)
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
func (p *Port) mapOf() compare.Map {
	m := p.mapAlone()
	if m.Kind != compare.MapNone || !p.Comparable() || p.Golden.Len() >= fewRows*p.Golden.RowLen() {
		return m
	}
	var golden, actual []*tensor.Tensor
	for _, q := range p.passes {
		if !q.Comparable() || q.misfit() || q.printed != nil {
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
	return compare.Rewritten(g, a, p.Floor)
}

// excuse notes what is only written otherwise, and how, where its first tensor is a known map of the
// golden's.
func (r *replayed) excuse(stretch []int) {
	first, how := r.Ports[stretch[0]], ""
	for _, p := range r.ports[stretch[0]] {
		if p.misfit() {
			p.allow(unjudged, "%s; it is judged by what is made of it", p.Problem)
			continue
		}
		if m := p.mapOf(); m.Kind == compare.MapFactor && ofHeads(m.Factor) {
			how = fmt.Sprintf(" (1/√%.0f is folded in)", 1/(m.Factor*m.Factor))
		} else if m.Kind != compare.MapNone {
			how = " (" + m.Text + ")"
		}
	}
	for _, t := range stretch {
		for _, p := range r.ports[t] {
			if !p.Passes() {
				p.allow(rewritten, "written otherwise from %s on%s: what is made of it agrees, in every forward pass: "+
					"another way to write the same", label.Join(first.Layer, first.Name), how)
			}
		}
	}
}

// ofHeads reports whether a factor is 1/√d of the width d of a head.
func ofHeads(by float64) bool {
	d := 1 / (by * by)
	return by > 0 && d > 3.5 && d < 1025 && math.Abs(d-math.Round(d)) < 1e-4*d
}

// settled reports whether all that fails is known to be right where it was made, or is no more than what
// roundings of 16 bits add up to, and excuses it. What hangs on a choice of 16 bits that may come either way,
// and nothing tells what is right of it, is left open.
func (c *Comparison) settled() bool {
	var excused, open []*Port
	for _, p := range c.Ports {
		if p.misfit() && p.Local != nil && p.Local.Tied && compare.Has16Bits(p.of.judged.dtype) { // rows of other tokens
			open = append(open, p)
			continue
		}
		if p.Passes() && !p.misfit() || !p.Joined() || !p.Judged() {
			continue
		}
		if !p.byDefault || p.downcast != tensor.Invalid || p.Err != nil {
			return false
		}
		l := p.Local
		right := l != nil && !l.Wrong && (l.Opaque == "" || l.AnyOrder)
		switch {
		case right:
			excused = append(excused, p)
		case (p.tied || l != nil && l.Tied) && compare.Has16Bits(p.of.judged.dtype): // in float32 no token goes another way
			if asOne(p.passes).Error > piece.LeastOf16 && !c.contained(p) {
				open = append(open, p)
			} else {
				excused = append(excused, p)
			}
		case compare.Has16Bits(p.DType) && !p.measured && !p.outliers && p.Base.Result.BadNonFinite == 0 && p.Base.Result.Agrees(compare.Drift(p.DType)):
			excused = append(excused, p)
		default:
			return false
		}
	}
	for _, p := range excused {
		why := "rounding only: no layer made it"
		if p.Local != nil && p.Local.AnyOrder {
			why = "equal numbers do not tell the order of its rows"
		} else if p.Local != nil && p.Local.Opaque == "" {
			why = "rounding only: every piece of it is right"
		}
		p.allow(equivalent, "%s", why)
	}
	c.leaveOpen(open)
	return true
}

// contained reports whether an output is made into that of a layer around it, which agrees with the golden.
func (c *Comparison) contained(p *Port) bool {
	return slices.ContainsFunc(c.Ports, func(q *Port) bool {
		return q.Case == p.Case && q.Step == p.Step && label.Inside(p.Layer, q.Layer) && q.Judged() &&
			q.Comparable() && !q.Unjudged() && q.Base.Pass
	})
}

// leaveOpen leaves out what nothing tells of whether it is right, and says so: a run with such an output does
// not pass.
func (c *Comparison) leaveOpen(ports []*Port) {
	layers := map[string]bool{}
	for _, p := range ports {
		p.allow(unjudged, "hangs on a choice that may come either way, and nothing tells what is right then")
		layers[p.Layer] = true
	}
	if len(ports) > 0 {
		c.find(uncovered, fmt.Sprintf("%d outputs hang on a choice that may come either way, and are off by more than rounding: "+
			"nothing that is at hand tells whether they are right (--weights may), %s", len(ports), label.Few(slices.Sorted(maps.Keys(layers)))))
	}
}

// addsUp says why something fails though nothing is wrong by itself: what a test or the fixture asks for
// is tighter than two right implementations are, or errors add up, and no layer is accused.
func (c *Comparison) addsUp() *localise.Verdict {
	for _, p := range c.Ports {
		if p.Joined() && !p.Passes() && p.Judged() && !p.Agrees {
			return c.flow.Drift(p.Case, p.Step, "errors add up: no layer makes more of what it was given than rounding does, "+
				"so none is accused; a run in a coarser precision looks like this")
		}
	}
	c.find(whenWrong, "what fails is within the noise floor of its type, and no place is named: the tolerance is tighter than two right implementations agree")
	return nil
}

// clean reports whether nothing fails that has to be placed, and no one asked for more than tolerances
// say: with Strict, and without a golden, pieces decide.
func (c *Comparison) clean() bool {
	return !c.strict && !slices.ContainsFunc(c.Cases, func(k Case) bool { return k.alone }) &&
		!slices.ContainsFunc(c.Ports, func(p *Port) bool { return p.Joined() && !p.Passes() || p.misfit() })
}

// byPieces lets pieces decide: a fault fails, however small it is, and without a golden what is right
// in itself passes. Criteria that someone wrote decide before that.
func (c *Comparison) byPieces(faults []localise.Fault) {
	accused := map[*Port]bool{}
	for _, f := range faults {
		p := c.Ports[f.Index]
		accused[p] = true
		if c.strict || p.of.alone {
			accused[c.accuse(p, f.Found)] = true
		}
	}
	for _, p := range c.Ports {
		l := p.Local
		if !p.of.alone || accused[p] || l == nil || l.Opaque != "" || !p.byDefault || !p.Joined() || p.Passes() {
			continue
		}
		why := "within the noise of its piece"
		if l.Wrong {
			why = "written otherwise: what is made of it is right"
		}
		p.allow(equivalent, "%s", why)
	}
}

// accuse lets a fault fail. One in an input fails at the first output after it, as inputs only tell
// where an error came from. It returns what fails.
func (c *Comparison) accuse(p *Port, found string) (at *Port) {
	at = p
	if !p.Judged() {
		after := c.Ports[p.at:]
		i := slices.IndexFunc(after, func(q *Port) bool {
			return q.Judged() && q.Comparable() && !q.Unjudged() && q.Case == p.Case && q.Step == p.Step
		})
		if i < 0 {
			return p
		}
		at = after[i]
		found = fmt.Sprintf("%s of %s: %s", p.Port, p.Layer, found)
	}
	p.Agrees = false
	if at.byDefault && at.Comparable() && at.Passes() {
		at.fail("local_error", found)
	}
	return at
}

// warn replays the pieces of a run that passes, where its program and weights are at hand and that is
// cheap, and notes what is wrong in itself though tolerances let it pass.
func (c *Comparison) warn() error {
	work := 0.0
	for _, k := range c.Cases {
		if k.Program == nil || k.Along != nil {
			return nil
		}
		work += workOf(k.Program)
	}
	if c.search.Evidence == nil || work > cheap {
		return nil
	}
	if weights, _, err := c.search.Evidence(); err != nil || len(weights) == 0 {
		return nil
	}
	if err := c.replayAll(); err != nil {
		return err
	}
	var found []string
	for _, r := range c.replays {
		for _, t := range r.result.Faults {
			for _, p := range r.ports[t] {
				found = append(found, fmt.Sprintf("%s of %s (%s)", p.Port, p.Layer, r.found(t, p)))
			}
		}
	}
	if len(found) > 0 {
		c.Note(fmt.Sprintf("warning: %d tensors are within their limits and off by more than their own piece's noise, first %s: "+
			"--strict, or strict: true in fixture.yaml, makes that a failure", len(found), found[0]))
	}
	return nil
}

// workOf estimates what replaying a program costs, in multiply-adds.
func workOf(p *program.Program) (work float64) {
	for i := range p.Ops {
		o := &p.Ops[i]
		n := 1.0
		for _, id := range o.Out {
			if id != program.None {
				n *= elements(p.Values[id].Shape)
			}
		}
		switch o.Name {
		case "mm", "addmm", "bmm", "baddbmm", "_grouped_mm", "scaled_dot_product_attention", "convolution":
			if in := o.Operands(); len(in) > 1 {
				shape := p.Values[in[len(in)-1]].Shape
				if len(shape) > 1 {
					n *= float64(shape[len(shape)-2])
				}
			}
		}
		work += n
	}
	return work
}

func elements(shape []int) float64 {
	n := 1.0
	for _, d := range shape {
		n *= float64(d)
	}
	return n
}
