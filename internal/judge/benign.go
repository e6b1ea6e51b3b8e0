package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/label/module"
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

// undone reports whether p's own inputs are right, and so is what the layer around p makes of it:
// all outputs inside that layer that existed later, but q, k and v. Where both sides recorded none,
// the layer around that one tells.
func (c *Comparison) undone(p *Port) bool {
	wrong := func(in *Port) bool { return !in.Agrees }
	if slices.ContainsFunc(c.Layers.run(p.Layer, p.Case, p.Step).Inputs, wrong) {
		return false
	}
	flow := c.flow().Pass(p.Case, p.Step)
	at := slices.IndexFunc(flow.Ports(p.Layer), func(i int) bool { return c.Ports[flow.Events[i].Index] == p })
	later := flow.Events[flow.Ports(p.Layer)[at]+1:]
	for layer := p.Layer; ; {
		around := flow.Container(layer)
		if around == layer {
			return false
		}
		seen := false
		for _, e := range later {
			o := c.Ports[e.Index]
			if e.Layer != around && !flow.Inside(e.Layer, around) || !o.Judged() || !o.Joined() || module.QKV(e.Layer) != 0 {
				continue
			}
			if !o.Agrees {
				return false
			}
			seen = true
		}
		if seen {
			return true
		}
		layer = around
	}
}
