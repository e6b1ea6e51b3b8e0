package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
)

// locate finds the first divergence. A run in which every judged port passes has none, and costs
// nothing more.
func (c *Comparison) locate() error {
	if c.clean() {
		c.Verdict = c.OtherPrompt()
		return c.warn()
	}
	tensors := make([]*tensor.Tensor, len(c.Ports))
	for i, p := range c.Ports {
		tensors[i] = p.entry
	}
	if err := c.flow.Identify(c.ctx, tensors); err != nil {
		return err
	}
	if err := c.replayAll(); err != nil {
		return err
	}
	if err := c.findTwins(); err != nil {
		return err
	}
	c.findHeld()
	c.placeFaults()
	return nil
}

// findHeld says of outputs that the recording is wrong there, and not the model: see [diagnose.HeldBy]. It
// says nothing of a forward pass in which anything else is wrong, too.
func (c *Comparison) findHeld() {
	run, _ := c.evidence(c.search.Mode != setting.DiagnoseOff) // its error is told where causes are looked for
	for _, pass := range c.flow.Passes {
		ports := c.portsOf(pass)
		if !slices.ContainsFunc(ports, (*Port).wrong) {
			continue
		}
		by := diagnose.HeldBy(run, pass.Case, pass.Step)
		held := func(p *Port) string {
			if h := by[run.Ports[p.at]]; h.Proven || h.ID == diagnose.Neighbour {
				return h.Text
			}
			return ""
		}
		if !slices.ContainsFunc(ports, func(p *Port) bool { return p.wrong() && held(p) == "" }) {
			for _, p := range ports {
				p.held = held(p)
			}
		}
	}
}

// findTwins finds the candidate's outputs that hold the same bytes as another output of their forward pass although
// the golden's differ.
func (c *Comparison) findTwins() error {
	var ports []*Port
	var tensors []*tensor.Tensor
	for _, p := range c.Ports {
		if p.Joined() && p.Judged() && p.recorded != nil {
			ports, tensors = append(ports, p), append(tensors, p.recorded)
		}
	}
	same, err := localise.Identify(c.ctx, tensors)
	if err != nil {
		return err
	}
	type content struct {
		caseName, step string
		bytes          int
	}
	copies := map[content][]*Port{}
	for i, p := range ports {
		if k := (content{p.Case, p.Step, same[i]}); k.bytes > 0 {
			copies[k] = append(copies[k], p)
		}
	}
	golden := c.flow.Entries
	for _, of := range copies {
		for _, p := range of {
			i := slices.IndexFunc(of, func(q *Port) bool {
				return q.ActualSide.Name != p.ActualSide.Name && golden[p.at].Same != golden[q.at].Same
			})
			if i >= 0 {
				p.twin = of[i].Layer
			}
		}
	}
	return nil
}

// wrong reports whether an output that both sides have does not agree.
func (p *Port) wrong() bool { return p.Judged() && p.Joined() && !p.Agrees }

// Evidence returns the runs as hypotheses see them, with weights and config where these are known. Where
// they cannot be read it is without them.
func (c *Comparison) Evidence() (*diagnose.Run, error) {
	run, err := c.evidence(true)
	if err != nil {
		err = fmt.Errorf("weights or config: %w", err)
	}
	return run, err
}

// evidence has the ports in the order of c.Ports.
func (c *Comparison) evidence(weights bool) (run *diagnose.Run, err error) {
	run = &diagnose.Run{TokenIDs: c.tokenIDs}
	if weights && c.search.Evidence != nil {
		run.Weights, run.Config, err = c.search.Evidence()
	}
	for _, p := range c.Ports {
		run.Ports = append(run.Ports, p.evidence())
	}
	return run, err
}

// OtherPrompt returns the verdict about the first case whose runs were not given the same tokens;
// nil if there is none. Whatever agrees then proves nothing.
func (c *Comparison) OtherPrompt() *localise.Verdict {
	for _, k := range c.Cases {
		if text := k.otherPrompt(); text != "" {
			return (&localise.Verdict{Case: k.Name, Step: k.Golden.Steps()[0]}).OtherPrompt(text)
		}
	}
	return nil
}

// others says in metrics what else makes an error of its own.
func (c *Comparison) others() (out []string) {
	others := c.otherFaults()
	for _, o := range others[:min(len(others), maxOthers)] {
		out = append(out, report.AlsoWrong(cmp.Or(o.Before, o.Layer))+o.Found)
	}
	if n := len(others) - maxOthers; n > 0 {
		out = append(out, fmt.Sprintf("and %d more layers are, see the frontier", n))
	}
	return out
}

