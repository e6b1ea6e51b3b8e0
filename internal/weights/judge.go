// Package weights compares two sets of weights: a checkpoint, and another form of it or what an
// engine loaded. Each weight of the reference gets a status:
//
//	equal      all elements are equal
//	step       they are equal after known steps, which hold for all weights of that role
//	quantised  the candidate is quantised, and each element is as near as its format can have it
//	differs    how and where is said
//	missing    the candidate has none
//	unused     the candidate has it, the reference does not
//
// Steps are: cast (rounded to nearest), dequantised, transposed, interleaved (rows of q and k, as
// llama.cpp has them), fused, split, stacked, tied, norm + 1, a scale of a closed list. Fewer steps
// are better, none is best. A step that one weight has and the others of its role have not is a
// fault.
package weights

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// pair is a weight of the reference and what the candidate has for it.
type pair struct {
	ref, cand *weight
	by        []string // how they were joined: "fused", "tied"
	absent    bool     // the candidate has none, but may have folded it
	column    *calc    // of a norm: it is multiplied into what reads it
	readers   []*pair  // these
	more      []*calc  // what may have been calculated of it, by other weights
	trials    []*trial // by step
	may       []*trial // with which it is the reference's; of a quantised weight all with which it may be
	best      *trial   // of which is told; nil for none
	q         *quantised
	result    Result
}

// Options is what a comparison is given besides the two sides.
type Options struct {
	Adapter  *Adapter                // that the reference is to be read with; nil for none
	Rules    []match.Rule            // which layers belong together, where names and values do not tell
	Progress func(done, total int64) // told how many bytes were looked at, in no order; nil for no one
}

// comparison is what is known of the weights of two sides.
type comparison struct {
	Options
	configs   []checkpoint.Config
	ref, cand shelf
	pairs     []*pair
	rest      []Result        // of what has no partner
	exact     map[string]bool // see exactPackings
}

