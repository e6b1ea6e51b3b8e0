package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/coverage"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
)

// Demand asks that what matters most of the golden was compared: the model's final output and
// every numbered block. Where the fixture or the command has a
// scope, it asks only for the layers that the scope names, and for the numbered blocks in them. It
// returns what is open, a sentence each; every later [Comparison.Report] that would be a pass is
// incomplete by it.
func (c *Comparison) Demand() []string { return c.demand(coverage.Demand{Within: c.scope, Each: true}) }

// DemandBlocks asks, like [Comparison.Demand], that in every numbered block in which layers match a
// pattern one of them was compared.
func (c *Comparison) DemandBlocks(pattern string) ([]string, error) {
	p, err := glob.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return c.demand(coverage.Demand{Within: []*glob.Pattern{p}}), nil
}

func (c *Comparison) demand(d coverage.Demand) (texts []string) {
	err := mapfile.Guard(func() error {
		texts = d.Open(c.covered())
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

// covered lists the forward passes of all cases, with what was compared of them.
func (c *Comparison) covered() (passes []coverage.Pass) {
	for _, p := range c.flow().Passes {
		pass := coverage.Pass{Case: p.Case, Step: p.Step, Container: p.Container}
		for _, e := range p.Events {
			o := c.Ports[e.Index]
			pass.Ports = append(pass.Ports, coverage.Port{Layer: e.Layer, Port: e.Port, Input: e.Input, Covers: o.covers(), Lacking: o.ExpectedMissing != "", Tensor: o.entry})
		}
		passes = append(passes, pass)
	}
	return passes
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

// ScopeError says that a pattern of the scope matches no layer of the golden.
type ScopeError struct{ Pattern, Hint string }

func (e *ScopeError) Error() string {
	return fmt.Sprintf("scope: %q matches no layer of the golden%s", e.Pattern, e.Hint)
}

func (c *Comparison) checkScope() error {
	for _, g := range c.scope {
		if !slices.ContainsFunc(c.Layers.all, coverage.Demand{Within: []*glob.Pattern{g}}.Asks) {
			return &ScopeError{g.String(), didYouMean(g.String(), c.Layers.all)}
		}
	}
	return nil
}

// covers reports whether a port says something about the candidate: a golden of nothing but NaN does
// not, nor one that cannot be judged.
func (p *Port) covers() bool {
	return p.Joined() && !p.Unjudged() && p.Base.Result.N > p.Base.Result.NaNGolden && (p.printed == nil || p.printed.whole())
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
