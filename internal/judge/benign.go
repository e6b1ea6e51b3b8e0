package judge

import (
	"fmt"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/structure"
)

// excuse finds outputs that differ by a permutation that the attention undoes: a port may keep q
// and k with the two halves of each head interleaved, with the rotary embedding to match. The
// attention's result is the same, so it is a note and not a failure. Two things must hold: the
// permutation explains the output to the noise floor, and the layer around it returns the right
// output.
func (c *Comparison) excuse() {
	known := map[layerPass]*agreement{}
	for _, p := range c.Ports {
		if !p.comparable() || p.Agrees || !p.Judged() || !c.undone(p, known) {
			continue
		}
		floor := compare.Floor(p.Golden.DType(), p.Actual.DType())
		if d := structure.Interleaved(p.Golden, p.Actual, floor); d > 0 {
			p.Agrees, p.Benign = true, fmt.Sprintf("the halves of each head of %d are interleaved, which the attention undoes", d)
			c.agreement(layerPass{p.Layer, p.Case, p.Step}, known).wrongOutputs--
		}
	}
}

// agreement counts the ports of a layer in one forward pass that both sides have.
type agreement struct{ outputs, wrongOutputs, wrongInputs int }

// agreement counts once for each layer: one layer may have as many ports as a run.
func (c *Comparison) agreement(l layerPass, known map[layerPass]*agreement) *agreement {
	if a := known[l]; a != nil {
		return a
	}
	a := &agreement{}
	known[l] = a
	run := c.Layers.run(l.layer, l.caseName, l.step)
	for _, o := range run.Judged {
		if o.Joined() {
			a.outputs++
			if !o.Agrees {
				a.wrongOutputs++
			}
		}
	}
	for _, in := range run.Inputs {
		if !in.Agrees {
			a.wrongInputs++
		}
	}
	return a
}

// undone reports whether the layer directly around p returns the right output and p's own inputs
// are right.
func (c *Comparison) undone(p *Port, known map[layerPass]*agreement) bool {
	around := c.flow().Pass(p.Case, p.Step).Container(p.Layer)
	if label.Name(around) != label.Parent(label.Name(p.Layer)) {
		return false
	}
	out := c.agreement(layerPass{around, p.Case, p.Step}, known)
	return out.outputs > 0 && out.wrongOutputs == 0 && c.agreement(layerPass{p.Layer, p.Case, p.Step}, known).wrongInputs == 0
}
