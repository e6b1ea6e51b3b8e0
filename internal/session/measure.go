package session

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// measure runs a variant of the reference along the paths, and compares each with its own runs of
// one pass. Where all rows are the same within the noise floor, the path shares the goldens of one
// pass; otherwise it keeps its own. Of a causal model a beginning of each prompt, without the last
// third, is run too: that its rows are those of the whole prompt is what causal means.
func (u *update) measure(m *made, onePass []*dump.Run) error {
	if len(u.yaml.Paths) == 0 {
		return nil
	}
	var inputs []path.Input
	for i, y := range u.yaml.Cases {
		tokens := onePass[i].Info.Unpadded()
		if len(tokens) == 0 {
			return fmt.Errorf("case %s has no tokens, and paths are ways to run tokens: take paths out", y.Name)
		}
		inputs = append(inputs, path.Input{Case: y.Name, Tokens: tokens, Images: u.yaml.ImagesOf(y)})
	}
	var all [][]path.Plan
	for _, y := range u.yaml.Paths {
		plans, left, err := u.plan(y, inputs)
		if err != nil {
			return err
		}
		for _, text := range left {
			fmt.Fprintf(u.out, "parity: update %s: %s\n", u.name, text)
		}
		all = append(all, plans)
	}
	if u.yaml.Causal() {
		all = append(all, cuts(inputs))
	}
	var cases []engine.Case
	m.cases = map[string]engine.Case{}
	for _, plan := range slices.Concat(all...) {
		c := planCase(plan)
		cases, m.cases[c.Name] = append(cases, c), c
	}
	runs, err := u.runCases(m.variant, "along paths", cases)
	if err != nil {
		return err
	}
	for _, plans := range all {
		paths, err := u.compareOwn(m.variant, plans, onePass, runs)
		if err != nil {
			return err
		}
		m.paths = append(m.paths, paths...)
	}
	for _, p := range m.paths {
		if p.Own && u.yaml.Wants(p.Golden()) {
			m.along = append(m.along, runs[slices.IndexFunc(runs, func(r *dump.Run) bool { return r.Info.Case == p.Golden() })])
		}
	}
	return nil
}

// costsAlong runs the variants that say what an encoding costs along the paths that keep goldens of
// their own: of one pass that is not known there.
func (u *update) costsAlong(all []*made) error {
	i := slices.IndexFunc(all, func(m *made) bool { return m.variant == u.yaml.Reference("") })
	if i < 0 {
		return nil
	}
	for _, m := range all {
		if u.yaml.Use(m.variant) != fixture.UseCost {
			continue
		}
		var cases []engine.Case
		for _, p := range all[i].paths {
			if p.Own && u.yaml.Wants(p.Golden()) {
				p.Variant = m.variant
				m.paths, cases = append(m.paths, p), append(cases, all[i].cases[p.Golden()])
			}
		}
		if len(cases) == 0 {
			continue
		}
		runs, err := u.runCases(m.variant, "in "+m.variant+" along paths", cases)
		if err != nil {
			return err
		}
		m.along = append(m.along, runs...)
	}
	return nil
}

// runCases runs cases in a job of the reference. what says which, for errors.
func (u *update) runCases(variant, what string, cases []engine.Case) ([]*dump.Run, error) {
	job, err := u.reference(variant)
	if err != nil {
		return nil, err
	}
	job.Cases = cases
	r, err := u.run(job)
	if err != nil {
		return nil, fmt.Errorf("the reference %s: %w", what, err)
	}
	return r.Runs, nil
}

// cuts are plans of the first two thirds of each sequence, run alone.
func cuts(inputs []path.Input) (plans []path.Plan) {
	for _, in := range inputs {
		n := len(in.Tokens[0])
		if m := n - n/3; m < n {
			p, _, err := path.Plans(fmt.Sprintf("%s:%d", dump.Lengths, m), []path.Input{{Case: in.Case, Tokens: in.Tokens[:1], Images: in.Images}}, path.About{})
			if err == nil {
				plans = append(plans, p...)
			}
		}
	}
	return plans
}

// compareOwn compares the reference's runs of a path with its runs of one pass.
func (u *update) compareOwn(variant string, plans []path.Plan, onePass, runs []*dump.Run) (out []store.Along, err error) {
	own := false
	for _, plan := range plans {
		i := slices.IndexFunc(runs, func(r *dump.Run) bool { return r.Info.Case == plan.Name() })
		p, err := paths.Compare(u.cfg.context(), paths.Runs{Golden: paths.Goldens{Standard: onePass}, Actual: runs[i : i+1], Exact: !u.yaml.Causal()}, judge.Options{})
		if err != nil {
			return nil, fmt.Errorf("the reference along path %s: %w", plan.Path, err)
		}
		ref, _ := u.yaml.Variant(variant)
		dtype, err := tensor.ParseDType(ref.DType)
		if err != nil {
			return nil, err
		}
		g := store.Along{Variant: variant, Case: plan.Case, Path: plan.Path, Limit: compare.Floor(dtype).RowRelL2}
		if a, agrees := p.Agreement(); a == nil {
			g.Own, g.Limit = true, 0 // one pass has no such rows
		} else {
			g.RowRelL2 = min(float64(a.RowRelL2), math.MaxFloat64) // of rows of zeros in one pass; JSON has no infinity
			g.Label = dump.Entry{Layer: a.Layer, Port: a.Port}.Label()
			g.Left = !agrees && plan.Images != nil
			g.Own = !agrees && !g.Left
		}
		own = own || g.Own
		out = append(out, g)
	}
	for i := range out {
		out[i].Own = own && !out[i].Left // all cases of a path are judged alike
		what := "shares the goldens of one pass"
		if out[i].Left {
			what = "is left out: the reference cuts images there"
		} else if own {
			what = "keeps its own goldens"
		}
		if out[i].Limit > 0 {
			what += fmt.Sprintf(": the worst row is at relative L2 %.3g, %s", out[i].RowRelL2, out[i].Label)
		}
		fmt.Fprintf(u.out, "parity: update %s: %s: path %s %s\n", u.name, variant, dump.PathCase(out[i].Case, out[i].Path), what)
	}
	return out, nil
}