// otherFaults lists what else is wrong by itself in the forward pass of the verdict, a layer once, and
// neither inside of its layer nor around it.
func (c *Comparison) otherFaults() (out []*localise.Verdict) {
	v := c.Verdict
	flow := c.flow.Pass(v.Case, v.Step)
	seen := map[string]bool{v.Layer: true, v.Before: true}
	for _, o := range v.Others {
		layer := cmp.Or(o.Before, o.Layer)
		if o.Kind == localise.KindUnordered || seen[layer] || flow.Inside(layer, v.Layer) || flow.Inside(v.Layer, layer) || c.targetOf(o) == nil {
			continue
		}
		seen[layer] = true
		out = append(out, o)
	}
	return out
}

// record returns the port as the localiser sees it.
func (p *Port) record() localise.Record {
	r := localise.Record{Joined: !p.Unjudged() && (p.Comparable() || p.misfit()), Agrees: p.Agrees && !p.misfit(),
		Len: p.Golden.Len()}
	integer := !p.Golden.DType().IsFloat()
	if in := p.Injected; in != nil {
		r.Alone = &localise.Alone{Agrees: in.agrees, Error: worst(in.result)}
	}
	switch {
	case p.misfit():
		r.Error = math.Inf(1)
	case !r.Joined || p.allowance.effect != counts || integer && r.Agrees:
	case integer:
		r.Error = math.Inf(1)
	default:
		r.Error = worst(p.Base.Result)
	}
	return r
}

// worst returns the larger relative L2 of the tensor and of its worst row.
func worst(r compare.Result) float64 {
	if r.BadNonFinite > 0 {
		return math.Inf(1)
	}
	return max(r.RelL2, r.WorstRow.RelL2)
}

// Blame returns the layer that made the error of a port that is wrong only because of its inputs;
// "" if the port agrees, made an error itself, or nothing shows which layer did. The first
// divergence and the model's own output are never excused.
func (c *Comparison) Blame(p *Port) string {
	v := c.Verdict
	if v == nil || p.Agrees || !p.Joined() {
		return ""
	}
	if p.Judged() {
		return v.Blame(p.Case, p.Step, p.Layer)
	}
	// A wrong input was made upstream, unless it is the first divergence itself.
	first := p.Case == v.Case && p.Step == v.Step && p.Port == v.Port && slices.Contains([]string{v.Before, v.Layer}, p.Layer)
	if first || v.Kind == localise.KindCapture || v.Kind == localise.KindDrift || v.Kind == localise.KindInput {
		return ""
	}
	return v.Layer
}

// placeFaults finds the place among what replay found wrong.
func (c *Comparison) placeFaults() {
	faults := c.faults()
	c.byPieces(faults)
	settled := len(faults) == 0 && c.settled()
	c.noteWeights()
	flow := c.flow
	flow.Unordered = map[string]bool{}
	for _, k := range c.Cases {
		flow.Nested = flow.Nested || k.Injected != nil && k.Injected.Info.Injection == dump.Nested
		flow.Unordered[k.Name] = k.Golden.OrderBy == dump.OrderNatural && k.Actual.OrderBy == dump.OrderNatural
	}
	for i, p := range c.Ports {
		flow.Entries[i].Record = p.record()
	}
	v := flow.Placed(faults)
	if v == nil {
		if v = c.OtherPrompt(); v == nil && !settled {
			v = c.addsUp()
		}
	}
	if c.Verdict = v; v != nil {
		c.given(v)
		c.otherShape(v)
		v.Evidence = append(v.Evidence, c.others()...)
	}
}

// otherShape names the first of the outputs that have another shape than the reference's and go into the wrong one with
// nothing right between them: the error may begin there. Where they are of other layers, or of one in the container whose
// code is wrong that was given the reference's shapes, what was found is only the first that could be compared.
func (c *Comparison) otherShape(v *localise.Verdict) {
	target := c.targetOf(v)
	if target == nil {
		return
	}
	beside := func(p, of *Port) bool { return p.Step == of.Step && p.Case == of.Case && p.Actual != nil }
	misfit := func(p *Port) bool { return !slices.Equal(p.Actual.Shape(), p.Golden.Shape()) }
	at := slices.IndexFunc(c.Ports[:target.at], func(p *Port) bool {
		return beside(p, target) && p.Judged() && misfit(p) && slices.ContainsFunc(c.replays, func(r *replayed) bool { return r.between(p, target) })
	})
	if at < 0 {
		return
	}
	first, given, fit := c.Ports[at], false, true
	for _, p := range c.Ports[:at] {
		if beside(p, first) && p.Layer == first.Layer && !p.Judged() {
			given, fit = true, fit && !misfit(p)
		}
	}
	v.Evidence = append(v.Evidence, fmt.Sprintf("%s %s, which goes into it, is %s, and the reference's %s", first.Layer, first.Port,
		tensor.FormatShape(first.Actual.Shape()), tensor.FormatShape(first.Golden.Shape())))
	inside := label.Inside(first.Layer, v.Layer) && given && fit
	if v.Kind == localise.KindLocal && !label.Within(first.Layer, v.Layer) || v.Kind == localise.KindBetween && inside {
		end := cmp.Or(v.Before, v.Layer)
		v.Kind, v.Layer, v.After, v.Before, v.Open, v.Proven = localise.KindBetween, first.Layer, "", end, true, false
		v.Place = fmt.Sprintf("in %s, or between it and %s", v.Layer, v.Before)
		v.Text = v.Place + ": " + v.Found
	}
}

