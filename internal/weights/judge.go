package weights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/each"
	"github.com/goparity/goparity/internal/places"
	"github.com/goparity/goparity/tensor"
)

// pair is a weight of the reference and what the candidate has for it.
type pair struct {
	ref, cand *weight
	by        []string // how they were joined: "fused", "tied"
	steps     []step
	seen      []*figures // of the samples, by step
	fits      []int      // the steps that hold for all elements, as far as was looked
	full      map[int]*figures
	best      int  // the step of which is told
	folded    bool // a norm that is multiplied into what reads it
	result    Result
}

// Compare judges the candidate by the reference.
func Compare(ctx context.Context, ref, cand *Side) (*Report, error) {
	j := &judge{ref: ref, cand: cand}
	pairs, rest := j.join()
	j.folded = findFolded(pairs)
	err := each.Do(ctx, len(pairs), func(i int) error { return j.look(pairs[i]) })
	if err != nil {
		return nil, err
	}
	j.agree(pairs)
	j.foldedNorms(pairs)
	err = each.Do(ctx, len(pairs), func(i int) error { j.decide(pairs[i], pairs); return nil })
	if err != nil {
		return nil, err
	}
	r := &Report{Schema: 1, Reference: ref.Path, Candidate: cand.Path, Pass: true}
	for _, p := range pairs {
		r.Weights = append(r.Weights, p.result)
	}
	r.Weights = append(r.Weights, rest...)
	for _, w := range r.Weights {
		r.Pass = r.Pass && good(w.Status)
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("no weight of %s is one of %s by its name, or by its values", cand.Path, ref.Path)
	}
	return r, nil
}

type judge struct {
	ref, cand *Side
	folded    map[[2]string]foldedNorm // by layer and role
}

// look finds the steps that hold. Samples choose those that are looked at as a whole.
func (j *judge) look(p *pair) error {
	p.steps = stepsOf(p.ref.role, p.ref.param, p.ref.t, p.cand.t, j.ref.Config, j.cand.Config)
	j.withFolded(p)
	p.full, p.best = map[int]*figures{}, -1
	p.seen = make([]*figures, len(p.steps))
	for i := range p.steps {
		c := newComparer(p.ref.t, p.cand.t, &p.steps[i])
		if c == nil {
			continue
		}
		p.seen[i] = c.sample()
		if p.best < 0 || p.seen[i].Mismatches < p.seen[p.best].Mismatches ||
			p.seen[i].Mismatches == p.seen[p.best].Mismatches && p.seen[i].RelL2 < better(&p.steps[i])*p.seen[p.best].RelL2 {
			p.best = i
		}
	}
	for i, f := range p.seen {
		if f != nil && f.Mismatches == 0 && !f.bad && p.holds(i) {
			p.fits = append(p.fits, i)
			break // the others are looked at if the role needs it
		}
	}
	return nil
}

// better is by how much the error of a step has to be less than that of those before it, where
// neither holds. Factors that are fitted to noise make it less, too.
func better(s *step) float64 {
	if s.number != nil || s.column != nil {
		return 0.5
	}
	return 0.9
}

// holds reports whether a step holds for all elements.
func (p *pair) holds(i int) bool {
	f := p.whole(i)
	return f != nil && f.Mismatches == 0 && !f.bad
}

// whole returns the figures of all elements.
func (p *pair) whole(i int) *figures {
	if f := p.full[i]; f != nil {
		return f
	}
	if i < 0 || p.seen[i] == nil {
		return nil
	}
	f := p.seen[i]
	if p.cand.t.Len() > samples*sampleLen {
		f = newComparer(p.ref.t, p.cand.t, &p.steps[i]).all()
	}
	p.full[i] = f
	return f
}

// stepNamed returns the step with a name; −1 if there is none that might hold.
func (p *pair) stepNamed(name string) int {
	for i := range p.steps {
		if p.steps[i].name() == name && p.seen[i] != nil && p.seen[i].Mismatches == 0 {
			return i
		}
	}
	return -1
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
		members := slices.DeleteFunc(slices.Clone(families[key]), func(p *pair) bool { return len(p.fits) == 0 })
		if len(members) == 0 {
			continue
		}
		// The step that most have; of equally many, the one with fewer names.
		votes := map[string]int{}
		for _, p := range members {
			for i := range p.steps {
				if p.seen[i] != nil && p.seen[i].Mismatches == 0 {
					votes[p.steps[i].name()]++
				}
			}
		}
		names := []string{}
		for name := range votes {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int {
			if votes[a] != votes[b] {
				return votes[b] - votes[a]
			}
			if c := strings.Count(a, ",") + min(len(a), 1) - strings.Count(b, ",") - min(len(b), 1); c != 0 {
				return c
			}
			return strings.Compare(a, b)
		})
		for _, name := range names {
			holding := 0
			for _, p := range members {
				if i := p.stepNamed(name); i >= 0 && p.holds(i) {
					holding++
				}
			}
			if 2*holding <= len(members) && name != names[len(names)-1] {
				continue
			}
			for _, p := range members {
				if i := p.stepNamed(name); i >= 0 && p.holds(i) {
					p.fits, p.best = []int{i}, i
				} else {
					p.result.Detail = fmt.Sprintf("%s in this layer only: of %d weights of this role, %d are %s", said(p.steps[p.fits[0]].names),
						len(members), holding, said(p.steps[first(members, name)].names))
				}
			}
			break
		}
	}
	j.alone(pairs)
}

