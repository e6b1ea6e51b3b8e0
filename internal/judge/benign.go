package judge

import (
	"fmt"
	"slices"

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
	for _, p := range c.Ports {
		if !p.comparable() || p.Agrees || !p.Judged() || !c.undone(p) {
			continue
		}
		floor := compare.Floor(p.Golden.DType(), p.Actual.DType())
		if d := structure.Interleaved(p.Golden, p.Actual, floor); d > 0 {
			p.Agrees, p.Benign = true, fmt.Sprintf("the halves of each head of %d are interleaved, which the attention undoes", d)
		}
	}
}

// undone reports whether the layer directly around p returns the right output and p's own inputs
// are right.
func (c *Comparison) undone(p *Port) bool {
	around := c.flow().Pass(p.Case, p.Step).Container(p.Layer)
	if label.Name(around) != label.Parent(label.Name(p.Layer)) {
		return false
	}
	seen := false
	for _, o := range c.Layers.run(around, p.Case, p.Step).Judged {
		if o.Joined() {
			if !o.Agrees {
				return false
			}
			seen = true
		}
	}
	wrong := func(in *Port) bool { return !in.Agrees }
	return seen && !slices.ContainsFunc(c.Layers.run(p.Layer, p.Case, p.Step).Inputs, wrong)
}
