package judge

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
)

// Diagnosis is what the search for causes is given besides the runs.
type Diagnosis struct {
	Mode setting.Diagnose
	// Evidence opens weights and config if a run fails; nil for none. Compare's caller closes them.
	Evidence piece.Evidence
}

// search finds the causes once, when the report of a failing run asks for them.
type search struct {
	Diagnosis
	causes func() []report.Cause // nil where none were looked for
	notes  []string
	// inOnePass says that an edit of the first place holds for all rows, so that they would be as wrong in one pass.
	inOnePass bool
}

// Causes says why the first divergence happens and what else went wrong on its own, the best cause
// first for each place. It is nil if the search is off.
func (c *Comparison) Causes() []report.Cause { return slices.Clone(c.search.causes()) }

func (c *Comparison) findCauses() []report.Cause {
	s, v := &c.search, c.Verdict
	if s.Mode == setting.DiagnoseOff || v == nil || v.Kind == localise.KindInput && v.Layer == "" {
		return nil // another prompt is the cause
	}
	causes := []report.Cause{}
	for _, k := range c.byNumbers() {
		causes = append(causes, report.Cause{ID: k.ID, Layer: k.Layer, Proven: k.Proven, Fit: report.Float(k.Fit),
			FitGolden: report.Float(k.FitGolden), Next: k.Next, NextFit: report.Float(k.NextFit), Text: k.Text})
	}
	found, err := c.edited()
	if err != nil {
		s.notes = append(s.notes, "no edit of the reference's program was looked for: "+err.Error())
	}
	causes, s.inOnePass = withEdits(causes, found), found.inOnePass
	if !slices.ContainsFunc(causes, func(k report.Cause) bool { return k.Proven }) &&
		!slices.ContainsFunc(c.replays, func(r *replayed) bool { return !r.inferred }) {
		s.notes = append(s.notes, "why is told by the program that the reference ran, which the golden has not: "+
			"parity golden program MODEL --golden DIR adds it")
	}
	return causes
}

// byNumbers diagnoses the places by what the wrong numbers show.
func (c *Comparison) byNumbers() (found []diagnose.Cause) {
	s := &c.search
	run, err := c.evidence(true)
	if err != nil {
		s.notes = append(s.notes, "the cause was looked for without weights or config: "+err.Error())
	}
	ctx, cancel := context.WithTimeout(c.ctx, s.Mode.Budget())
	defer cancel()
	if k := c.shifted(c.targetOf(c.Verdict)); k != nil { // whole numbers that were recorded tell by themselves
		return []diagnose.Cause{*k}
	}
	for i, scene := range c.scenes(run) {
		scene.Failed = func(err error) { s.notes = append(s.notes, err.Error()) }
		causes := diagnose.Diagnose(ctx, scene)
		if i > 0 {
			// A later place may follow from the first one: only a proof is worth reading.
			causes = slices.DeleteFunc(causes, func(k diagnose.Cause) bool { return !k.Proven })
		}
		found = append(found, causes...)
		if c.ofWholeRun() {
			break
		}
	}
	return found
}

// ofWholeRun reports whether the fault is no layer's own: what is wrong elsewhere may follow from it.
func (c *Comparison) ofWholeRun() bool {
	return c.Verdict.Kind != localise.KindLocal && c.Verdict.Kind != localise.KindBetween
}

// scenes returns the place of the verdict first, then other places that do not follow from it.
func (c *Comparison) scenes(run *diagnose.Run) (list []*diagnose.Scene) {
	v, target := c.Verdict, c.targetOf(c.Verdict)
	partial := c.partial(v)
	add := func(v *localise.Verdict, p *Port, alone bool) *diagnose.Scene {
		s := &diagnose.Scene{Run: run, Kind: v.Kind, Case: v.Case, Step: v.Step, Layer: v.Layer, Open: v.Open || partial}
		if p != nil {
			s.Case, s.Step, s.Target = p.Case, p.Step, run.Ports[p.at]
		}
		if alone { // there it got the golden inputs
			s.Run, s.Target = run.Injected(s.Target)
			s.Open = partial
		}
		list = append(list, s)
		return s
	}
	out := c.reordered(target)
	if out != nil {
		target = out
	}
	first := add(v, target, target != nil && v.Open && v.Proven && target.Injected != nil && !target.Injected.agrees)
	first.Made = c.made(target)
	if out != nil {
		first.Kind, first.Layer, first.Open = localise.KindBetween, out.Layer, partial
	}
	for _, o := range c.otherFaults() {
		// What a layer was given may be the first fault again, seen from another side.
		if p := c.targetOf(o); len(list) < maxPlaces && p.Judged() {
			add(o, p, p.Injected != nil)
		}
	}
	return list
}

// made returns what the reference's program makes of what the candidate was given, where a tensor is wrong; nil where that is
// not known, and where forward passes were laid out as one.
func (c *Comparison) made(target *Port) *tensor.Tensor {
	for r := range c.known() {
		t := r.portOf(target)
		if t < 0 || r.laid != nil || target.misfit() {
			continue
		}
		site := r.result.Site(t, r.load, nil, false)
		if site == nil {
			continue
		}
		base, err := replay.NewBase(c.ctx, site.Piece, site.Load, site.Mode)
		if err != nil {
			continue
		}
		made, err := base.Value(site.Piece.Out).Tensor()
		if err == nil && slices.Equal(made.Shape(), target.Golden.Shape()) {
			return made
		}
	}
	return nil
}

