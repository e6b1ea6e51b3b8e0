package judge

import (
	"fmt"
	"math"
	"slices"
	"sort"

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
	passes := map[*trace.Pass]*products{}
	for i, p := range c.Ports {
		if !p.comparable() || p.Agrees || !p.Judged() || !p.kept() {
			continue
		}
		flow := c.flow().Pass(p.Case, p.Step)
		if passes[flow] == nil {
			passes[flow] = c.products(flow)
		}
		if !passes[flow].undone(i) {
			continue
		}
		floor := compare.Floor(p.DType)
		if d := structure.Interleaved(p.Golden, p.Actual, floor); d > 0 {
			p.Agrees, p.Benign = true, fmt.Sprintf("the halves of each head of %d are interleaved, which the attention undoes", d)
		}
	}
}

// kept reports whether the tensor's norm is the golden's, as a permutation leaves it. It costs
// nothing, and few wrong outputs have it.
func (p *Port) kept() bool {
	r := p.Base.Result
	return math.Abs(r.NormActual-r.NormGolden) <= compare.Floor(p.DType).RelL2*r.NormGolden
}

// products tells, in one forward pass, what both sides recorded of a layer and inside of it, but for
// q, k and v. A pass is gone through once, however many of its outputs differ.
type products struct {
	c     *Comparison
	flow  *trace.Pass
	at    map[int]int      // events by the index of their port
	of    map[string]*made // by layer, as trace.Pass.Listed has it
	wrong map[string]bool  // layers of which an input differs
}

// made are outputs as events, in order; wrong are those that differed at first.
type made struct{ all, wrong []int }

func (c *Comparison) products(flow *trace.Pass) *products {
	m := &products{c: c, flow: flow, at: map[int]int{}, of: map[string]*made{}, wrong: map[string]bool{}}
	for at, e := range flow.Events {
		o := c.Ports[e.Index]
		m.at[e.Index] = at
		switch {
		case !o.Joined():
		case !o.Judged():
			m.wrong[o.Layer] = m.wrong[o.Layer] || !o.Agrees
		case !projects(o.Layer):
			for _, layer := range append(flow.Around(o.Layer), o.Layer) {
				if m.of[layer] == nil {
					m.of[layer] = &made{}
				}
				m.of[layer].add(at, !o.Agrees)
			}
		}
	}
	return m
}

func (m *made) add(at int, wrong bool) {
	m.all = append(m.all, at)
	if wrong {
		m.wrong = append(m.wrong, at)
	}
}

// undone reports whether port p's own inputs are right, and so is what the layer around it makes of
// it: what both sides recorded of that layer, and inside of it after p, but for q, k and v. If that
// is nothing, the output of the next layer around tells.
func (m *products) undone(i int) bool {
	p := m.c.Ports[i]
	if m.wrong[p.Layer] {
		return false
	}
	parent := m.flow.Container(p.Layer)
	if label.Name(parent) != label.Parent(label.Name(p.Layer)) {
		parent = label.Parent(p.Layer) // which was not recorded
	}
	if any, wrong := m.after(m.of[m.flow.Listed(parent)], m.flow.Since(m.flow.Start(p.Layer)), m.at[i]); any {
		return !wrong
	}
	for layer := p.Layer; ; {
		around := m.flow.Container(layer)
		if around == layer {
			return false
		}
		if out := m.c.Layers.run(around, p.Case, p.Step).Judged; len(out) > 0 {
			return !slices.ContainsFunc(out, func(o *Port) bool { return !o.Agrees })
		}
		layer = around
	}
}

// after reports whether there are outputs from an event on, besides one, and whether one of those
// differs. What was excused does not.
func (m *products) after(outputs *made, from, besides int) (any, wrong bool) {
	if outputs == nil {
		return false, false
	}
	rest := outputs.all[sort.SearchInts(outputs.all, from):]
	any = len(rest) > 1 || len(rest) == 1 && rest[0] != besides
	differs := func(at int) bool { return !m.c.Ports[m.flow.Events[at].Index].Agrees }
	last := len(outputs.wrong)
	for last > 0 && !differs(outputs.wrong[last-1]) {
		last--
	}
	outputs.wrong = outputs.wrong[:last]
	for _, at := range slices.Backward(outputs.wrong) {
		if at < from {
			break
		}
		if at != besides && differs(at) {
			return any, true
		}
	}
	return any, false
}

// projects reports whether a layer makes q, k or v, which a port may permute together.
func projects(layer string) bool {
	return module.QKV(layer) != 0 || module.QueryNorm.Has(layer) || module.KeyNorm.Has(layer)
}
