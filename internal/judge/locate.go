package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
)

// locate finds the first divergence. A run in which every judged port passes has none, and costs
// nothing more.
func (c *Comparison) locate() error {
	if c.clean() {
		c.Verdict = c.OtherPrompt()
		return c.warn()
	}
	if err := c.identify(); err != nil {
		return err
	}
	if err := c.replayAll(); err != nil {
		return err
	}
	return c.placeFaults()
}

// held says of outputs that the recording is wrong there, and not the model: see [diagnose.HeldBy]. It
// is empty for a forward pass in which anything else is wrong, too.
func (c *Comparison) held() map[*Port]diagnose.Held {
	run, ports, _ := c.evidence(c.search.Mode != setting.DiagnoseOff) // its error is told where causes are looked for
	of, wrong := map[*diagnose.Port]*Port{}, map[[2]string][]*Port{}  // wrong: by case and step
	for _, p := range c.Ports {
		of[ports[p]] = p
		if p.Judged() && p.Joined() && !p.Agrees {
			pass := [2]string{p.Case, p.Step}
			wrong[pass] = append(wrong[pass], p)
		}
	}
	out := map[*Port]diagnose.Held{}
	for pass, ports := range wrong {
		held := map[*Port]diagnose.Held{}
		for d, h := range diagnose.HeldBy(run, pass[0], pass[1]) {
			if h.Proven || h.ID == diagnose.Neighbour {
				held[of[d]] = h
			}
		}
		if !slices.ContainsFunc(ports, func(p *Port) bool { return held[p].ID == "" }) {
			maps.Copy(out, held)
		}
	}
	return out
}

// Evidence returns the runs as hypotheses see them, with weights and config where these are known. Where
// they cannot be read it is without them.
func (c *Comparison) Evidence() (*diagnose.Run, error) {
	run, _, err := c.evidence(true)
	if err != nil {
		err = fmt.Errorf("weights or config: %w", err)
	}
	return run, err
}

func (c *Comparison) evidence(weights bool) (run *diagnose.Run, ports map[*Port]*diagnose.Port, err error) {
	run, ports = &diagnose.Run{TokenIDs: c.tokenIDs}, map[*Port]*diagnose.Port{}
	if weights && c.search.Evidence != nil {
		run.Weights, run.Config, err = c.search.Evidence()
	}
	for _, p := range c.Ports {
		ports[p] = p.evidence()
		run.Ports = append(run.Ports, ports[p])
	}
	return run, ports, err
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

// others says in figures what else makes an error of its own.
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
	flow := c.flow().Pass(v.Case, v.Step)
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