// between reports whether the piece of a port goes through the value of another.
func (r *replayed) between(other, p *Port) bool {
	t, o := r.portOf(p), r.portOf(other)
	if t < 0 || o < 0 {
		return false
	}
	sources := r.result.Local[t].Sources
	return slices.Contains(r.Piece(t, func(i int) bool { return slices.Contains(sources, i) }).Whole, r.Ports[o].Value)
}

// faults collects what is wrong by itself in all cases, and excuses what is only written otherwise.
func (c *Comparison) faults() (faults []localise.Fault) {
	for _, r := range c.replays {
		known, folded := r.explained(), r.folded()
		for i, s := range r.result.Stretches {
			coarse := slices.IndexFunc(s, r.downcast)
			switch f := r.captured(s, folded != nil); {
			case coarse >= 0: // whatever is made of it
				faults = append(faults, r.faults(s[coarse])...)
			case f != nil:
				faults = append(faults, *f)
			case !known[i] && !folded[r.Ports[s[0]].Value], r.returned(s):
				faults = append(faults, r.faults(s[0])...)
			default:
				r.excuse(s)
			}
		}
		for _, t := range r.result.Faults {
			for _, f := range r.faults(t) {
				f.Held = c.Ports[f.Index].held
				faults = append(faults, f)
			}
		}
		if r.result.Precision != "" {
			c.Note(r.result.Precision + ": everything else is judged with that")
		}
	}
	return faults
}

// noteWeights says how many pieces could not be replayed for want of their weights.
func (c *Comparison) noteWeights() {
	missing, all := 0, 0
	for _, r := range c.replays {
		for _, l := range r.result.Local {
			if all++; strings.Contains(l.Opaque, piece.ErrNoWeights.Error()) {
				missing++
			}
		}
	}
	if missing > 0 {
		c.Note(fmt.Sprintf("%d of %d pieces of the reference's program need weights that are not at hand, and were judged by the golden, less sharply: "+
			"--weights says where they are", missing, all))
	}
}

// downcast reports whether the candidate has a port in a coarser type than its run was asked for.
func (r *replayed) downcast(t int) bool {
	return slices.ContainsFunc(r.ports[t], func(p *Port) bool { return p.Comparable() && p.isDowncast(p.Base.Result) })
}

// faults describes a port whose piece is wrong, in each forward pass in which it is.
func (r *replayed) faults(t int) (list []localise.Fault) {
	at, l := r.Ports[t], r.result.Local[t]
	lone := at.Input && len(l.Sources) == 0 && r.Maker(at.Value) < 0 && r.Values[at.Value].Input != ""
	passed := r.passes(at)
	for _, p := range r.ports[t] {
		if r.laid != nil && !p.Local.Wrong {
			continue
		}
		f := localise.Fault{Index: p.at, Open: l.Opaque != "", Found: r.found(t, p), Lone: lone, Passed: passed}
		for _, s := range l.Sources {
			for _, q := range r.ports[s] {
				if q.Step == p.Step {
					f.From = append(f.From, q.at)
				}
			}
		}
		list = append(list, f)
	}
	return list
}

// passes reports whether a layer puts out what it was given, as dropout does: it has no operator of its
// own, or it was recorded that it took the same value.
func (r *replayed) passes(at program.Port) bool {
	if at.Input {
		return false
	}
	same := slices.ContainsFunc(r.Records(at.Value), func(i int) bool {
		q := &r.Ports[i]
		return q.Input && q.Layer == at.Layer && q.Step == at.Step
	})
	return same || !label.IsRoot(at.Layer) && !slices.ContainsFunc(r.Ops, func(o program.Op) bool {
		return label.Within(o.Layer, label.Name(at.Layer))
	})
}

