package judge

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/trace"
	"github.com/goparity/goparity/tensor"
)

// Demand asks that what matters most of the golden was compared: the model's final output, every
// numbered block, and layers that may be one under two names. Where the fixture or the command has a
// scope, it asks only for the layers that the scope names, and for the numbered blocks in them. It
// returns what is open, a sentence each; every later [Comparison.Report] that would be a pass is
// incomplete by it.
func (c *Comparison) Demand() []string { return c.demand(demand{within: c.scope, each: true}) }

// DemandBlocks asks, like [Comparison.Demand], that in every numbered block in which layers match a
// pattern one of them was compared.
func (c *Comparison) DemandBlocks(pattern string) ([]string, error) {
	p, err := glob.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return c.demand(demand{within: []*glob.Pattern{p}}), nil
}

func (c *Comparison) demand(d demand) []string {
	err := mapfile.Guard(func() error {
		for _, p := range c.flow().Passes {
			d.pass(c, p)
		}
		return nil
	})
	if err != nil {
		d.open = append(d.open, open{what: err.Error()})
	}
	for _, s := range c.lookalikes {
		if d.each && d.asks(s.golden) {
			d.open = append(d.open, open{what: s.String()})
		}
	}
	if c.allZero() {
		d.open = append(d.open, open{what: "the golden is all zero in every output that was compared, where a model that does nothing passes too"})
	}
	texts := d.texts(len(c.flow().Passes))
	for _, text := range texts {
		if !slices.Contains(c.open, text) {
			c.open = append(c.open, text)
		}
	}
	return texts
}

// ScopeError says that a pattern of the scope matches no layer of the golden.
type ScopeError struct{ Pattern, Hint string }

func (e *ScopeError) Error() string {
	return fmt.Sprintf("scope: %q matches no layer of the golden%s", e.Pattern, e.Hint)
}

func (c *Comparison) checkScope() error {
	all := c.Layers.labels()
	for _, g := range c.scope {
		d := demand{within: []*glob.Pattern{g}}
		if !slices.ContainsFunc(all, d.asks) {
			return &ScopeError{g.String(), didYouMean(g.String(), all)}
		}
	}
	return nil
}

// covers reports whether a port says something about the candidate: a golden of nothing but NaN does
// not.
func (p *Port) covers() bool {
	return p.Joined() && p.Base.Result.N > p.Base.Result.NaNGolden && (p.printed == nil || p.printed.whole())
}

// allZero reports whether no compared output of the golden has anything but zeros. A single tensor
// of zeros may be what someone wants to compare.
func (c *Comparison) allZero() bool {
	zeros := 0
	for _, p := range c.Ports {
		if !p.Judged() || !p.covers() {
			continue
		}
		if p.Base.Result.NormGolden > 0 {
			return false
		}
		zeros++
	}
	return zeros > 1
}

// coverage counts the golden's outputs and those that were compared: by a test or, with all, at all.
func (c *Comparison) coverage(all bool) *report.Coverage {
	n := &report.Coverage{Open: c.open}
	for _, p := range c.Ports {
		if !p.Judged() || p.Golden.Len() == 0 {
			continue
		}
		n.Outputs++
		if p.covers() && (all || p.decision() != nil) {
			n.Compared++
		}
	}
	return n
}

// demand collects what was not compared.
type demand struct {
	within []*glob.Pattern // none: the whole model
	each   bool            // every layer that matches counts, not only numbered blocks
	open   []open
}

// open is something that is not covered: in one forward pass or, without a case, in all.
type open struct{ what, is, caseName, step string }

// asks reports whether a layer, or one around it, is asked for.
func (d *demand) asks(layer string) bool {
	return len(d.within) == 0 || d.asked(layer) != ""
}

// asked returns the outermost layer that matches a pattern and is or holds a layer; "" if none does.
func (d *demand) asked(layer string) (outer string) {
	for l := label.Name(layer); l != ""; l = label.Parent(l) {
		if slices.ContainsFunc(d.within, func(p *glob.Pattern) bool { return p.Match(l) }) {
			outer = l
		}
	}
	return outer
}

// pass looks at one forward pass.
func (d *demand) pass(c *Comparison, p *trace.Pass) {
	say := func(what, is string) { d.open = append(d.open, open{what, is, p.Case, p.Step}) }
	parts, final := d.parts(c, p)
	if final != nil && !slices.ContainsFunc(parts, func(b *part) bool { return b.compared > 0 }) {
		say("no output", "was compared")
		return
	}
	if final != nil && !final.covers() && !c.again(p, final) {
		say("the final output "+final.Layer+" "+final.Port, "was not compared")
	}
	var names []string
	seen := seen{c: c, pass: p}
	for _, b := range parts {
		switch {
		case b.name == "", b.compared > 0, b.lacking == len(b.outputs), final != nil && final.Layer == b.name:
		case !b.leaf() || !seen.asInput(b.outputs[0].entry):
			names = append(names, b.name)
		}
	}
	switch len(names) {
	case 0:
	case 1:
		say("no output of "+names[0], "was compared")
	default:
		say(fmt.Sprintf("no output of %d layers, %s,", len(names), label.Few(names)), "was compared")
	}
}