func first(members []*pair, name string) int {
	for _, p := range members {
		if i := p.stepNamed(name); i >= 0 {
			return i
		}
	}
	return 0
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
	plus := map[string]int{} // norms by step
	for _, p := range pairs {
		if norm(p) && len(p.fits) > 0 && !constantly(p) {
			plus[p.steps[p.fits[0]].name()]++
		}
	}
	for _, p := range pairs {
		if roles[p.ref.family()] > 1 || len(p.fits) == 0 || p.result.Detail != "" {
			continue
		}
		s := p.steps[p.fits[0]]
		square := len(p.cand.t.Shape()) == 2 && p.cand.t.Shape()[0] == p.cand.t.Shape()[1]
		switch name := s.name(); {
		case norm(p) && s.number != nil && len(plus) > 0 && plus[name] == 1:
			p.result.Detail = name + " in this norm only"
		case norm(p) && s.number == nil && plus["norm + 1"] > 1 && plus[""] == 1:
			p.result.Detail = "norm + 1 everywhere but in this norm"
		case name == "transposed" && square && len(with[name]) == 1:
			p.result.Detail = "transposed, and no other weight is"
		}
	}
}

// constantly reports whether all elements of a weight are the same.
func constantly(p *pair) bool {
	t := p.ref.t
	if t.Len() < 2 {
		return true
	}
	v := make([]float64, min(t.Len(), sampleLen))
	t.Float64s(v, 0)
	for _, x := range v {
		if x != v[0] {
			return false
		}
	}
	return true
}

// decide sets the result of a pair.
func (j *judge) decide(p *pair, pairs []*pair) {
	r := &p.result
	r.Reference, r.Candidate = p.ref.name, p.cand.name
	f := p.whole(p.best)
	if f == nil {
		r.Status, r.Detail = Differs, fmt.Sprintf("shape %s, the reference has %s", tensor.FormatShape(p.cand.t.Shape()),
			tensor.FormatShape(p.ref.t.Shape()))
		return
	}
	r.Figures = f
	steps := slices.Clone(p.by)
	if p.ref.t.Packing() != "" || p.cand.t.Packing() != "" {
		steps = append(steps, "dequantised")
	}
	steps = append(steps, p.steps[p.best].names...)
	if f.cast || len(p.fits) > 0 && p.ref.t.DType() != p.cand.t.DType() && p.ref.t.Packing() == "" && p.cand.t.Packing() == "" {
		steps = append(steps, "cast")
	}
	switch {
	case r.Detail != "":
		r.Status = Differs
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
	if f.Zeros && !f.refZeros {
		r.Detail = "all zeros"
		return
	}
	if f.bad {
		r.Detail = fmt.Sprintf("NaN or infinity that the reference has not, first wrong at %v", f.First)
		return
	}
	if other := j.another(p, pairs); other != "" {
		r.Detail = "it is " + other
		return
	}
	if !exactly(p, pairs) && (p.cand.t.Packing() != "" || p.ref.t.Packing() != "") {
		if q := quantisation(p); q.ok {
			r.Status, r.Detail = Quantised, fmt.Sprintf("%s, %.2g %%", q.format, 100*f.RelL2)
			r.Steps = append(slices.Clone(p.by), p.steps[p.best].names...)
			r.Steps = append(r.Steps, "quantised")
			return
		} else if q.why != "" {
			r.Detail = q.why
			return
		}
	}
	r.Detail = fmt.Sprintf("%d of %d elements in %d rows, rel. L2 %.3g, first at %v%s", f.Mismatches, f.N, f.rows, f.RelL2, f.First,
		j.where(p))
}

// exactly reports whether most other weights of this packing are equal to the reference's: then
// that is dequantised, and this one has to be, too.
func exactly(p *pair, pairs []*pair) bool {
	same, equal := 0, 0
	for _, o := range pairs {
		if o.cand.t.Packing() == p.cand.t.Packing() && o.ref.t.Packing() == p.ref.t.Packing() {
			same++
			if len(o.fits) > 0 {
				equal++
			}
		}
	}
	return 2*equal > same
}

// where says which rows or columns of a matrix differ.
func (j *judge) where(p *pair) string {
	shape := p.cand.t.Shape()
	f := p.full[p.best]
	if len(shape) < 2 || f == nil || f.rows > 1<<12 || f.N > 1<<26 {
		return ""
	}
	width := p.cand.t.RowLen()
	rows := make([]bool, p.cand.t.Len()/max(width, 1))
	c := newComparer(p.ref.t, p.cand.t, &p.steps[p.best])
	for r := range rows {
		g := newFigures()
		c.pass(g, r*width, (r+1)*width)
		rows[r] = g.Mismatches > 0
	}
	at := places.Of(rows)
	return "; " + at.Text("row")
}

// another names the weight of the reference that the candidate has in this place.
func (j *judge) another(p *pair, pairs []*pair) string {
	for _, o := range pairs {
		if o == p || !slices.Equal(o.ref.t.Shape(), p.ref.t.Shape()) || p.best < 0 || constantly(o) {
			continue
		}
		s := &p.steps[p.best]
		if len(p.steps) == 0 {
			s = &step{lay: asIs}
		}
		c := newComparer(o.ref.t, p.cand.t, s)
		if c == nil {
			continue
		}
		f := c.sample()
		if f.Mismatches == 0 || (p.cand.t.Packing() != "" || p.ref.t.Packing() != "") && f.RelL2 < likely/2 && p.seen[p.best].RelL2 > likely {
			return o.ref.name
		}
	}
	return ""
}
