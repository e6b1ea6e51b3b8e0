package session

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// probe is what a candidate runs besides the one pass of each case: an execution path, or the text after a case. It
// is judged once.
type probe struct {
	what    string // "path decode:8"
	fixture *Fixture
	cases   []engine.Case // that an engine is told to run
	left    []string      // why some cases are left out
	err     error         // why it cannot be judged
	runs    []*dump.Run   // the candidate's, of cases
	call    engine.Func   // runs the cases when they are asked for; nil if the runs are there
	compare func() (outcome, error)
	keep    func(*dump.Run) (*dump.Run, error) // a run as it is recorded; nil: as it is
	judging sync.Once                          // guards the rest
	out     outcome
	judged  atomic.Bool
}

// outcome is what comes of a probe.
type outcome interface {
	Report(fixture string) *report.Report
}

// judge runs and compares, once.
func (p *probe) judge() (outcome, error) {
	p.judging.Do(func() {
		if p.err == nil && p.call != nil {
			p.err = p.ask()
		}
		if p.err == nil {
			p.out, p.err = p.compare()
		}
		if p.err != nil {
			p.err = fmt.Errorf("%s: %w", p.what, p.err)
		}
		p.judged.Store(true)
	})
	return p.out, p.err
}

// ask runs an engine in this process.
func (p *probe) ask() error {
	for _, c := range p.cases {
		r, err := p.call.Along(baseOf(c.Name), c.Path, c.TokenIDs, c.Passes)
		if err != nil {
			return err
		}
		r.Info.Case = c.Name
		p.runs = append(p.runs, r)
	}
	return nil
}

// Report is what came of it, as tests have decided by now; nil if no one asked for it.
func (p *probe) Report() *report.Report {
	switch {
	case !p.judged.Load():
		return nil
	case p.err != nil:
		return &report.Report{Fixture: p.fixture.name, Verdict: report.Error, Error: engine.Message(p.err)}
	}
	r := p.out.Report(p.fixture.name)
	r.Notes = append(r.Notes, p.left...)
	return r
}

// probes are those of a comparison.
type probes struct {
	paths []*Path
	texts []*Generation
}

func (f *Fixture) newProbes() probes { return probes{f.newPaths(), f.newGenerations()} }

func (ps probes) all() (all []*probe) {
	for _, p := range ps.paths {
		all = append(all, p.probe)
	}
	for _, g := range ps.texts {
		all = append(all, g.probe)
	}
	return all
}

// raised takes a probe that the candidate's model cannot run out of a job, with the error that says so.
func (ps probes) raised(err error, job *engine.Job) bool {
	name := engine.Raised(err)
	for _, p := range ps.all() {
		ofProbe := func(k engine.Case) bool {
			return slices.ContainsFunc(p.cases, func(c engine.Case) bool { return c.Name == k.Name && c.Path == k.Path })
		}
		if p.err == nil && slices.ContainsFunc(job.Cases, func(k engine.Case) bool { return k.Name == name && ofProbe(k) }) {
			job.Cases = slices.DeleteFunc(job.Cases, ofProbe)
			p.err, p.cases = err, nil
			return true
		}
	}
	return false
}

// take gives each probe its runs, and returns the others, which are of one pass.
func (ps probes) take(runs []*dump.Run) (onePass []*dump.Run, err error) {
	runs = slices.Clone(runs)
	for _, p := range ps.all() {
		p.runs = nil
		for _, c := range p.cases {
			i := slices.IndexFunc(runs, func(r *dump.Run) bool {
				if p.keep != nil {
					return r.Info.Case == c.Name
				}
				return r.Info.Path == c.Path && (r.Info.Case == c.Name || r.Info.Case == baseOf(c.Name))
			})
			if i < 0 {
				if p.err == nil {
					p.err = fmt.Errorf("the candidate's run has no %s: record it again, or run the candidate now (-parity.run=cpu)", c.Name)
				}
				continue
			}
			runs[i].Info.Case = c.Name
			p.runs = append(p.runs, runs[i])
			runs = slices.Delete(runs, i, i+1)
		}
	}
	for _, r := range runs {
		if r.Info.AlongPath() {
			return nil, fmt.Errorf("%s was run along %q, which is no path of the fixture: add it to paths, or take the run out",
				filepath.ToSlash(r.Path), r.Info.Path)
		}
	}
	return runs, nil
}

