package judge

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// Scope says what must be compared for a pass, by patterns of golden layers; none: the whole model.
type Scope []*label.Pattern

// Asks reports whether a layer, or one around it, is asked for.
func (s Scope) Asks(layer string) bool { return len(s) == 0 || s.outermost(layer) != "" }

// outermost returns the outermost layer that matches a pattern and is or holds a layer; "" if none does.
func (s Scope) outermost(layer string) (outer string) {
	for l := label.Name(layer); l != ""; l = label.Parent(l) {
		if slices.ContainsFunc(s, func(p *label.Pattern) bool { return p.Match(l) }) {
			outer = l
		}
	}
	return outer
}

// ScopeError says that a pattern of the scope matches no layer of the golden.
type ScopeError struct{ Pattern, Hint string }

func (e *ScopeError) Error() string {
	return fmt.Sprintf("scope: %q matches no layer of the golden%s", e.Pattern, e.Hint)
}

func (c *Comparison) checkScope() error {
	for _, g := range c.scope {
		if !slices.ContainsFunc(c.Layers.all, Scope{g}.Asks) {
			return &ScopeError{g.String(), didYouMean(g.String(), c.Layers.all)}
		}
	}
	return nil
}

// Demand asks that what matters most of the golden was compared: the model's final output and every
// numbered block. Where the fixture or the command has a scope, it asks only for the layers that the
// scope names, and for the numbered blocks in them. It returns what is open, a sentence each; every
// later [Comparison.Report] that would be a pass is incomplete by it.
func (c *Comparison) Demand() []string { return c.demand(c.scope, true) }

// DemandBlocks asks, like [Comparison.Demand], that in every numbered block in which layers match a
// pattern one of them was compared.
func (c *Comparison) DemandBlocks(pattern string) ([]string, error) {
	p, err := label.CompilePattern(pattern)
	if err != nil {
		return nil, err
	}
	return c.demand(Scope{p}, false), nil
}

func (c *Comparison) demand(within Scope, each bool) (texts []string) {
	err := mapfile.Guard(func() error {
		texts = c.open(within, each)
		return nil
	})
	if err != nil {
		texts = append(texts, err.Error())
	}
	if c.allZero() {
		texts = append(texts, "the golden is all zero in every output that was compared, where a model that does nothing passes too")
	}
	texts = slices.Concat(c.unfinished(), texts, c.opaque())
	for _, text := range texts {
		c.find(uncovered, text)
	}
	return texts
}

// gap is something that is not covered.
type gap struct{ what, is string }

// open says what was not compared, with the forward passes that it holds for where these are not all.
func (c *Comparison) open(within Scope, each bool) (out []string) {
	var gaps []gap
	in := map[gap][]string{}
	passes := c.flow.Passes
	for _, p := range passes {
		d := demanded{Pass: p, ports: c.portsOf(p), within: within, each: each}
		for _, g := range d.gaps() {
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

// demanded is a forward pass, and what has to be compared of it.
type demanded struct {
	*localise.Pass
	ports  []*Port // in the order in which their values existed
	within Scope
	each   bool // every layer that matches counts, not only numbered blocks
}

func (d *demanded) gaps() (gaps []gap) {
	parts, final := d.parts()
	if final != nil {
		if !slices.ContainsFunc(parts, func(b *part) bool { return b.compared }) {
			return []gap{{"no output", "was compared"}}
		}
		what := "the final output " + final.Layer + " " + final.Port
		if !final.covers() && !d.holds(final.entry, true) {
			gaps = append(gaps, gap{what, "was not compared"})
		}
		if isZero(final.entry) {
			gaps = append(gaps, gap{what, "is all zero, as that of a model that does nothing"})
		}
	}
	var names []string
	for _, b := range parts {
		switch {
		case b.name == "", b.compared, b.lacking, final != nil && final.Layer == b.name:
		case !b.leaf || !d.holds(b.first, false):
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

// parts lists the parts of a pass in the order in which they ended, and the first output of the layer
// that ended last, which is the model's own. What the candidate may lack, as activations, poolers and
// what the fixture ignores, does not count for it.
func (d *demanded) parts() (list []*part, final *Port) {
	byName := map[string]*part{}
	for _, p := range d.ports {
		if !p.Judged() || !d.within.Asks(p.Layer) {
			continue
		}
		lacking := p.ExpectedMissing != ""
		if !lacking && (final == nil || final.Layer != p.Layer || final.entry.Len() == 0) {
			final = p
		}
		if p.entry.Len() == 0 {
			continue
		}
		names := []string{d.block(p.Layer)}
		if outer := d.within.outermost(p.Layer); d.each && outer != "" && outer != names[0] {
			names = append(names, outer)
		}
		for _, name := range names {
			b := byName[name]
			if b == nil {
				b = &part{name: name, first: p.entry, lacking: true, leaf: true}
				byName[name], list = b, append(list, b)
			}
			b.compared, b.lacking = b.compared || p.covers(), b.lacking && lacking
			b.leaf = b.leaf && !label.Inside(p.Layer, name)
		}
	}
	if len(d.within) > 0 {
		final = nil // the parts say it all
	}
	return list, final
}

// block returns the outermost numbered block around a layer, with the call in which the layer ran;
// "" if there is none.
func (d *demanded) block(layer string) string {
	block := label.Block(label.Name(layer))
	if block == "" {
		return ""
	}
	for label.Name(layer) != block {
		up := d.Container(layer)
		if up == layer || !label.Within(up, block) {
			return block // it was not recorded itself
		}
		layer = up
	}
	return layer // a call of the block itself
}

// holds reports whether the values of an output were compared as those of another one, as a model
// returns what its last layer does, or that in another type; or as an input of some layer, as those of
// a numbered layer of a Sequential are.
func (d *demanded) holds(t *tensor.Tensor, outputs bool) bool {
	return slices.ContainsFunc(d.ports, func(p *Port) bool { return p.Judged() == outputs && p.covers() && same(p.entry, t) })
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

// unfinished lists the runs that ended early: what they did not come to was judged by nothing.
func (c *Comparison) unfinished() (open []string) {
	for _, k := range c.Cases {
		for who, r := range k.sides() {
			if r.Info.Unfinished != "" {
				open = append(open, fmt.Sprintf("the %s run of case %s did not come to its end (%s)", who, k.Name, r.Info.Unfinished))
			}
		}
	}
	return open
}

// covers reports whether a port says something about the candidate: a golden of nothing but NaN does
// not, nor one that cannot be judged.
func (p *Port) covers() bool {
	return p.Joined() && !p.Unjudged() && p.Base.Result.N > p.Base.Result.NaNGolden && (p.printed == nil || p.printed.whole())
}

// allZero reports whether no compared output of the golden has anything but zeros. A single tensor of
// zeros may be what someone wants to compare.
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
	n := &report.Coverage{Open: c.findingsOf(uncovered)}
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
