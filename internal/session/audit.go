package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/localise"
)

// audited: where the candidate itself says that it did not load what the checkpoint holds, that comes before what follows from it.
func (c *Comparison) audited(v *localise.Verdict) {
	if v.Kind == localise.KindInput {
		return
	}
	for _, k := range c.Cases {
		a := k.Actual.Info.LoadAudit
		if k.Name != v.Case || a == nil || len(a.Missing)+len(a.Unused) == 0 {
			continue
		}
		v.Kind, v.Proven = localise.KindWeights, true
		v.Text = "the weights that were loaded are not those of the checkpoint: " + loaded(a) + "; " + v.Text
		if p := c.starved(k.Name, v.Step, a.Missing); p != nil {
			v.Layer, v.Port, v.After, v.Before, v.Gaps = p.Layer, p.Port, "", "", nil
		}
		return
	}
}

// starved is the first wrong output of a layer of which a weight is missing: a weight's name without its last part is the end of the
// layer's label, or the other way round.
func (c *Comparison) starved(caseName, step string, missing []string) *Port {
	for _, p := range c.Ports {
		if p.Case != caseName || p.Step != step || !p.Joined() || !p.Judged() || p.Agrees {
			continue
		}
		if slices.ContainsFunc(missing, func(name string) bool {
			module := parentOf(name)
			return module != "" && (strings.HasSuffix("."+p.Layer, "."+module) || strings.HasSuffix("."+module, "."+p.Layer))
		}) {
			return p
		}
	}
	return nil
}

func loaded(a *dump.LoadAudit) string {
	var parts []string
	if len(a.Missing) > 0 {
		parts = append(parts, fmt.Sprintf("%d missing (%s)", len(a.Missing), few(a.Missing)))
	}
	if len(a.Unused) > 0 {
		parts = append(parts, fmt.Sprintf("%d of the checkpoint not used (%s)", len(a.Unused), few(a.Unused)))
	}
	return strings.Join(parts, ", ")
}

// unseen names what no hook could record of the layer of a verdict, as the candidate's run says.
func (c *Comparison) unseen(v *localise.Verdict) {
	for _, k := range c.Cases {
		if k.Name != v.Case || v.Layer == "" {
			continue
		}
		for layer, args := range k.Actual.Info.Uncaptured {
			if c.isCandidate(v.Layer, layer) {
				v.Evidence = append(v.Evidence, fmt.Sprintf("no hook of the candidate sees %s of %s", strings.Join(args, ", "), layer))
			}
		}
	}
}

// isCandidate reports whether a layer of the candidate was joined with one of the golden.
func (c *Comparison) isCandidate(golden, layer string) bool {
	return slices.ContainsFunc(c.Ports, func(p *Port) bool {
		return p.Layer == golden && p.ActualSide != nil && strings.HasPrefix(p.ActualSide.Name, layer+"-")
	})
}
