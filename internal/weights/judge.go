package weights

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/each"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// pair is a weight of the reference and what the candidate has for it.
type pair struct {
	ref, cand *weight
	by        []string // how they were joined: "fused", "tied"
	steps     []step
	trials    []*trial // by step; nil where it does not fit, or was not looked at
	fits      []int    // the steps that hold for all elements, as far as was looked
	near      []int    // of a quantised weight: the steps with which it may be the reference's
	best      int      // the step of which is told; −1 for none
	q         *quantised
	folded    bool  // a norm that is multiplied into what reads it
	also      *step // a normalisation that is folded into it; nil for none
	merged    bool  // a part of such a normalisation
	absent    bool  // the candidate has none, but may have folded it
	result    Result
}

// Options is what a comparison is given besides the two sides.
type Options struct {
	Adapter  *Adapter                // that the reference is to be read with; nil for none
	Rules    []match.Rule            // which layers belong together, where names and values do not tell
	Progress func(done, total int64) // told how many bytes were looked at, in no order; nil for no one
}

// Compare judges the candidate by the reference.
func Compare(ctx context.Context, ref, cand *Side, opt Options) (*Report, error) {
	j := &judge{ref: ref, cand: cand, adapter: opt.Adapter, rules: opt.Rules}
	pairs, rest, err := j.join()
	if err != nil {
		return nil, err
	}
	j.folded = findFolded(pairs)
	var done atomic.Int64
	total := int64(0)
	for _, p := range pairs {
		total += p.bytes()
	}
	err = each.Do(ctx, len(pairs), func(i int) error {
		j.look(pairs[i])
		if at := done.Add(pairs[i].bytes()); opt.Progress != nil {
			opt.Progress(at, total)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	j.agree(pairs)
	j.together(pairs)
	j.foldedNorms(pairs)
	j.exact = exactPackings(pairs)
	err = each.Do(ctx, len(pairs), func(i int) error { j.decide(pairs[i], pairs); return nil })
	if err != nil {
		return nil, err
	}
	j.compensating(pairs)
	r := &Report{Schema: 1, Config: diff(ref, cand), Reference: ref.Path, Candidate: cand.Path,
		Notes: slices.Concat(ref.Notes, cand.Notes, unseenNotes(pairs))}
	for _, p := range pairs {
		r.Weights = append(r.Weights, p.result)
	}
	r.Weights = append(r.Weights, rest...)
	isBlank := func(w Result) bool { return w.Status == Blank }
	r.Pass = !r.Wrong() && !slices.ContainsFunc(r.Weights, isBlank) && slices.ContainsFunc(r.Weights, func(w Result) bool { return w.Judged() })
	if !slices.ContainsFunc(pairs, func(p *pair) bool { return !p.absent }) {
		return nil, fmt.Errorf("no weight of %s is one of %s by its name, or by its values", cand.Path, ref.Path)
	}
	return r, nil
}

// diff is never nil where both configs are known.
func diff(ref, cand *Side) []checkpoint.Difference {
	if ref.Config == nil || cand.Config == nil {
		return nil
	}
	return append([]checkpoint.Difference{}, checkpoint.Diff(ref.Config, cand.Config)...)
}

type judge struct {
	ref, cand *Side
	adapter   *Adapter // nil for none
	rules     []match.Rule
	exact     map[packings]bool        // see exactPackings
	folded    map[[2]string]foldedNorm // by layer and role
}

// look finds the steps that hold. Samples choose those that are looked at as a whole.
func (j *judge) look(p *pair) {
	p.steps = stepsOf(p.ref, p.cand.t, j.ref.Config, j.cand.Config)
	j.withFolded(p)
	p.withMerged()
	p.trials, p.best = make([]*trial, len(p.steps)), -1
	for i := range p.steps {
		if p.packed() && i > 0 && p.unlikely(i) {
			continue
		}
		f := p.sample(i)
		if f == nil {
			continue
		}
		if p.best < 0 || nearer(f, p.seen(p.best), &p.steps[i]) {
			p.best = i
		}
		if f.Mismatches == 0 && p.steps[i].plain() {
			break // what needs more is not looked at, unless the role has it
		}
	}
	for i := range p.steps {
		if p.holds(i) {
			p.fits = append(p.fits, i)
			break // the others are looked at if the role needs it
		}
	}
	if len(p.fits) == 0 && p.packed() {
		p.near = p.nearSteps()
		if len(p.near) > 0 && !slices.Contains(p.near, p.best) {
			p.best = p.near[0]
		}
	}
}

// sample looks at some parts after a step; nil if it does not fit.
func (p *pair) sample(i int) *figures {
	if p.trials[i] == nil {
		p.trials[i] = newTrial(p.ref.t, p.cand.t, &p.steps[i])
	}
	if p.trials[i] == nil {
		return nil
	}
	return p.notFaint(i, p.trials[i].sample(), (*trial).sample)
}

// seen are the figures of the sample after a step; nil if none was looked at.
func (p *pair) seen(i int) *figures {
	if i < 0 || p.trials[i] == nil {
		return nil
	}
	return p.trials[i].sampled
}

// whole returns the figures of all elements; nil if no sample was looked at.
func (p *pair) whole(i int) *figures {
	if p.seen(i) == nil {
		return nil
	}
	return p.notFaint(i, p.trials[i].all(), (*trial).all)
}

// holds reports whether a step holds for all elements.
func (p *pair) holds(i int) bool {
	f := p.seen(i)
	return f != nil && f.Mismatches == 0 && p.whole(i).Mismatches == 0
}

// notFaint makes all elements of a calculated step mismatches if it moves less than what its rounding may: it is not
// seen then, but where it makes all of them equal.
func (p *pair) notFaint(i int, f *figures, look func(*trial) *figures) *figures {
	if s := p.steps[i]; s.number == nil || f.Mismatches > 0 || f.seen.NormDiff == 0 || s.base == i || p.trials[s.base] == nil {
		return f
	}
	if f.seen.NormDiff*leastMove > look(p.trials[p.steps[i].base]).seen.NormDiff {
		f.Mismatches = f.N
	}
	return f
}

// unlikely reports whether what was seen of a quantised weight tells that a step does not hold:
// another order of elements, where one is right, or numbers that are calculated from a wrong order.
func (p *pair) unlikely(i int) bool {
	least := p.leastSine(func(*step) bool { return true })
	if p.steps[i].number == nil {
		return least < likely/2
	}
	f := p.seen(p.steps[i].base)
	return f == nil || f.sine() > nearly*least
}

// leastSine is the smallest angle after the steps that were looked at.
func (p *pair) leastSine(of func(s *step) bool) float64 {
	least := math.Inf(1)
	for i := range p.steps {
		if f := p.seen(i); f != nil && of(&p.steps[i]) {
			least = min(least, f.sine())
		}
	}
	return least
}

// nearSteps lists the steps with which a quantised weight may be the reference's. The angle between
// the two tells the order of the elements, which a coarse quantiser's gain does not hide; of steps
// that calculate, those count that make the error much smaller.
func (p *pair) nearSteps() (near []int) {
	least := p.leastSine(func(s *step) bool { return s.number == nil })
	if least > likely {
		return nil
	}
	for i := range p.steps {
		f := p.seen(i)
		if f == nil || p.steps[i].number != nil || f.sine() > nearly*least {
			continue
		}
		calculated := false
		for k := range p.steps {
			g := p.seen(k)
			if g != nil && p.steps[k].number != nil && p.steps[k].base == i && g.RelL2 < likely && g.RelL2 < better(&p.steps[k])*f.RelL2 {
				near = append(near, k)
				calculated = true
			}
		}
		if !calculated {
			near = append(near, i)
		}
	}
	return near
}

// bytes is how many the elements of both sides have.
func (p *pair) bytes() int64 {
	return int64(p.ref.t.Len()*p.ref.t.DType().Size() + p.cand.t.Len()*p.cand.t.DType().Size())
}

// packed reports whether a side is quantised.
func (p *pair) packed() bool { return p.ref.t.Packing() != "" || p.cand.t.Packing() != "" }

// nearer reports whether a step s explains a weight better than another. Where most elements differ,
// as those of a quantised weight, the size of the error tells, not their number.
func nearer(f, than *figures, s *step) bool {
	if 2*min(f.Mismatches, than.Mismatches) >= f.seen.N {
		return f.RelL2 < better(s)*than.RelL2
	}
	return f.Mismatches < than.Mismatches || f.Mismatches == than.Mismatches && f.RelL2 < better(s)*than.RelL2
}

// better is by how much the error of a step has to be less than that of those before it, where
// neither holds. Factors that are fitted to noise make it less, too.
func better(s *step) float64 {
	if s.number != nil {
		return 0.5
	}
	return 0.9
}

// stepNamed returns the step with a name; −1 if there is none that might hold.
func (p *pair) stepNamed(name string) int {
	for i := range p.steps {
		if p.steps[i].name() == name {
			if f := p.sample(i); f != nil && (f.Mismatches == 0 || slices.Contains(p.near, i)) {
				return i
			}
		}
	}
	return -1
}

// has reports whether a weight may be the reference's with a step.
func (p *pair) has(i int) bool { return slices.Contains(p.near, i) || p.holds(i) }

// fit is the plainest step with which a weight is, or may be, the reference's.
func (p *pair) fit() int {
	if len(p.fits) > 0 {
		return p.fits[0]
	}
	return p.near[0]
}

// agree makes the weights of a role have the same steps where they can, and names those that have
// others.
func (j *judge) agree(pairs []*pair) {
	families := map[string][]*pair{}
	var order []string
	for _, p := range pairs {
		key := p.ref.family() + strings.Join(p.by, ",")
		if families[key] == nil {
			order = append(order, key)
		}
		families[key] = append(families[key], p)
	}
	for _, key := range order {
		members := slices.DeleteFunc(slices.Clone(families[key]), func(p *pair) bool { return len(p.fits)+len(p.near) == 0 })
		if len(members) == 0 {
			continue
		}
		order := byVotes(members)
		for k, name := range order {
			holding := 0
			for _, p := range members {
				if i := p.stepNamed(name); i >= 0 && p.has(i) {
					holding++
				}
			}
			if 2*holding < len(members) && k < len(order)-1 {
				continue
			}
			for _, p := range members {
				switch i := p.stepNamed(name); {
				case i < 0 || !p.has(i):
					p.result.Detail = fmt.Sprintf("%s in this layer only: of %d weights of this role, %d are %s", said(p.steps[p.fit()].names),
						len(members), holding, cmp.Or(name, "equal"))
				case slices.Contains(p.near, i):
					p.near, p.best = []int{i}, i
				default:
					p.fits, p.best = []int{i}, i
				}
			}
			// What another weight in the place of one is told by the role's step, too.
			for _, p := range families[key] {
				if len(p.fits)+len(p.near) == 0 {
					if i := slices.IndexFunc(p.steps, func(s step) bool { return s.name() == name }); p.seen(i) != nil {
						p.best = i
					}
				}
			}
			break
		}
	}
	j.alone(pairs)
}

// byVotes lists the names of steps that members may have: first the one that most have; of equally
// many, the one with fewer names.
func byVotes(members []*pair) []string {
	names := map[string]bool{}
	for _, p := range members {
		for i := range p.steps {
			if f := p.seen(i); f != nil && (f.Mismatches == 0 || slices.Contains(p.near, i)) {
				names[p.steps[i].name()] = true
			}
		}
	}
	votes := map[string]int{}
	for name := range names {
		for _, p := range members {
			if p.stepNamed(name) >= 0 {
				votes[name]++
			}
		}
	}
	return slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		if votes[a] != votes[b] {
			return votes[b] - votes[a]
		}
		if c := strings.Count(a, ",") + min(len(a), 1) - strings.Count(b, ",") - min(len(b), 1); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
}

func said(steps []string) string {
	if len(steps) == 0 {
		return "equal"
	}
	return strings.Join(steps, ", ")
}

// alone looks at roles with a single weight, that have a step which can be told from none: such as
// the last norm. There must be another role with it.
func (j *judge) alone(pairs []*pair) {
	roles := map[string]int{}
	with := map[string]map[string]bool{} // roles by step
	for _, p := range pairs {
		roles[p.ref.family()]++
		if len(p.fits) > 0 {
			name := p.steps[p.fits[0]].name()
			if with[name] == nil {
				with[name] = map[string]bool{}
			}
			with[name][p.ref.family()] = true
		}
	}
	norm := func(p *pair) bool { return strings.Contains(p.ref.role, "norm") && p.ref.param == "weight" }
	// Norms by step, apart by width: Qwen3-Next's gated norm of a head's width has no + 1 where all others do.
	type kind struct {
		width int
		step  string
	}
	width := func(p *pair) int { return p.ref.t.Len() }
	plus := map[kind]int{}
	for _, p := range pairs {
		if norm(p) && len(p.fits) > 0 && !constantly(p.ref) {
			plus[kind{width(p), p.steps[p.fits[0]].name()}]++
		}
	}
	for _, p := range pairs {
		if roles[p.ref.family()] > 1 || len(p.fits) == 0 || p.result.Detail != "" {
			continue
		}
		s := p.steps[p.fits[0]]
		square := len(p.cand.t.Shape()) == 2 && p.cand.t.Shape()[0] == p.cand.t.Shape()[1]
		switch name := s.name(); {
		case norm(p) && s.number != nil && plus[kind{width(p), ""}] > 0 && plus[kind{width(p), name}] == 1:
			p.result.Detail = name + " in this norm only"
		case norm(p) && s.number == nil && plus[kind{width(p), "norm + 1"}] > 1 && plus[kind{width(p), ""}] == 1:
			p.result.Detail = "norm + 1 everywhere but in this norm"
		case name == "transposed" && square && len(with[name]) == 1:
			p.result.Detail = "transposed, and no other weight is"
		}
	}
}

// constantly reports whether all elements of a weight are the same, as far as its first ones tell.
func constantly(w *weight) bool {
	v := numbers(w.t, sampleLen)
	return len(v) < 2 || !slices.ContainsFunc(v, func(x float64) bool { return x != v[0] })
}

// isBlank reports whether a weight is equal to any other that was lost, too: one without elements, of nothing
// but NaN, or a matrix of zeros. A bias of zeros is usual.
func isBlank(w *weight) bool {
	isMatrix := w.param != "bias" && len(squeezed(w.t.Shape())) > 1
	return isMatrix && all(w.t, func(v float64) bool { return v == 0 }) || all(w.t, func(v float64) bool { return v != v })
}

// decide sets the result of a pair.
func (j *judge) decide(p *pair, pairs []*pair) {
	r := &p.result
	r.Reference, r.Candidate = p.ref.name, p.cand.name
	if len(p.near) > 0 && r.Detail == "" && !j.exact[packingsOf(p)] {
		q := quantisation(p)
		if p.q = &q; q.ok {
			r.Status, r.Detail, r.Figures = Quantised, fmt.Sprintf("%s, %.2g %%", q.format, 100*q.RelL2), q.figures
			r.Steps = append(slices.Concat(p.by, p.steps[p.best].names), "quantised")
			return
		}
	}
	if (len(p.fits) > 0 || p.ref.t.Len() == 0 && p.cand.t.Len() == 0) && !unjudged.MatchString(r.Reference) && isBlank(p.ref) {
		r.Status, r.Detail = Blank, "equal, and it says nothing: no elements on both sides, or nothing but zeros, or NaN"
		return
	}
	f := p.whole(p.best)
	if f == nil {
		r.Status, r.Detail = Differs, fmt.Sprintf("shape %s, the reference has %s", tensor.FormatShape(p.cand.t.Shape()),
			tensor.FormatShape(p.ref.t.Shape()))
		return
	}
	r.Figures = f
	steps := slices.Clone(p.by)
	if p.packed() {
		steps = append(steps, "dequantised")
	}
	steps = append(steps, p.steps[p.best].names...)
	if len(p.fits) > 0 && p.ref.t.DType() != p.cand.t.DType() {
		steps = append(steps, "cast")
	}
	switch {
	case p.merged:
		r.Status, r.Candidate, r.Steps, r.Figures = Step, "", []string{"folded into the layer before it"}, nil
	case p.absent && !p.folded:
		r.Status, r.Figures = Missing, nil
	case len(p.fits) > 0 && unjudged.MatchString(r.Reference):
		r.Status = Ignored
	case r.Detail == "" && j.adapted(p):
	case r.Detail != "":
		r.Status, r.Cause = Differs, causeStep
	case p.folded:
		r.Status, r.Steps = Step, []string{"folded into what reads it"}
	case len(p.fits) > 0 && len(steps) == 0:
		r.Status = Equal
	case len(p.fits) > 0:
		r.Status, r.Steps = Step, steps
	default:
		j.differs(p, f, pairs)
	}
}

// differs says how a weight differs, unless that is its quantisation.
func (j *judge) differs(p *pair, f *figures, pairs []*pair) {
	r := &p.result
	r.Status = Differs
	if f.lost() {
		r.Detail, r.Cause = "all zeros", causeZero
		return
	}
	if f.bad() {
		r.Detail = fmt.Sprintf("NaN or infinity that the reference has not, first wrong at %v", f.First)
		return
	}
	if other := j.another(p, pairs); other != "" {
		r.Detail, r.Cause = "it is "+other, causeOther
		return
	}
	if p.q != nil && p.q.why != "" {
		r.Detail = p.q.why
		return
	}
	eps := math.Max(p.ref.t.DType().Epsilon(), p.cand.t.DType().Epsilon())
	if s := f.scale(); p.steps[p.best].number == nil && f.sine() < math.Max(sameDirection, eps) && math.Abs(s-1) > clearScale*f.sine() {
		r.Detail, r.Cause = fmt.Sprintf("every element is %.6g times the reference's", s), causeScale
		return
	}
	if rank := rankOf(p, f); rank > 0 {
		r.Detail, r.Cause = fmt.Sprintf("the difference has rank %d, as that of an adapter (LoRA) which one side has merged; rel. L2 %.3g",
			rank, f.RelL2), causeLoRA
		return
	}
	r.Detail = fmt.Sprintf("%d of %d elements, rel. L2 %.3g, first at %v%s", f.Mismatches, f.N, f.RelL2, f.First, p.rows())
}

// rows says which rows of a matrix differ.
func (p *pair) rows() string {
	t := p.trials[p.best]
	if len(t.actual.Shape()) < 2 || t.actual.Len() > mostExplained {
		return ""
	}
	d, err := compare.Explain(t.golden, t.actual, t.tol)
	if err != nil { // the file has changed meanwhile
		return ""
	}
	return "; " + d.BadRows.Text("row")
}

// packings are those of both sides of a pair.
type packings struct{ ref, cand string }

func packingsOf(p *pair) packings { return packings{p.ref.t.Packing(), p.cand.t.Packing()} }

// exactPackings are those of which a weight is equal to the reference's: then that is dequantised,
// and every weight of this packing has to be, too.
func exactPackings(pairs []*pair) map[packings]bool {
	exact := map[packings]bool{}
	for _, p := range pairs {
		if !p.packed() || len(p.fits) == 0 {
			continue
		}
		if k := packingsOf(p); !exact[k] {
			exact[k] = !constantly(p.ref)
		}
	}
	return exact
}

// another names the weight of the reference that the candidate has in this place.
func (j *judge) another(p *pair, pairs []*pair) string {
	own := p.seen(p.best)
	if own == nil {
		return ""
	}
	looked := 0
	for _, sameRole := range []bool{true, false} {
		for _, o := range pairs {
			if o == p || (o.ref.family() == p.ref.family()) != sameRole || !slices.Equal(o.ref.t.Shape(), p.ref.t.Shape()) || constantly(o.ref) {
				continue
			}
			if looked++; looked > mostOthers {
				return ""
			}
			t := newTrial(o.ref.t, p.cand.t, &p.steps[p.best])
			if t == nil {
				continue
			}
			if f := t.sample(); f.Mismatches == 0 || p.packed() && own.RelL2 > likely && f.RelL2 < min(likely, muchNearer*own.RelL2) {
				return o.ref.name
			}
		}
	}
	return ""
}
