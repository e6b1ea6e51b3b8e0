package session

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/store"
)

// Path is one execution path of a fixture, and what a candidate computed along it.
type Path struct {
	*probe
	Name  string
	plans []path.Plan
	own   []*dump.Run // the candidate's runs of one pass
}

// Judge compares the candidate's runs along the path, once.
func (p *Path) Judge() (*paths.Paths, error) {
	out, err := p.judge()
	along, _ := out.(*paths.Paths)
	return along, err
}

func (p *Path) along() (*paths.Paths, error) {
	f := p.fixture
	runs := paths.Runs{Actual: p.runs, Exact: !f.yaml.Causal()}
	for _, r := range p.own {
		if len(r.Info.Unpadded()) > 0 {
			runs.OnePass = append(runs.OnePass, r)
		}
	}
	if f.yaml.Alone {
		return p.alone(runs)
	}
	variant := f.yaml.Reference(p.runs[0].Info.Device)
	measured, own := p.known(variant)
	runs.Measured, runs.Own = measured, &f.onePass
	names := f.yaml.CaseNames()
	var err error
	if own {
		runs.Own = &f.ofPaths
		if runs.OnePassGolden, err = p.goldens(variant, names); err != nil {
			return nil, err
		}
		names = nil
		for _, plan := range p.plans {
			names = append(names, plan.Name())
		}
	}
	if runs.Golden, err = p.goldens(variant, names); err != nil {
		return nil, err
	}
	return paths.Compare(f.cfg.context(), runs, f.compareOptions())
}

// goldens are those of several cases.
func (p *Path) goldens(variant string, cases []string) (g paths.Goldens, err error) {
	for _, name := range cases {
		k, err := p.fixture.known(variant, name, p.runs[0])
		if err != nil {
			return g, err
		}
		g.Standard, g.Programs = append(g.Standard, k.Golden), append(g.Programs, k.Program)
		g.Float64, g.Encoded = append(g.Float64, have(k.Golden64)...), append(g.Encoded, have(k.Encoded)...)
	}
	return g, nil
}

// have is a run, if there is one.
func have(run *dump.Run) []*dump.Run {
	if run == nil {
		return nil
	}
	return []*dump.Run{run}
}

// alone compares with what the programs of one pass make of the runs.
func (p *Path) alone(runs paths.Runs) (*paths.Paths, error) {
	f := p.fixture
	opt := f.compareOptions()
	of := judge.AloneOptions{Options: opt}
	for _, y := range f.yaml.Cases {
		ran, err := f.alone(y.Name)
		if err != nil {
			return nil, err
		}
		runs.Golden.Programs = append(runs.Golden.Programs, ran)
	}
	undo, err := reference.Keep(&of)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.remove = append(f.remove, undo)
	f.mu.Unlock()
	runs.Alone = &of
	return paths.Compare(f.cfg.context(), runs, opt)
}

// known reports whether the reference was run along the path, and whether the path has goldens of
// its own.
func (p *Path) known(variant string) (known, own bool) {
	for _, plan := range p.plans {
		i := slices.IndexFunc(p.fixture.goldens.Paths(), func(g store.Along) bool {
			return g.Variant == variant && g.Path == p.Name && g.Case == plan.Case
		})
		if i < 0 {
			return false, own
		}
		own = own || p.fixture.goldens.Paths()[i].Own
	}
	return true, own
}

// newPaths plans the execution paths for the tokens of the goldens.
func (f *Fixture) newPaths() (paths []*Path) {
	var inputs []path.Input
	var missing error
	for _, y := range f.yaml.Cases {
		g, err := f.asked(string(f.cfg.Run), y.Name)
		if err == nil && len(g.Info.Unpadded()) == 0 {
			err = fmt.Errorf("the golden of case %s has no token ids: no path can be planned, make it again: parity golden update %s", y.Name, f.dir)
		}
		if err != nil {
			missing = err
			break
		}
		inputs = append(inputs, path.Input{Case: y.Name, Tokens: g.Info.Unpadded(), Images: f.yaml.ImagesOf(y)})
	}
	for _, y := range f.yaml.Paths {
		p := &Path{Name: y.Name, probe: &probe{what: "path " + y.Name, fixture: f, err: missing}}
		p.compare = func() (outcome, error) { return p.along() }
		if missing == nil {
			p.plans, p.left, p.err = f.plan(y, inputs)
			p.plans = slices.DeleteFunc(p.plans, p.leaves)
			if p.err == nil && len(p.plans) == 0 {
				p.err = fmt.Errorf("%s:%d: the reference itself is not along it what it is in one pass: take it out", f.yaml.File, y.Pos.Line)
			}
		}
		for _, plan := range p.plans {
			p.cases = append(p.cases, planCase(plan))
		}
		paths = append(paths, p)
	}
	return paths
}

// leaves reports whether a plan is left out, and notes it.
func (p *Path) leaves(plan path.Plan) bool {
	f := p.fixture
	if f.yaml.Alone {
		return false
	}
	left := slices.ContainsFunc(f.goldens.Paths(), func(g store.Along) bool {
		return g.Left && g.Variant == f.yaml.Reference(string(f.cfg.Run)) && g.Path == p.Name && g.Case == plan.Case
	})
	if left {
		p.left = append(p.left, fmt.Sprintf("path %s is not run with case %s: the reference itself is not along it what it is in one pass", p.Name, plan.Case))
	}
	return left
}

// plan plans a path, and says which cases are too short for it. Those of cases: auto are, on purpose: the
// longest is for it.
func (r *runner) plan(y fixture.Path, inputs []path.Input) (plans []path.Plan, left []string, err error) {
	var about path.About
	if config, err := r.config(); err == nil {
		about.Window, _ = config.Int("sliding_window")
	}
	about.Page, _ = checkpoint.Config(r.yaml.Model.Engine.Settings).Int("kv_cache_page_size")
	if plans, left, err = path.Plans(y.Name, inputs, about); err != nil {
		return nil, nil, fmt.Errorf("%s:%d: %w", r.yaml.File, y.Pos.Line, err)
	}
	if r.yaml.Auto != nil {
		left = nil
	}
	return plans, left, nil
}

func planCase(p path.Plan) engine.Case {
	return engine.Case{Name: p.Name(), TokenIDs: p.Tokens, Images: p.Images, Path: p.Path, Passes: p.Passes}
}