// found says in metrics what replay found at a port.
func (r *replayed) found(t int, p *Port) string {
	l, metrics := r.result.Local[t], p.Base.Result
	switch {
	case l.Opaque != "":
		text := fmt.Sprintf("what goes into it agrees with the golden, and it does not: off by relative L2 %.3g, its worst row by %.3g",
			metrics.RelL2, metrics.WorstRow.RelL2)
		if !r.inferred {
			text += " (" + l.Opaque + ")"
		}
		return text
	case p.misfit():
		return p.Problem
	case l.Larger != 0:
		return fmt.Sprintf("it is %+.2g %% larger throughout than what replay makes of the candidate's own tensors, and roundings are not: they cancel", 100*l.Larger)
	}
	return fmt.Sprintf("replayed from the candidate's own tensors it is off by %.3g, its worst row by %.3g; rounding makes %.1g", l.Error, l.RowError,
		cmp.Or(l.Noise, l.RowNoise))
}

// given adds to a verdict what the runs say of themselves. Where their inputs differ, or the candidate
// did not load what the checkpoint holds, that comes before what follows from it.
func (c *Comparison) given(v *localise.Verdict) {
	k := c.caseOf(v.Case)
	if text := k.otherPrompt(); text != "" && v.Kind != localise.KindInput {
		v.OtherPrompt(text)
	}
	if a := k.Actual.Info.LoadAudit; a != nil && len(a.Missing)+len(a.Unused) > 0 && v.Kind != localise.KindInput {
		v.Kind, v.Proven = localise.KindWeights, true
		v.Text = "the weights that were loaded are not those of the checkpoint: " + notLoaded(a) + "; " + v.Text
		if p := c.starved(v, a.Missing); p != nil {
			v.Layer, v.Port, v.After, v.Before, v.Place, v.Gaps = p.Layer, p.Port, "", "", "", nil
		}
	}
	c.ofPath(v)
	for _, p := range c.Ports {
		if p.Case != v.Case || p.Layer != v.Layer || p.ActualSide == nil {
			continue
		}
		layer := p.actualLayer()
		if args := k.Actual.Info.Uncaptured[layer]; len(args) > 0 {
			v.Evidence = append(v.Evidence, fmt.Sprintf("no hook of the candidate sees %s of %s", strings.Join(args, ", "), layer))
			break
		}
	}
}

func notLoaded(a *dump.LoadAudit) string {
	var parts []string
	if len(a.Missing) > 0 {
		parts = append(parts, fmt.Sprintf("%d missing (%s)", len(a.Missing), label.Few(a.Missing)))
	}
	if len(a.Unused) > 0 {
		parts = append(parts, fmt.Sprintf("%d of the checkpoint not used (%s)", len(a.Unused), label.Few(a.Unused)))
	}
	return strings.Join(parts, ", ")
}

// starved returns the first wrong output of a layer that lacks a weight: the weight's name without
// its last part is the end of the layer's label, or the other way round.
func (c *Comparison) starved(v *localise.Verdict, missing []string) *Port {
	for _, e := range c.flow.Pass(v.Case, v.Step).Events {
		if e.Input || !e.Joined || e.Agrees {
			continue
		}
		layer := "." + label.Name(e.Layer)
		for _, name := range missing {
			module := "." + label.Parent(name)
			if module != "." && (strings.HasSuffix(layer, module) || strings.HasSuffix(module, layer)) {
				return c.Ports[e.Index]
			}
		}
	}
	return nil
}

// ofPath makes it a verdict about the execution path, if that is what is wrong.
func (c *Comparison) ofPath(v *localise.Verdict) {
	if v.Kind != localise.KindLocal && v.Kind != localise.KindBetween && (v.Kind != localise.KindInput || v.Layer == "") {
		return
	}
	if why, sure := c.rightInOnePass(v); why != "" {
		own := *v
		if v.Kind, v.Text = localise.KindPath, why+": "+v.Text; !sure {
			v.OnePass = &own
		}
	}
}

// rightInOnePass says what shows that the candidate is right in one pass; "" if nothing does, or that is no
// matter of the path. It is not sure where no row of the position that is wrong was right.
func (c *Comparison) rightInOnePass(v *localise.Verdict) (why string, sure bool) {
	along := c.caseOf(v.Case).Along
	if along == nil || along.Path.Kind == dump.OnePass {
		return "", false
	}
	target := c.targetOf(v)
	switch {
	case target == nil || v.Kind == localise.KindInput && along.holdsTokens(target):
		return "", false
	case along.onePass == nil:
		return c.witness(v.Case, along, along.row(target, v.Step))
	case *along.onePass:
		return "the candidate's own one pass agrees with the golden", true
	}
	return "", false
}
