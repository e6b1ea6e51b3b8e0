package judge

import (
	"fmt"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/structure"
	"github.com/goparity/goparity/internal/trace"
)

// excuse finds outputs that differ by a permutation that the attention undoes: a port may keep q
// and k with the two halves of each head interleaved, with the rotary embedding to match. The
// attention's result is the same, so it is a note and not a failure. Two things must hold: the
// permutation explains the output to the noise floor, and what is made of it is right.
func (c *Comparison) excuse() {
	known, inside := map[layerPass]*agreement{}, map[layerPass]made{}
	for _, p := range c.Ports {
		if !p.comparable() || p.Agrees || !p.Judged() || !c.undone(p, known, inside) {
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

// made is what both sides recorded of an attention and inside of it, but for q, k and v.
type made struct {
	wrong int // outputs
	last  int // event of the last output, −1 for none
}

func (c *Comparison) made(layer string, flow *trace.Pass) made {
	m, began := made{last: -1}, false
	for i := flow.Since(flow.Start(layer)); i < len(flow.Events); i++ {
		e := &flow.Events[i]
		p := c.Ports[e.Index]
		if e.Layer != layer && !flow.Inside(e.Layer, layer) {
			if began {
				break // what is inside of it ran at a stretch
			}
			continue
		}
		began = true
		if !p.Judged() || !p.Joined() || projects(e.Layer) {
			continue
		}
		if m.last = i; !p.Agrees {
			m.wrong++
		}
	}
	return m
}

// projects reports whether a layer makes q, k or v, which a port may permute together.
func projects(layer string) bool {
	return module.QKV(layer) != 0 || module.QueryNorm.Has(layer) || module.KeyNorm.Has(layer)
}

// undone reports whether p's own inputs are right, and so is what the layer around p makes of it:
// what both sides recorded of that layer, and inside of it after p. If that is nothing, the output
// of the next layer around tells.
func (c *Comparison) undone(p *Port, known map[layerPass]*agreement, inside map[layerPass]made) bool {
	own := c.agreement(layerPass{p.Layer, p.Case, p.Step}, known)
	if own.wrongInputs > 0 {
		return false
	}
	flow := c.flow().Pass(p.Case, p.Step)
	parent := flow.Container(p.Layer)
	if label.Name(parent) != label.Parent(label.Name(p.Layer)) {
		parent = label.Parent(p.Layer) // which was not recorded
	}
	k := layerPass{parent, p.Case, p.Step}
	m, ok := inside[k]
	if !ok {
		m = c.made(parent, flow)
		inside[k] = m
	}
	if !projects(p.Layer) {
		m.wrong -= own.wrongOutputs
	}
	if ports := flow.Ports(p.Layer); m.wrong > 0 || m.last > ports[len(ports)-1] {
		return m.wrong == 0
	}
	for layer := p.Layer; ; {
		around := flow.Container(layer)
		if around == layer {
			return false
		}
		if out := c.agreement(layerPass{around, p.Case, p.Step}, known); out.outputs > 0 {
			return out.wrongOutputs == 0
		}
		layer = around
	}
}
