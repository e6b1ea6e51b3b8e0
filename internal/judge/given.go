package judge

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
)

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
		layer, _ := label.Split(strings.SplitN(p.ActualSide.Name, " + ", 2)[0])
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
	for _, e := range c.flow().Pass(v.Case, v.Step).Events {
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