// recorded are the runs as they are recorded.
func (ps probes) recorded() (runs []*dump.Run, err error) {
	for _, p := range ps.all() {
		for _, r := range p.runs {
			if p.keep != nil {
				if r, err = p.keep(r); err != nil {
					return nil, fmt.Errorf("%s: %w", p.what, err)
				}
			}
			runs = append(runs, r)
		}
	}
	return runs, nil
}

func (f *Fixture) probesOf(c *judge.Comparison) probes {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(c).probes
}

// Paths returns the fixture's execution paths, as the candidate of a comparison ran them.
func (f *Fixture) Paths(c *judge.Comparison) []*Path { return f.probesOf(c).paths }

// Generations returns the texts of a fixture, as the candidate of a comparison ran them.
func (f *Fixture) Generations(c *judge.Comparison) []*Generation { return f.probesOf(c).texts }

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
	own := false
	runs.Measured, runs.Own = true, &f.onePass
	for _, plan := range p.plans {
		g := p.measured(variant, plan)
		runs.Measured = runs.Measured && g != nil
		own = own || runs.Measured && g.Own
	}
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
	undo, err := of.Spill()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.remove = append(f.remove, undo)
	f.mu.Unlock()
	runs.Alone = &of
	return paths.Compare(f.cfg.context(), runs, opt)
}

// measured is what goldens say of the reference along a plan; nil where it was not run along it.
func (p *Path) measured(variant string, plan path.Plan) *store.Along {
	all := p.fixture.goldens.Paths()
	i := slices.IndexFunc(all, func(g store.Along) bool { return g.Variant == variant && g.Path == p.Name && g.Case == plan.Case })
	if i < 0 {
		return nil
	}
	return &all[i]
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
	g := p.measured(f.yaml.Reference(string(f.cfg.Run)), plan)
	if g == nil || !g.Left {
		return false
	}
	p.left = append(p.left, fmt.Sprintf("path %s is not run with case %s: the reference itself is not along it what it is in one pass", p.Name, plan.Case))
	return true
}

// plan plans a path, and says which cases are too short for it. Those of cases: auto are, on purpose: the
// longest is for it.
func (f *Fixture) plan(y fixture.Path, inputs []path.Input) (plans []path.Plan, left []string, err error) {
	var about path.About
	if config, err := f.config(); err == nil {
		about.Window, _ = config.Int("sliding_window")
	}
	about.Page, _ = checkpoint.Config(f.yaml.Model.Engine.Settings).Int("kv_cache_page_size")
	if plans, left, err = path.Plans(y.Name, inputs, about); err != nil {
		return nil, nil, fmt.Errorf("%s:%d: %w", f.yaml.File, y.Pos.Line, err)
	}
	if f.yaml.Auto != nil {
		left = nil
	}
	return plans, left, nil
}

func planCase(p path.Plan) engine.Case {
	return engine.Case{Name: p.Name(), TokenIDs: p.Tokens, Images: p.Images, Path: p.Path, Passes: p.Passes}
}

// Generation is the text of a case, along which the candidate was forced.
type Generation struct {
	*probe
	Case   string
	golden *dump.Run // what is kept of the reference's logits; nil with err
	tokens int       // that are judged; 0 for all of the golden's
}

// Judge judges the first n tokens of the text, all of the golden's for 0. Only the first call counts.
func (g *Generation) Judge(n int) (*paths.Continuation, error) {
	if !g.judged.Load() {
		g.tokens = n
	}
	out, err := g.judge()
	if err == nil && g.tokens != n {
		return nil, fmt.Errorf("%s: another test of this process judged %d tokens, this one asks for %d: ask for one number, 0 is all",
			g.what, g.tokens, n)
	}
	o, _ := out.(*paths.Continuation)
	return o, err
}

