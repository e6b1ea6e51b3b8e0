package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/structure"
)

// excuse finds outputs that differ by a permutation that the attention undoes: a port may keep q
// and k with the two halves of each head interleaved, with the rotary embedding to match. The
// attention's result is the same, so it is a note and not a failure. Two things must hold: the
// permutation explains the output to the noise floor, and what is made of it is right.
func (c *Comparison) excuse() {
	for _, p := range c.Ports {
		if !p.comparable() || p.Agrees || !p.Judged() || !p.kept() || !c.undone(p) {
			continue
		}
		floor := compare.Floor(p.Golden.DType(), p.Actual.DType())
		if d := structure.Interleaved(p.Golden, p.Actual, floor); d > 0 {
			p.Agrees, p.Benign = true, fmt.Sprintf("the halves of each head of %d are interleaved, which the attention undoes", d)
		}
	}
}

// kept reports whether the tensor's norm is the golden's, as a permutation leaves it. It costs
// nothing, and few wrong outputs have it.
func (p *Port) kept() bool {
	r := p.Base.Result
	return math.Abs(r.NormActual-r.NormGolden) <= compare.Floor(p.Golden.DType(), p.Actual.DType()).RelL2*r.NormGolden
}

// undone reports whether p's own inputs are right, and so is what the layer around p makes of it:
// what both sides recorded of it, and inside of it after p, but for q, k and v. If that is nothing,
// the output of the next layer around tells.
func (c *Comparison) undone(p *Port) bool {
	wrong := func(o *Port) bool { return !o.Agrees }
	if slices.ContainsFunc(c.Layers.run(p.Layer, p.Case, p.Step).Inputs, wrong) {
		return false
	}
	flow := c.flow().Pass(p.Case, p.Step)
	parent := flow.Container(p.Layer)
	if label.Name(parent) != label.Parent(label.Name(p.Layer)) {
		parent = label.Parent(p.Layer) // which was not recorded
	}
	var made []*Port
	for _, e := range flow.Events[flow.Since(flow.Start(p.Layer)):] {
		o := c.Ports[e.Index]
		if o != p && o.Judged() && o.Joined() && !projects(o.Layer) && (o.Layer == parent || flow.Inside(o.Layer, parent)) {
			made = append(made, o)
		}
	}
	for layer := p.Layer; len(made) == 0; {
		around := flow.Container(layer)
		if around == layer {
			return false
		}
		made, layer = c.Layers.run(around, p.Case, p.Step).Judged, around
	}
	return !slices.ContainsFunc(made, wrong)
}

// projects reports whether a layer makes q, k or v, which a port may permute together.
func projects(layer string) bool {
	return module.QKV(layer) != 0 || module.QueryNorm.Has(layer) || module.KeyNorm.Has(layer)
}