// part is what is demanded as a whole: a numbered block, or a layer that a pattern names.
type part struct {
	name              string // "" of what belongs to none
	outputs           []*Port
	compared, lacking int
}

// leaf reports whether nothing inside the part was recorded.
func (b *part) leaf() bool {
	return !slices.ContainsFunc(b.outputs, func(o *Port) bool { return label.Inside(o.Layer, b.name) })
}

// parts lists the parts of a pass in the order in which they ended, and the first output of the
// layer that ended last, which is the model's own. Activations, poolers and what the fixture ignores
// do not count for it.
func (d *demand) parts(c *Comparison, p *trace.Pass) (list []*part, final *Port) {
	byName := map[string]*part{}
	for _, e := range p.Events {
		port := c.Ports[e.Index]
		if e.Input || port.Golden.Len() == 0 || !d.asks(e.Layer) {
			continue
		}
		if port.Lacking == "" && (final == nil || final.Layer != e.Layer) {
			final = port
		}
		for _, name := range d.names(p, e.Layer) {
			b := byName[name]
			if b == nil {
				b = &part{name: name}
				byName[name] = b
				list = append(list, b)
			}
			b.outputs = append(b.outputs, port)
			if port.covers() {
				b.compared++
			} else if port.Lacking != "" {
				b.lacking++
			}
		}
	}
	if len(d.within) > 0 {
		final = nil // the parts say it all
	}
	return list, final
}

// names returns the parts that a layer belongs to. What belongs to none has the name "".
func (d *demand) names(p *trace.Pass, layer string) []string {
	names := []string{blockOf(p, layer)}
	if outer := d.asked(layer); d.each && outer != "" && outer != names[0] {
		names = append(names, outer)
	}
	return names
}

// blockOf returns the outermost numbered block around a layer, with the call in which the layer ran;
// "" if there is none.
func blockOf(p *trace.Pass, layer string) string {
	block := label.Block(label.Name(layer))
	if block == "" || layer == block {
		return block
	}
	for l := layer; label.Name(l) != block; {
		up := p.Container(l)
		if up == l || !label.Within(up, block) {
			return block // it was not recorded itself
		}
		l = up
		if label.Name(l) == block {
			return l
		}
	}
	return layer // a call of the block itself
}

// again reports whether a port holds the values of an output that was compared: a model returns what
// its last layer does, or that in another type.
func (c *Comparison) again(p *trace.Pass, port *Port) bool {
	return slices.ContainsFunc(p.Events, func(e trace.Event) bool {
		o := c.Ports[e.Index]
		return !e.Input && o.covers() && sameValues(o.entry, port.entry)
	})
}

// seen knows the values that were compared as the input of some layer, as those are of a numbered
// layer of a Sequential with nothing inside it.
type seen struct {
	c    *Comparison
	pass *trace.Pass
	seed maphash.Seed
	by   map[uint64]bool // hashes of bytes; nil before the first question
}

func (s *seen) asInput(t *tensor.Tensor) bool {
	if s.by == nil {
		s.seed, s.by = maphash.MakeSeed(), map[uint64]bool{}
		for _, e := range s.pass.Events {
			if o := s.c.Ports[e.Index]; e.Input && o.covers() {
				if data, ok := o.entry.Bytes(); ok {
					s.by[maphash.Bytes(s.seed, data)] = true
				}
			}
		}
	}
	data, ok := t.Bytes()
	return ok && s.by[maphash.Bytes(s.seed, data)]
}

// texts returns the sentences, each once, with the forward passes that it holds for where these are
// not all.
func (d *demand) texts(passes int) (out []string) {
	in := map[open][]string{}
	for _, o := range d.open {
		in[open{what: o.what, is: o.is}] = append(in[open{what: o.what, is: o.is}], "step "+o.step+" of case "+o.caseName)
	}
	for _, o := range d.open {
		o.caseName, o.step = "", ""
		where, ok := in[o]
		if !ok {
			continue // said before
		}
		delete(in, o)
		text := o.what
		if o.is != "" && len(where) < passes {
			text += " in " + label.Few(where)
		}
		out = append(out, strings.TrimSpace(text+" "+o.is))
	}
	return out
}

// sameValues reports whether two tensors hold the same numbers, in one type or in two.
func sameValues(a, b *tensor.Tensor) bool {
	switch {
	case a.Len() != b.Len():
		return false
	case a.DType() == b.DType():
		return equalBytes(a, b)
	case !a.DType().IsFloat() || !b.DType().IsFloat() || !slices.Equal(a.Shape(), b.Shape()):
		return false
	}
	r, err := compare.Tensors(a, b, compare.Tolerance{})
	return err == nil && r.MaxAbs.Value == 0 && r.BadNonFinite == 0
}
