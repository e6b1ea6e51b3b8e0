package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/program"
)

// clean reports whether nothing fails that has to be placed, and no one asked for more than tolerances
// say: with Strict, and without a golden, pieces decide.
func (c *Comparison) clean() bool {
	return !c.strict && !slices.ContainsFunc(c.Cases, func(k Case) bool { return k.alone }) &&
		!slices.ContainsFunc(c.Ports, func(p *Port) bool { return p.Joined() && !p.Passes() || p.misfit() })
}

// byPieces lets pieces decide: a fault fails, however small it is, and without a golden what is right
// in itself passes. Criteria that someone wrote decide before that.
func (c *Comparison) byPieces(faults []localise.Fault) {
	alone := map[string]bool{}
	for _, k := range c.Cases {
		alone[k.Name] = k.alone
	}
	accused := map[*Port]bool{}
	for _, f := range faults {
		p := c.Ports[f.Index]
		accused[p] = true
		if c.strict || alone[p.Case] {
			accused[c.accuse(p, f.Found)] = true
		}
	}
	for _, p := range c.Ports {
		l := p.Local
		if !alone[p.Case] || accused[p] || l == nil || l.Opaque != "" || !p.byDefault || !p.Joined() || p.Passes() {
			continue
		}
		why := "within the noise of its piece"
		if l.Wrong {
			why = "written otherwise: what is made of it is right"
		}
		p.allow(equivalent, "%s", why)
	}
}

// accuse lets a fault fail. One in an input fails at the first output after it, as inputs only tell
// where an error came from. It returns what fails.
func (c *Comparison) accuse(p *Port, found string) (at *Port) {
	at = p
	if !p.Judged() {
		i := slices.Index(c.Ports, p)
		j := slices.IndexFunc(c.Ports[i:], func(q *Port) bool {
			return q.Judged() && q.Comparable() && !q.Unjudged() && q.Case == p.Case && q.Step == p.Step
		})
		if j < 0 {
			return p
		}
		at = c.Ports[i+j]
		found = fmt.Sprintf("%s of %s: %s", p.Port, p.Layer, found)
	}
	p.Agrees = false
	if at.byDefault && at.Comparable() && at.Passes() {
		at.fail("local_error", found)
	}
	return at
}

// warn replays the pieces of a run that passes, where its program and weights are at hand and that is
// cheap, and notes what is wrong in itself though tolerances let it pass.
func (c *Comparison) warn() error {
	work := 0.0
	for _, k := range c.Cases {
		if k.Program == nil || k.Along != nil {
			return nil
		}
		work += workOf(k.Program)
	}
	if c.search.Evidence == nil || work > cheap {
		return nil
	}
	if weights, _, err := c.search.Evidence(); err != nil || len(weights) == 0 {
		return nil
	}
	if err := c.replayAll(); err != nil {
		return err
	}
	var found []string
	for _, r := range c.replays {
		for _, t := range r.result.Faults {
			for _, p := range r.ports[t] {
				found = append(found, fmt.Sprintf("%s of %s (%s)", p.Port, p.Layer, r.found(t, p)))
			}
		}
	}
	if len(found) > 0 {
		c.Note(fmt.Sprintf("warning: %d tensors are within their limits and off by more than their own piece's noise, first %s: "+
			"--strict, or strict: true in fixture.yaml, makes that a failure", len(found), found[0]))
	}
	return nil
}

// workOf estimates what replaying a program costs, in multiply-adds.
func workOf(p *program.Program) (work float64) {
	for i := range p.Ops {
		o := &p.Ops[i]
		n := 1.0
		for _, id := range o.Out {
			if id != program.None {
				n *= elements(p.Values[id].Shape)
			}
		}
		switch o.Name {
		case "mm", "addmm", "bmm", "baddbmm", "_grouped_mm", "scaled_dot_product_attention", "convolution":
			if in := o.Operands(); len(in) > 1 {
				shape := p.Values[in[len(in)-1]].Shape
				if len(shape) > 1 {
					n *= float64(shape[len(shape)-2])
				}
			}
		}
		work += n
	}
	return work
}

func elements(shape []int) float64 {
	n := 1.0
	for _, d := range shape {
		n *= float64(d)
	}
	return n
}