// Compare judges the candidate by the reference.
func Compare(ctx context.Context, ref, cand *Side, opt Options) (*Report, error) {
	c := &comparison{Options: opt, configs: []checkpoint.Config{ref.Config, cand.Config}}
	c.ref, c.cand = placed(ref, cand), placed(cand, ref)
	if err := c.join(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.pairs, func(p *pair) bool { return !p.absent }) {
		return nil, fmt.Errorf("no weight of %s is one of %s by its name, or by its values", cand.Path, ref.Path)
	}
	c.findFolded()
	var done atomic.Int64
	total := int64(0)
	for _, p := range c.pairs {
		total += p.bytes()
	}
	err := vec.Each(ctx, len(c.pairs), func(i int) error {
		c.look(c.pairs[i])
		if at := done.Add(c.pairs[i].bytes()); c.Progress != nil {
			c.Progress(at, total)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	agree(c.pairs)
	alone(c.pairs)
	together(c.pairs)
	c.exact = exactPackings(c.pairs)
	if err := vec.Each(ctx, len(c.pairs), func(i int) error { c.decide(c.pairs[i]); return nil }); err != nil {
		return nil, err
	}
	compensating(c.pairs)
	r := &Report{Schema: 1, Reference: ref.Path, Candidate: cand.Path}
	r.Notes = slices.Concat(ref.Notes, cand.Notes, unseenNotes(c.pairs))
	if ref.Config != nil && cand.Config != nil {
		r.Config = append([]checkpoint.Difference{}, checkpoint.Diff(ref.Config, cand.Config)...)
	}
	for _, p := range c.pairs {
		r.Weights = append(r.Weights, p.result)
	}
	r.Weights = append(r.Weights, c.rest...)
	isBlank := func(w Result) bool { return w.Status == Blank }
	r.Pass = !r.Wrong() && !slices.ContainsFunc(r.Weights, isBlank) && slices.ContainsFunc(r.Weights, func(w Result) bool { return w.Judged() })
	return r, nil
}

// look finds the steps that hold. Samples choose those that are looked at as a whole.
func (c *comparison) look(p *pair) {
	p.trials = trialsOf(p.ref, p.cand.t, c.configs, p.more...)
	for _, t := range p.trials {
		f := t.sample()
		if p.best == nil || nearer(f, p.best.sampled, t) {
			p.best = t
		}
		if f.Mismatches == 0 && t.steps == nil {
			break // what needs more is not looked at, unless the role has it
		}
	}
	if i := slices.IndexFunc(p.trials, (*trial).holds); i >= 0 {
		p.may = p.trials[i : i+1] // the others are looked at if the role needs it
	} else if p.packed() {
		if p.may = p.nearSteps(); len(p.may) > 0 && !slices.Contains(p.may, p.best) {
			p.best = p.may[0]
		}
	}
}

// exact reports whether a weight is the reference's after a step.
func (p *pair) exact() bool { return len(p.may) > 0 && p.may[0].holds() }

// nearSteps lists the steps with which a quantised weight may be the reference's. The angle between
// the two tells the order of the elements, which a coarse quantiser's gain does not hide; of steps
// that calculate, those count that make the error much smaller.
func (p *pair) nearSteps() (near []*trial) {
	var moves []*trial
	least := math.Inf(1)
	for _, t := range p.trials {
		if t.sampled != nil && t.calc == nil {
			moves, least = append(moves, t), min(least, t.sampled.sine())
		}
	}
	for _, t := range moves {
		if least > likely || t.sampled.sine() > nearly*least {
			continue
		}
		before := len(near)
		for _, c := range p.trials {
			if f := c.sampled; f != nil && c.calc != nil && c.base == t && f.RelL2 < min(likely, better(c)*t.sampled.RelL2) {
				near = append(near, c)
			}
		}
		if len(near) == before {
			near = append(near, t)
		}
	}
	return near
}

// bytes is how many the elements of both sides have.
func (p *pair) bytes() int64 {
	return int64(p.ref.t.Len()*p.ref.t.DType().Size() + p.cand.t.Len()*p.cand.t.DType().Size())
}

// packed reports whether a side is quantised.
func (p *pair) packed() bool { return p.packing() != "" }

// nearer reports whether the step of a trial explains a weight better than another. Where most
// elements differ, as those of a quantised weight, the size of the error tells, not their number.
func nearer(f, than *metrics, t *trial) bool {
	isLess := f.RelL2 < better(t)*than.RelL2
	if 2*min(f.Mismatches, than.Mismatches) >= f.seen.N {
		return isLess
	}
	return f.Mismatches < than.Mismatches || f.Mismatches == than.Mismatches && isLess
}

// better is by how much the error of a step has to be less than that of those before it, where
// neither holds. Factors that are fitted to noise make it less, too.
func better(t *trial) float64 {
	if t.calc != nil {
		return 0.5
	}
	return 0.9
}

// constantly reports whether all elements of a weight are the same, as far as its first ones tell.
func constantly(w *weight) bool {
	v := numbers(w.t, sampleLen)
	return len(v) < 2 || !slices.ContainsFunc(v, func(x float64) bool { return x != v[0] })
}

// isBlank reports whether a weight is equal to any other that was lost, too: one without elements,
// of nothing but NaN, or a matrix of zeros. A bias of zeros is usual.
func isBlank(w *weight) bool {
	isMatrix := w.param != "bias" && len(squeezed(w.t.Shape())) > 1
	return isMatrix && all(w.t, func(v float64) bool { return v == 0 }) || all(w.t, func(v float64) bool { return v != v })
}

// decide sets the result of a pair.
func (c *comparison) decide(p *pair) {
	r := &p.result
	r.Reference, r.Candidate = p.ref.name, p.cand.name
	exact, ignored := p.exact(), unjudged.MatchString(p.ref.name)
	if len(p.may) > 0 && !exact && r.Detail == "" && !c.exact[p.packing()] {
		q := quantisation(p)
		if p.q = q; q.ok {
			r.Status, r.Detail, r.Metrics = Quantised, fmt.Sprintf("%s, %.2g %%", q.format, 100*q.RelL2), q.metrics
			r.Steps = append(slices.Concat(p.by, p.best.steps), "quantised")
			return
		}
	}
	if (exact || p.ref.t.Len() == 0 && p.cand.t.Len() == 0) && !ignored && isBlank(p.ref) {
		r.Status, r.Detail = Blank, "equal, and it says nothing: no elements on both sides, or nothing but zeros, or NaN"
		return
	}
	if p.best == nil {
		r.Status, r.Detail = Differs, fmt.Sprintf("shape %s, the reference has %s", tensor.FormatShape(p.cand.t.Shape()),
			tensor.FormatShape(p.ref.t.Shape()))
		return
	}
	f := p.best.all()
	r.Metrics = f
	switch {
	case p.absent && !p.folded():
		r.Status, r.Metrics = Missing, nil
	case exact && ignored:
		r.Status = Ignored
	case r.Detail == "" && c.adapted(p):
	case r.Detail != "":
		r.Status, r.Cause = Differs, causeStep
	case p.folded():
		r.Status, r.Steps = Step, []string{"folded into what reads it"}
	case exact:
		if r.Status, r.Steps = Step, p.names(); len(r.Steps) == 0 {
			r.Status, r.Steps = Equal, nil
		}
	default:
		c.differs(p, f)
	}
}

// names are the steps of a pair that is equal after them.
func (p *pair) names() []string {
	steps := slices.Clone(p.by)
	if p.packed() {
		steps = append(steps, "dequantised")
	}
	steps = append(steps, p.best.steps...)
	if p.ref.t.DType() != p.cand.t.DType() {
		steps = append(steps, "cast")
	}
	return steps
}

// differs says how a weight differs, unless that is its quantisation.
func (c *comparison) differs(p *pair, f *metrics) {
	eps := math.Max(sameDirection, math.Max(p.ref.t.DType().Epsilon(), p.cand.t.DType().Epsilon()))
	say := func(cause, format string, args ...any) {
		p.result.Status, p.result.Cause, p.result.Detail = Differs, cause, fmt.Sprintf(format, args...)
	}
	moved := cmp.Or(p.best.base, p.best) // without what was calculated: that may be near, and another number fits
	plain := moved.all()
	if f.lost() {
		say(causeZero, "all zeros")
	} else if f.seen.BadNonFinite > 0 {
		say("", "NaN or infinity that the reference has not, first wrong at %v", f.First)
	} else if other := c.another(p); other != "" {
		say(causeOther, "it is %s", other)
	} else if p.q != nil && p.q.why != "" {
		say("", "%s", p.q.why)
	} else if s := plain.scale(); plain.sine() < eps && math.Abs(s-1) > clearScale*plain.sine() {
		say(causeScale, "every element is %.6g times the reference's", s)
	} else if least, most, ok := moved.rowScales(eps); ok {
		say(causeScale, "each row is the reference's times a number, %.4g to %.4g", least, most)
	} else if rank := rankOf(p, f); rank > 0 {
		say(causeLoRA, "the difference has rank %d, as that of an adapter (LoRA) which one side has merged; rel. L2 %.3g", rank, f.RelL2)
	} else {
		say("", "%d of %d elements, rel. L2 %.3g, first at %v", f.Mismatches, f.N, f.RelL2, f.First)
	}
}

// packing is that of both sides of a pair; "" where none is quantised.
func (p *pair) packing() string { return p.ref.t.Packing() + p.cand.t.Packing() }

// exactPackings are those of which a weight is equal to the reference's: then that is dequantised,
// and every weight of this packing has to be, too.
func exactPackings(pairs []*pair) map[string]bool {
	exact := map[string]bool{}
	for _, p := range pairs {
		if p.packed() && p.exact() && !constantly(p.ref) {
			exact[p.packing()] = true
		}
	}
	return exact
}

// another names the weight of the reference that the candidate has in this place.
func (c *comparison) another(p *pair) string {
	looked := 0
	for _, sameRole := range []bool{true, false} {
		for _, o := range c.pairs {
			if o == p || (o.ref.family() == p.ref.family()) != sameRole || !slices.Equal(o.ref.t.Shape(), p.ref.t.Shape()) || constantly(o.ref) {
				continue
			}
			if looked++; looked > mostOthers {
				return ""
			}
			t := newTrial(o.ref.t, p.cand.t, p.best.move, p.best.calc)
			if t == nil {
				continue
			}
			own, f := p.best.sample().RelL2, t.sample()
			if f.Mismatches == 0 || p.packed() && own > likely && f.RelL2 < min(likely, muchNearer*own) {
				return o.ref.name
			}
		}
	}
	return ""
}
