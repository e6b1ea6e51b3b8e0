package judge

import (
	"fmt"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/structure"
)

// excuse finds outputs that differ by a permutation that the attention undoes: a port may keep q
// and k with the two halves of each head interleaved, with the rotary embedding to match. The
// attention's result is the same, so it is a note and not a failure. Two things must hold: the
// permutation explains the output to the noise floor, and the layer around it returns the right
// output.
func (c *Comparison) excuse() error {
	for _, p := range c.Ports {
		if !p.comparable() || p.Agrees || !p.Judged() {
			continue
		}
		flow, err := c.flow()
		if err != nil {
			return err
		}
		if around := flow.Pass(p.Case, p.Step).Container(p.Layer); !c.undone(p, around) {
			continue
		}
		if d := structure.Interleaved(p.Golden, p.Actual, p.Floor); d > 0 {
			p.Agrees, p.Benign = true, fmt.Sprintf("the halves of each head of %d are interleaved, which the attention undoes", d)
		}
	}
	return nil
}

// undone reports whether the layer directly around p returns the right output and p's own inputs
// are right.
func (c *Comparison) undone(p *Port, around string) bool {
	if label.Name(around) != label.Parent(label.Name(p.Layer)) {
		return false
	}
	seen := false
	for _, o := range c.Ports {
		if o.Case != p.Case || o.Step != p.Step || !o.Joined() {
			continue
		}
		if o.Layer == p.Layer && !o.Judged() && !o.Agrees {
			return false
		}
		if o.Layer == around && o.Judged() {
			if !o.Agrees {
				return false
			}
			seen = true
		}
	}
	return seen
}
