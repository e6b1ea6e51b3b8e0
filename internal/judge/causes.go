package judge

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/cause"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/structure"
)

// Diagnosis is what the search for causes is given besides the runs.
type Diagnosis struct {
	Mode setting.Diagnose
	// Evidence opens weights and config if a run fails; nil for none. Compare's caller closes them.
	Evidence func() (checkpoint.Weights, checkpoint.Config, error)
	Extra    []diagnose.Hypothesis
}

// search finds the causes once, when the report of a failing run asks for them.
type search struct {
	Diagnosis
	once   sync.Once
	causes []diagnose.Cause
	looks  []string // what the error looks like, see symptoms
	notes  []string
}

// Causes says why the first divergence happens and what else went wrong on its own, the best cause
// first for each place. It is nil if the search is off.
func (c *Comparison) Causes() []diagnose.Cause {
	c.search.once.Do(func() {
		v := c.Verdict
		if c.search.Mode != setting.DiagnoseOff && v != nil && (v.Kind != localise.KindInput || v.Layer != "") { // another prompt is the cause
			c.search.run(c)
		}
	})
	return c.search.causes
}

func (s *search) run(c *Comparison) {
	run := &diagnose.Run{Trace: c.traced, TokenIDs: c.tokenIDs}
	if s.Evidence != nil {
		var err error
		if run.Weights, run.Config, err = s.Evidence(); err != nil {
			s.notes = append(s.notes, "the cause was looked for without weights or config: "+err.Error())
		}
	}
	known := map[*Port]*diagnose.Port{}
	for _, p := range c.Ports {
		d := p.evidence()
		known[p] = d
		run.Ports = append(run.Ports, d)
	}
	ctx, cancel := context.WithTimeout(c.ctx, s.Mode.Budget())
	defer cancel()
	s.find(ctx, c, run, known)
	if target := known[c.target()]; target != nil {
		look := &symptoms{Comparison: c, run: run, target: target, proven: len(s.causes) > 0 && s.causes[0].Proven}
		var err error
		if s.looks, err = look.safely(ctx); err != nil {
			s.notes = append(s.notes, err.Error())
		}
	}
}

// find diagnoses the places, and what is behind a proven cause.
func (s *search) find(ctx context.Context, c *Comparison, run *diagnose.Run, known map[*Port]*diagnose.Port) {
	s.causes = []diagnose.Cause{}
	for i, scene := range c.scenes(run, known) {
		scene.Failed = func(err error) { s.notes = append(s.notes, err.Error()) }
		causes := diagnose.Diagnose(ctx, scene, cause.For(scene.Kind), s.Extra...)
		if i > 0 {
			// A later place may follow from the first one: only a proof is worth reading.
			causes = slices.DeleteFunc(causes, func(k diagnose.Cause) bool { return !k.Proven })
		}
		s.causes = append(s.causes, causes...)
		if first := c.Verdict.Kind; first != localise.KindLocal && first != localise.KindBetween {
			return // the other kinds concern the whole run: what is wrong elsewhere may follow from them
		}
	}
	if k := c.caseOf(c.Verdict.Case); len(s.causes) > 0 && s.causes[0].Proven && c.target() != nil && (k == nil || k.Along == nil) {
		s.second(ctx, c, run, known)
	}
}

// scenes returns the place of the verdict first, then other places that do not follow from it.
func (c *Comparison) scenes(run *diagnose.Run, known map[*Port]*diagnose.Port) []*diagnose.Scene {
	v := c.Verdict
	target := c.target()
	partial := c.partial(v)
	first := &diagnose.Scene{Run: run, Kind: v.Kind, Case: v.Case, Step: v.Step, Layer: v.Layer, After: v.After, Before: v.Before,
		Open: v.Open || partial}
	if out := c.reordered(target); out != nil {
		target = out
		first.Kind, first.Layer, first.Open = localise.KindBetween, out.Layer, partial
	}
	if target != nil {
		first.Case, first.Step, first.Target = target.Case, target.Step, known[target]
		if in := target.Injected; v.Open && v.Proven && in != nil && in.frame != nil && !in.agrees && c.takes(target) {
			first.Run, first.Target = run.Injected(first.Target) // there it got the golden inputs
			first.Open = partial
		}
	}
	if k := c.caseOf(v.Case); k != nil && k.Along != nil && target != nil {
		if s := c.unfolding(k).scene(v, target, run); s != nil {
			return []*diagnose.Scene{s}
		}
	}
	if s := unfoldSteps(first, v); s != nil {
		first = s
	}
	out := []*diagnose.Scene{first}
	for _, p := range c.alone(v) {
		if len(out) == maxPlaces {
			break
		}
		s := &diagnose.Scene{Run: run, Kind: localise.KindLocal, Case: p.Case, Step: p.Step, Layer: p.Layer, Target: known[p],
			Open: p.Injected == nil && !v.Closed(p.Layer, p.Port) || partial}
		if p.Injected != nil {
			s.Run, s.Target = run.Injected(known[p])
		}
		out = append(out, s)
	}
	return out
}

