package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/pattern"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/internal/trace"
)

// locate finds the first divergence. A run in which every judged port passes has none, and costs
// nothing more.
func (c *Comparison) locate() error {
	if !slices.ContainsFunc(c.Ports, func(p *Port) bool { return p.Joined() && !p.passes() || p.misfit() }) {
		c.Verdict = c.OtherPrompt()
		return nil
	}
	if err := c.identify(); err != nil {
		return err
	}
	flow := c.flow()
	if err := c.settleTies(); err != nil {
		return err
	}
	c.excuseRewrites()
	twins, err := c.twins(flow)
	if err != nil {
		return err
	}
	if err := c.widen(flow); err != nil {
		return err
	}
	held := c.held()
	in := localise.Run{Trace: flow, Excess: c.excess, FewRows: c.fewRows, Unordered: c.unordered(), Given: c.given()}
	for _, k := range c.Cases {
		in.Nested = in.Nested || k.Injected != nil && k.Injected.Info.Injection == dump.Nested
	}
	for i, p := range c.Ports {
		r := p.record()
		if r.Joined && !r.Agrees {
			r.Twin = twins[i]
			r.Held, r.Shown = held[p].Text, held[p].Proven
		}
		in.Records = append(in.Records, r)
	}
	rounding := false
	in.Rounding = func(v *localise.Verdict) bool {
		rounding = c.onlyRounding(v) || c.onlyTF32(1)
		return rounding
	}
	if c.Verdict = localise.First(in); c.Verdict != nil && c.Verdict.Kind == localise.KindLocal && c.onlyTF32(severalProducts) {
		c.Verdict, rounding = nil, true
	}
	if c.Verdict == nil {
		c.Verdict = c.OtherPrompt()
	}
	if c.Verdict != nil {
		c.Verdict.Evidence = append(c.Verdict.Evidence, narrowed(in.Records)...)
	}
	switch {
	case c.Verdict != nil:
		c.Verdict.Evidence = append(c.Verdict.Evidence, c.others()...)
	case !rounding:
		c.within = "what fails is within the noise of its type: the tolerance asks for more than two right implementations reach, so no place is named"
	}
	return nil
}

const neighbour = "capture/neighbour"

// held says of outputs that the recording is wrong there, and not the model: see [pattern.HeldBy]. It
// is empty for a forward pass in which anything else is wrong, too.
func (c *Comparison) held() map[*Port]pattern.Held {
	run, of := &diagnose.Run{}, map[*diagnose.Port]*Port{}
	if c.search.Evidence != nil && c.search.Mode != setting.DiagnoseOff {
		if weights, _, err := c.search.Evidence(); err == nil {
			run.Weights = weights
		}
	}
	wrong := map[[2]string][]*Port{} // by case and step
	for _, p := range c.Ports {
		d := p.evidence()
		of[d] = p
		run.Ports = append(run.Ports, d)
		if p.Judged() && p.Joined() && !p.Agrees {
			pass := [2]string{p.Case, p.Step}
			wrong[pass] = append(wrong[pass], p)
		}
	}
	out := map[*Port]pattern.Held{}
	for pass, ports := range wrong {
		held := map[*Port]pattern.Held{}
		for d, h := range pattern.HeldBy(run, pass[0], pass[1]) {
			if h.Proven || h.ID == neighbour {
				held[of[d]] = h
			}
		}
		if !slices.ContainsFunc(ports, func(p *Port) bool { return held[p].ID == "" }) {
			maps.Copy(out, held)
		}
	}
	return out
}

// OtherPrompt returns the verdict about the first case whose runs were not given the same tokens;
// nil if there is none. Whatever agrees then proves nothing.
func (c *Comparison) OtherPrompt() *localise.Verdict {
	for _, k := range c.Cases {
		if text := k.otherPrompt(); text != "" {
			return localise.OtherPrompt(k.Name, k.Golden.Steps()[0], text)
		}
	}
	return nil
}

// others says in figures which other layers make an error of their own.
func (c *Comparison) others() (out []string) {
	v := c.Verdict
	if v.Kind == localise.KindUnordered {
		return nil // any of them may be the first
	}
	flow := c.flow().Pass(v.Case, v.Step)
	n := 0
	for _, layer := range v.Frontier {
		if layer == v.Layer || layer == v.Before || flow.Inside(layer, v.Layer) || flow.Inside(v.Layer, layer) {
			continue
		}
		text := c.ownError(flow, layer)
		if text == "" {
			continue
		}
		if n++; n <= maxOthers {
			out = append(out, report.AlsoWrong(layer)+text)
		}
	}
	if n > maxOthers {
		out = append(out, fmt.Sprintf("and %d more layers are, see the frontier", n-maxOthers))
	}
	return out
}

