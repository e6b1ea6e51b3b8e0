package judge

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Trial is one output of a layer in one forward pass, with what a user may calculate it from: by
// label, the tensors of the layer, of what lies inside it and of its siblings, in the golden's own
// shapes. Where the candidate recorded nothing, the golden tensor stands in for its own.
type Trial struct {
	*diagnose.Port
	GoldenRun, ActualRun map[string]*tensor.Tensor // by label: "model.norm-input_0"
}

// Inputs returns the layer's own inputs by port.
func (t *Trial) Inputs(run map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for name, x := range run {
		if layer, port := label.Split(name); layer == t.Layer && label.IsInput(port) {
			out[port] = x
		}
	}
	return out
}

// Trials returns an output of a layer in every forward pass; port "" is its first one. The layer is
// named as in tests, and lies in the scope.
func (c *Comparison) Trials(name, port string) ([]*Trial, error) {
	layer, err := c.Layers.Find(name)
	if err != nil {
		return nil, err
	}
	if d := (demand{within: c.scope}); !d.asks(layer) {
		return nil, fmt.Errorf("%s is in no layer of the scope", layer)
	}
	type pass struct{ caseName, step string }
	var out []*Trial
	done := map[pass]bool{}
	var known []string
	for _, p := range c.Ports {
		if p.Layer != layer || !p.Judged() {
			continue
		}
		known = append(known, p.Port)
		k := pass{p.Case, p.Step}
		if !p.Joined() || done[k] || port != "" && p.Port != port {
			continue
		}
		done[k] = true
		out = append(out, c.trial(p))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no output %q that both sides recorded: the golden has %s", layer, port, strings.Join(known, ", "))
	}
	return out, nil
}

func (c *Comparison) trial(target *Port) *Trial {
	t := &Trial{Port: target.evidence(), GoldenRun: map[string]*tensor.Tensor{}, ActualRun: map[string]*tensor.Tensor{}}
	for _, p := range c.Ports {
		if p.Case != target.Case || p.Step != target.Step || !label.Beside(p.Layer, target.Layer) && !label.Within(p.Layer, target.Layer) {
			continue
		}
		d := p.evidence()
		name := label.Join(p.Layer, p.Port)
		t.GoldenRun[name], t.ActualRun[name] = d.Golden, d.Golden
		if d.Actual != nil {
			t.ActualRun[name] = d.Actual
		}
	}
	return t
}