// reordered returns the output of a layer of experts inside of which a target lies whose rows stand in
// another order, or are others: experts may take their tokens in any, each by itself or all at once, so
// what is wrong shows behind them. nil for other targets, where nothing is wrong there, and where the
// experts were given something else, or what they were given is not known.
func (c *Comparison) reordered(target *Port) *Port {
	if target == nil || !module.Routed(target.Layer) || !target.misfit() && rewritten([]*Port{target}).Kind != structure.MapOrder {
		return nil
	}
	var out *Port
	for _, p := range c.Ports {
		if p.Case != target.Case || p.Step != target.Step || !label.Inside(target.Layer, p.Layer) || !module.Routed(p.Layer) {
			continue
		}
		switch {
		case !p.Judged() && !p.Agrees:
			return nil
		case p.Judged() && p.comparable() && !p.Agrees && out == nil:
			out = p
		}
	}
	return out
}

// partial reports whether rows of the verdict's forward pass look at tokens that other passes fed, or
// stand beside rows of other sequences: made of the rows of the pass alone, attention is not what the
// reference computes, so nothing is proven there.
func (c *Comparison) partial(v *localise.Verdict) bool {
	k := c.caseOf(v.Case)
	return k != nil && k.Along != nil && !k.Along.Pass(v.Step).Whole()
}

// takes reports whether the reference recorded what the layer of an output was given.
func (c *Comparison) takes(output *Port) bool {
	return output.Judged() && slices.ContainsFunc(c.Ports, func(p *Port) bool {
		return !p.Judged() && p.Layer == output.Layer && p.Case == output.Case && p.Step == output.Step
	})
}

// target returns the wrong tensor of the verdict.
func (c *Comparison) target() *Port { return c.targetOf(c.Verdict) }

func (c *Comparison) targetOf(v *localise.Verdict) *Port {
	layers := []string{v.Before, v.Layer}
	var found *Port
	for _, p := range c.Ports {
		at := slices.Index(layers, p.Layer)
		if p.Case != v.Case || p.Step != v.Step || p.Actual == nil || p.Agrees || at < 0 || p.Layer == "" {
			continue
		}
		if p.Port == v.Port && (v.Before == "" || p.Layer == v.Before) {
			return p
		}
		if found == nil {
			found = p
		}
	}
	return found
}

// alone lists the outputs of layers that are wrong although the layers ran on the golden inputs:
// each is an error of its own. The verdict's layer, those around it and those that hold another
// such layer are left out. Without a run on golden inputs it lists those of the frontier, whose
// recorded inputs agree.
func (c *Comparison) alone(v *localise.Verdict) []*Port {
	var wrong []*Port
	frontier := map[string]bool{}
	for _, l := range v.Frontier {
		frontier[l] = true
	}
	for _, p := range c.Ports {
		if !p.Judged() || !p.comparable() || p.Case != v.Case || p.Step != v.Step {
			continue
		}
		if in := p.Injected; in != nil && in.frame != nil && !in.agrees || in == nil && !p.Agrees && frontier[p.Layer] {
			wrong = append(wrong, p)
		}
	}
	flow := c.traced.Pass(v.Case, v.Step)
	within := func(inner, outer string) bool { return inner == outer || flow.Inside(inner, outer) }
	holds := map[string]bool{} // layers with another one of wrong inside
	for _, o := range wrong {
		for _, l := range flow.Around(o.Layer) {
			holds[l] = true
		}
	}
	return slices.DeleteFunc(wrong, func(p *Port) bool {
		return within(v.Layer, p.Layer) || p.Layer == v.Before || holds[p.Layer]
	})
}

// tokenIDs returns the ids of the reference's prompt, by sequence; nil if they were not recorded.
func (c *Comparison) tokenIDs(name string) (ids [][]int) {
	for _, p := range c.Ports {
		if p.Case == name && !p.Golden.DType().IsFloat() && !p.Judged() && p.Port == "input_0" && strings.Contains(p.Layer, "embed") &&
			!module.Positions.Has(p.Layer) && !module.Types.Has(p.Layer) && !strings.Contains(label.Last(p.Layer), "pos") {
			for i := range p.Golden.Len() {
				if i%p.Golden.RowLen() == 0 {
					ids = append(ids, nil)
				}
				ids[len(ids)-1] = append(ids[len(ids)-1], int(p.Golden.At(i)))
			}
			return ids
		}
	}
	return nil
}

// reportCauses adds the causes to a report.
func (c *Comparison) reportCauses(r *report.Report) {
	causes := c.Causes()
	r.Notes = slices.Concat(r.Notes, c.search.notes)
	r.FirstDivergence.Evidence = slices.Concat(r.FirstDivergence.Evidence, c.search.looks)
	if causes == nil {
		return
	}
	r.Causes = []report.Cause{}
	settings := c.settings()
	for _, k := range causes {
		text := k.Text
		for _, d := range settings {
			if d.Concerns(k.Layer) {
				text += "; the configs differ: " + d.String()
			}
		}
		r.Causes = append(r.Causes, report.Cause{ID: k.ID, Layer: k.Layer, Proven: k.Proven,
			Fit: report.Float(k.Fit), FitGolden: report.Float(k.FitGolden), Next: k.Next, NextFit: report.Float(k.NextFit), Text: text})
	}
}