// ownError says in figures what a layer of the frontier does wrong: what it returns, or what its own
// code gives to a layer inside of it.
func (c *Comparison) ownError(flow *trace.Pass, layer string) string {
	off := func(r compare.Result, why string) string {
		return fmt.Sprintf(" is off by relative L2 %.3g %s, its worst row by %.3g", r.RelL2, why, r.WorstRow.RelL2)
	}
	const alone = "on the golden inputs"
	run := ""
	for _, p := range c.Layers.run(layer, flow.Case, flow.Step).Judged {
		if p.Agrees || !p.comparable() {
			continue
		}
		if p.Injected != nil && !p.Injected.agrees {
			return "whose " + p.Port + off(p.Injected.result, alone)
		}
		run = cmp.Or(run, "whose "+p.Port+off(p.Base.Result, "although its inputs agree"))
	}
	for _, e := range flow.Events {
		p := c.Ports[e.Index]
		if e.Input && p.Injected != nil && !p.Injected.agrees && flow.Container(p.Layer) == layer {
			return "whose code gives " + p.Layer + " an " + p.Port + " that" + off(p.Injected.result, alone)
		}
	}
	return run
}

// given collects what the runs say of themselves.
func (c *Comparison) given() localise.Given {
	g := localise.Given{Path: c.ofPath, Stateless: stateless, OtherPrompt: map[string]string{}, Load: map[string]localise.Load{}, Unseen: map[string][]localise.Unseen{}}
	uncaptured := map[string]map[string][]string{} // by case and layer of the candidate
	for _, k := range c.Cases {
		uncaptured[k.Name] = k.Actual.Info.Uncaptured
		g.OtherPrompt[k.Name] = k.otherPrompt()
		if a := k.Actual.Info.LoadAudit; a != nil && len(a.Missing)+len(a.Unused) > 0 {
			g.Load[k.Name] = localise.Load{Missing: a.Missing, Unused: a.Unused}
		}
	}
	seen := map[localise.Unseen]bool{}
	for _, p := range c.Ports {
		if p.ActualSide == nil || len(uncaptured[p.Case]) == 0 {
			continue
		}
		layer, _ := label.Split(strings.SplitN(p.ActualSide.Name, " + ", 2)[0])
		args := uncaptured[p.Case][layer]
		u := localise.Unseen{Layer: p.Layer, Text: fmt.Sprintf("no hook of the candidate sees %s of %s", strings.Join(args, ", "), layer)}
		if len(args) > 0 && !seen[u] {
			seen[u] = true
			g.Unseen[p.Case] = append(g.Unseen[p.Case], u)
		}
	}
	return g
}

// unordered returns the cases of which neither side recorded the order of execution.
func (c *Comparison) unordered() map[string]bool {
	cases := map[string]bool{}
	for _, k := range c.Cases {
		if k.Golden.OrderBy == dump.OrderNatural && k.Actual.OrderBy == dump.OrderNatural {
			cases[k.Name] = true
		}
	}
	return cases
}

// record returns the port as the localiser sees it.
func (p *Port) record() localise.Record {
	r := localise.Record{Joined: p.Elsewhere == "" && (p.comparable() || p.misfit()), Agrees: p.Agrees && !p.misfit(), Integer: !p.Golden.DType().IsFloat(), Len: p.Golden.Len()}
	if in := p.Injected; in != nil {
		r.Alone = &localise.Alone{Agrees: in.agrees, Error: worst(in.result) / max(p.pooled, 1)}
	}
	switch {
	case p.misfit():
		r.Error = math.Inf(1)
	case r.Joined:
		b := p.Base.Result
		r.Beyond = p.isDowncast(b) || p.beyondCost()
		r.Error, r.Whole, r.Epsilon = worst(b), b.RelL2, 2*p.DType.Epsilon()
		if p.pooled > 0 {
			r.Error, r.Whole = r.Error/p.pooled, r.Whole/p.pooled
		}
		if p.Benign != "" || p.Rewrite != "" || r.Integer && r.Agrees {
			r.Error = 0
		} else if r.Integer {
			r.Error = math.Inf(1)
		}
		r.Along = p.along()
		if !r.Agrees && !r.Integer {
			r.Grid = structure.Grid(p.Golden, p.Actual)
		}
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