func (g *Generation) forced() (*paths.Continuation, error) {
	reference, err := paths.OpenSide(g.golden, nil)
	if err != nil {
		return nil, err
	}
	actual, err := paths.OpenSide(g.runs[0], reference)
	if err != nil {
		return nil, err
	}
	reference.Case = g.Case
	opt := paths.ContinuationOptions{Tokens: g.tokens, Judge: g.fixture.compareOptions()}
	opt.Encoding = (judge.Case{Golden: g.golden, Actual: g.runs[0]}).Encoding()
	opt.Limits = g.limits(opt.Encoding, actual)
	return paths.CompareContinuation(g.fixture.cfg.context(), reference, actual, opt)
}

// limits are those of the fixture on the relative L2 of logits; nil for the defaults.
func (g *Generation) limits(d tensor.DType, actual *paths.Side) *compare.Limits {
	layer, port := actual.Logits()
	c, source := g.fixture.yaml.Criteria(layer, port, d)
	l := c.Limits()
	if source == "" || l.RelL2 == 0 {
		return nil
	}
	l.RowRelL2 = max(l.RowRelL2, l.RelL2)
	return &l
}

// newGenerations plans a text for each case of one sequence.
func (f *Fixture) newGenerations() (out []*Generation) {
	if f.yaml.Generation == 0 {
		return nil
	}
	for _, y := range f.yaml.Cases {
		g := &Generation{Case: y.Name, probe: &probe{what: "generation of case " + y.Name, fixture: f}}
		g.compare, g.keep = func() (outcome, error) { return g.forced() }, g.recorded
		g.golden, g.err = f.goldens.Golden(f.yaml.Reference(string(f.cfg.Run)), dump.PathCase(y.Name, dump.Generated))
		if g.err == nil && len(g.golden.Info.Generation.Tokens) < f.yaml.Generation {
			g.err = fmt.Errorf("the golden has %d tokens, generation: %d of %s asks for more: make it again: parity golden update %s",
				len(g.golden.Info.Generation.Tokens), f.yaml.Generation, f.yaml.File, f.dir)
		}
		if g.err == nil {
			g.cases = []engine.Case{g.engineCase()}
		}
		out = append(out, g)
	}
	return out
}

// engineCase is what an engine is told to run: the prompt, and then a token in each forward pass.
func (g *Generation) engineCase() engine.Case {
	info, n := g.golden.Info, g.fixture.yaml.Generation
	from := info.Generation.From
	last := from + n - 1
	c := engine.Case{Name: dump.PathCase(g.Case, dump.Generated), TokenIDs: [][]int{info.Tokens()[0][:last]}, Path: dump.OnePass,
		Passes: [][]dump.PassItem{{{To: from}}}}
	if n > 1 {
		c.Path = fmt.Sprintf("%s:%d", dump.Decode, n-1)
	}
	for at := from; at < last; at++ {
		c.Passes = append(c.Passes, []dump.PassItem{{From: at, To: at + 1}})
	}
	if y, err := g.fixture.yaml.Case(g.Case); err == nil {
		c.Images = g.fixture.yaml.ImagesOf(y)
	}
	return c
}

// recorded is a candidate's run as it is recorded: of the logits the largest alone.
func (g *Generation) recorded(actual *dump.Run) (*dump.Run, error) {
	reference, err := paths.OpenSide(g.golden, nil)
	if err != nil {
		return nil, err
	}
	side, err := paths.OpenSide(actual, reference)
	if err != nil {
		return nil, err
	}
	n := g.fixture.yaml.Generation
	entries, choices, err := side.Keep(n, reference.Known)
	if err != nil {
		return nil, err
	}
	info := actual.Info
	info.Path, info.Passes, info.Order, info.PadMask, info.PadMasks = "", nil, nil, nil, nil
	from := g.golden.Info.Generation.From
	info.Generation = &dump.Generation{From: from, Tokens: choices}
	if info.TokenIDs, err = json.Marshal([][]int{g.golden.Info.Tokens()[0][:from+n]}); err != nil {
		return nil, err
	}
	return dump.New(actual.Path, info, actual.OrderBy, entries), nil
}

// baseOf is the case that a run along a path or a text is of.
func baseOf(caseName string) string {
	base, _ := dump.CutPathCase(caseName)
	return base
}
