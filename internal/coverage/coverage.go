// Package coverage says what of a reference has to be compared for a pass: the model's final output and
// every numbered block, or what patterns ask for. It knows what was compared, and judges nothing.
package coverage

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Port is a tensor of the reference that is not empty.
type Port struct {
	Layer, Port string
	Input       bool
	Covers      bool           // it was compared, and says something about the candidate
	Lacking     bool           // there is a reason why the candidate may not have it
	Tensor      *tensor.Tensor // as it was recorded
}

// Pass is one forward pass of the reference.
type Pass struct {
	Case, Step string
	Ports      []Port                    // in the order in which the values existed
	Container  func(layer string) string // the recorded layer around a layer
}

// Demand is what has to be compared.
type Demand struct {
	Within []*glob.Pattern // layers; none: the whole model
	Each   bool            // every layer that matches counts, not only numbered blocks
}

// gap is something that is not covered.
type gap struct{ what, is string }

// Open says what was not compared, a sentence each, with the forward passes that it holds for where these
// are not all.
func (d Demand) Open(passes []Pass) (out []string) {
	var gaps []gap
	in := map[gap][]string{}
	for _, p := range passes {
		for _, g := range d.pass(&p) {
			if in[g] == nil {
				gaps = append(gaps, g)
			}
			in[g] = append(in[g], "step "+p.Step+" of case "+p.Case)
		}
	}
	for _, g := range gaps {
		what := g.what
		if len(in[g]) < len(passes) {
			what += " in " + label.Few(in[g])
		}
		out = append(out, what+" "+g.is)
	}
	return out
}

// Asks reports whether a layer, or one around it, is asked for.
func (d Demand) Asks(layer string) bool { return len(d.Within) == 0 || d.asked(layer) != "" }

// asked returns the outermost layer that matches a pattern and is or holds a layer; "" if none does.
func (d Demand) asked(layer string) (outer string) {
	for l := label.Name(layer); l != ""; l = label.Parent(l) {
		if slices.ContainsFunc(d.Within, func(p *glob.Pattern) bool { return p.Match(l) }) {
			outer = l
		}
	}
	return outer
}

func (d Demand) pass(p *Pass) (gaps []gap) {
	parts, final := d.parts(p)
	if final != nil {
		if !slices.ContainsFunc(parts, func(b *part) bool { return b.compared }) {
			return []gap{{"no output", "was compared"}}
		}
		what := "the final output " + final.Layer + " " + final.Port
		if !final.Covers && !p.holds(final.Tensor, false) {
			gaps = append(gaps, gap{what, "was not compared"})
		}
		if isZero(final.Tensor) {
			gaps = append(gaps, gap{what, "is all zero, as that of a model that does nothing"})
		}
	}
	var names []string
	for _, b := range parts {
		switch {
		case b.name == "", b.compared, b.lacking, final != nil && final.Layer == b.name:
		case !b.leaf || !p.holds(b.first, true):
			names = append(names, b.name)
		}
	}
	switch len(names) {
	case 0:
	case 1:
		gaps = append(gaps, gap{"no output of " + names[0], "was compared"})
	default:
		gaps = append(gaps, gap{fmt.Sprintf("no output of %d layers, %s,", len(names), label.Few(names)), "was compared"})
	}
	return gaps
}

// part is what is demanded as a whole: a numbered block, or a layer that a pattern names.
type part struct {
	name     string         // "" of what belongs to none
	first    *tensor.Tensor // the output that came first
	compared bool           // one of its outputs was
	lacking  bool           // the candidate may lack them all
	leaf     bool           // nothing inside was recorded
}

// parts lists the parts of a pass in the order in which they ended, and the first output of the
// layer that ended last, which is the model's own. What the candidate may lack, as activations, poolers and
// what the fixture ignores, does not count for it.
func (d Demand) parts(p *Pass) (list []*part, final *Port) {
	byName := map[string]*part{}
	for i := range p.Ports {
		port := &p.Ports[i]
		if port.Input || !d.Asks(port.Layer) {
			continue
		}
		if !port.Lacking && (final == nil || final.Layer != port.Layer || final.Tensor.Len() == 0) {
			final = port
		}
		if port.Tensor.Len() == 0 {
			continue
		}
		names := []string{p.block(port.Layer)}
		if outer := d.asked(port.Layer); d.Each && outer != "" && outer != names[0] {
			names = append(names, outer)
		}
		for _, name := range names {
			b := byName[name]
			if b == nil {
				b = &part{name: name, first: port.Tensor, lacking: true, leaf: true}
				byName[name] = b
				list = append(list, b)
			}
			b.compared, b.lacking = b.compared || port.Covers, b.lacking && port.Lacking
			b.leaf = b.leaf && !label.Inside(port.Layer, name)
		}
	}
	if len(d.Within) > 0 {
		final = nil // the parts say it all
	}
	return list, final
}

// block returns the outermost numbered block around a layer, with the call in which the layer ran;
// "" if there is none.
func (p *Pass) block(layer string) string {
	block := label.Block(label.Name(layer))
	if block == "" {
		return ""
	}
	for label.Name(layer) != block {
		up := p.Container(layer)
		if up == layer || !label.Within(up, block) {
			return block // it was not recorded itself
		}
		layer = up
	}
	return layer // a call of the block itself
}

// holds reports whether the values of an output were compared as those of another one, as a model returns
// what its last layer does, or that in another type; or as an input of some layer, as those of a numbered
// layer of a Sequential are.
func (p *Pass) holds(t *tensor.Tensor, input bool) bool {
	return slices.ContainsFunc(p.Ports, func(o Port) bool { return o.Input == input && o.Covers && same(o.Tensor, t) })
}

// same reports whether two tensors hold the same numbers, in one type or in two.
func same(a, b *tensor.Tensor) bool {
	switch {
	case a.Len() != b.Len():
		return false
	case a.DType() == b.DType():
		x, okX := a.Bytes()
		y, okY := b.Bytes()
		return okX && okY && bytes.Equal(x, y)
	case !a.DType().IsFloat() || !b.DType().IsFloat() || !slices.Equal(a.Shape(), b.Shape()):
		return false
	}
	r, err := compare.Tensors(a, b, compare.Tolerance{})
	return err == nil && r.MaxAbs.Value == 0 && r.BadNonFinite == 0
}

// leastZeros is from how many zeros on a tensor says nothing: a few may be what someone wants to compare. By reason.
const leastZeros = 16

// isZero reports whether a tensor has nothing but zeros.
func isZero(t *tensor.Tensor) bool {
	n := t.Len()
	v := make([]float64, min(n, 1<<12))
	for at := 0; at < n; at += len(v) {
		if slices.ContainsFunc(v[:t.Float64s(v, at)], func(x float64) bool { return x != 0 }) {
			return false
		}
	}
	return n >= leastZeros && t.DType().IsFloat()
}