// reordered returns the output of a layer of experts inside of which a target lies whose rows stand in
// another order, or are others: experts may take their tokens in any, each by itself or all at once, so
// what is wrong shows after them. nil for other targets, where nothing is wrong there, and where the
// experts were given something else, or what they were given is not known.
func (c *Comparison) reordered(target *Port) *Port {
	if target == nil || !label.Routed(target.Layer) || !target.misfit() && target.mapAlone().Kind != compare.MapOrder {
		return nil
	}
	var out *Port
	for _, p := range c.Ports {
		if p.Case != target.Case || p.Step != target.Step || !label.Inside(target.Layer, p.Layer) || !label.Routed(p.Layer) {
			continue
		}
		switch {
		case !p.Judged() && !p.Agrees:
			return nil
		case p.Judged() && p.Comparable() && !p.Agrees && out == nil:
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

// targetOf returns the wrong tensor of a verdict.
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

// tokenIDs returns the ids that the reference was given in a pass, by sequence; nil if they were not recorded.
func (c *Comparison) tokenIDs(name, step string) (ids [][]int) {
	for _, p := range c.Ports {
		if p.Case == name && p.Step == step && !p.Golden.DType().IsFloat() && !p.Judged() && p.Port == "input_0" && strings.Contains(p.Layer, "embed") &&
			!label.PositionTables.Has(p.Layer) && !label.TypeTables.Has(p.Layer) && !strings.Contains(label.Last(p.Layer), "pos") {
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

// mapAlone returns the map that makes of a port's golden what the candidate has, by that port alone.
func (p *Port) mapAlone() compare.Map {
	if p.Actual == nil || p.misfit() || p.printed != nil {
		return compare.Map{}
	}
	return compare.Rewritten(p.Golden, p.Actual, p.Floor)
}

// code says of a place which code it is on both sides, and what replay found there.
func (c *Comparison) code(v *localise.Verdict, d *report.Divergence) {
	p, k := c.targetOf(v), c.caseOf(v.Case)
	if p == nil || k == nil {
		return
	}
	if p.ActualSide != nil {
		d.Candidate = class(k.Actual.Info.Modules, above(p.actualLayer(), p.Layer, v.Layer))
	}
	d.Reference = class(k.Golden.Info.Modules, label.Name(v.Layer))
	for r := range c.known() {
		if l := r.result.Local[r.portOf(p)]; l != nil && l.Wrong {
			r.code(v, p, l, d)
			return
		}
	}
}

// code says it by the program.
func (r *replayed) code(v *localise.Verdict, p *Port, l *piece.Local, d *report.Divergence) {
	if d.Reference = cmp.Or(r.lines(l), d.Reference); d.Reference == "" {
		modules := map[string]dump.Module{}
		for layer, m := range r.Modules {
			modules[layer] = dump.Module(m)
		}
		d.Reference = class(modules, label.Name(v.Layer))
	}
	if l.Opaque != "" || p.misfit() {
		return
	}
	d.Piece = &report.Piece{Error: report.Float(l.Error), RowError: report.Float(l.RowError), Noise: report.Float(cmp.Or(l.Noise, l.RowNoise)), From: []string{}}
	for _, s := range l.Sources {
		d.Piece.From = append(d.Piece.From, label.Join(r.Ports[s].Layer, r.Ports[s].Name))
	}
}

// above returns the candidate's layer around its layer that is as far above it as one of the golden's is
// above the golden's.
func above(layer, golden, around string) string {
	layer = label.Name(layer)
	if rest, ok := strings.CutPrefix(label.Name(golden), label.Name(around)+"."); ok {
		for range strings.Count(rest, ".") + 1 {
			layer = layer[:max(strings.LastIndexByte(layer, '.'), 0)]
		}
	}
	return layer
}

// class says where the class of a layer, or of the nearest one around it, is defined, and of one from a
// library also what it stands in: "linear.py:44 Linear in llama.py:88 MLP". It is "" where nothing is known.
func class(modules map[string]dump.Module, layer string) string {
	var found []string
	file := ""
	for ; layer != "" && len(found) < 2; layer = layer[:max(strings.LastIndexByte(layer, '.'), 0)] {
		m, ok := modules[layer]
		if !ok || m.File == file || m.Class == "" || len(found) > 0 && strings.HasSuffix(m.Class, "List") {
			continue
		}
		file = m.File
		found = append(found, fmt.Sprintf("%s:%d %s", filepath.Base(m.File), m.Line, m.Class[strings.LastIndexByte(m.Class, '.')+1:]))
	}
	return strings.Join(found, " in ")
}

// lines names the reference's code of a piece, from its first expression to its last.
func (r *replayed) lines(l *piece.Local) string {
	if l.First > l.Last {
		return ""
	}
	first, last := r.frame(l.First), r.frame(l.Last)
	switch {
	case first == "" || first == last:
		return last
	case last == "":
		return first
	}
	return first + " to " + last
}

func (r *replayed) frame(op int) string {
	o := r.Ops[op]
	if o.Stack < 0 || o.Stack >= len(r.Stacks) || len(r.Stacks[o.Stack]) == 0 {
		return ""
	}
	return r.line(r.Stacks[o.Stack][0])
}

// line is an expression of the reference's source, and where it stands.
func (r *replayed) line(frame int) string {
	f := r.Frames[frame]
	return strings.TrimSpace(fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, f.Text))
}
