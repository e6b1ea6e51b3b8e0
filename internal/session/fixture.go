package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/golden"
	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/infra"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
)

// Problem is something wrong with the fixture itself, which tests show as a subtest of this name.
type Problem struct {
	Name, Text string
	Class      string // of parity:infra: why nothing could be compared
}

// Trouble is the one subtest that fails where nothing could be compared.
func Trouble(err error) Problem {
	return Problem{Name: "parity:infra", Text: infra.Text(err), Class: infra.Class(err)}
}

// Fixture is one fixture of the test binary. It is opened and compared once, for the first test
// that needs it.
type Fixture struct {
	replay     string // instead of the recorded run
	goldenDump string

	used      atomic.Bool
	summaries atomic.Int64 // how many were asked for

	runner
	opening sync.Once // guards goldens and openErr
	goldens *goldens
	openErr error

	comparing sync.Once   // guards the rest
	runs      []*dump.Run // the candidate's
	injected  []*dump.Run // the candidate's on golden inputs; nil if there are none
	c         *judge.Comparison
	err       error
	problems  []Problem

	mu       sync.Mutex
	compared []*judge.Comparison // what is reported: c, or those of functions

	weights *checkpoint.Files // of the model's folder, opened when a cause is looked for
}

// Name is the last element of the folder.
func (f *Fixture) Name() string { return f.name }

// Comparison is the result for all cases, computed once.
func (f *Fixture) Comparison() (*judge.Comparison, error) {
	f.used.Store(true)
	f.comparing.Do(func() {
		if f.c, f.err = f.load(); f.err == nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.compared = append(f.compared, f.c)
		}
	})
	return f.c, f.err
}

// CompareFunc compares what an engine in this process computes with the goldens.
func (f *Fixture) CompareFunc(run engine.Func) (*judge.Comparison, error) {
	f.used.Store(true)
	if err := f.open(); err != nil {
		return nil, err
	}
	var runs []*dump.Run
	for _, y := range f.yaml.Cases {
		g, err := f.goldens.run(f.goldens.first, y.Name)
		if err != nil {
			return nil, err
		}
		r, err := run.Run(g)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	cases, err := f.cases(runs)
	if err != nil {
		return nil, err
	}
	c, err := judge.Compare(f.cfg.context(), cases, f.compareOptions())
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.compared = append(f.compared, c)
	}
	return c, err
}

// Problems lists what is wrong with the fixture although it could be compared.
func (f *Fixture) Problems() []Problem { return f.problems }

// open opens the goldens.
func (f *Fixture) open() error {
	f.opening.Do(func() {
		if f.openErr = f.readYAML(); f.openErr != nil {
			return
		}
		f.goldens = &goldens{first: f.yaml.References[0]}
		f.goldens.store, f.openErr = golden.Open(f.goldenDir())
	})
	return f.openErr
}

func (f *Fixture) goldenDir() string { return cmp.Or(f.cfg.Goldens, filepath.Join(f.dir, "golden")) }

func (f *Fixture) load() (*judge.Comparison, error) {
	err := f.open()
	if err != nil {
		return nil, err
	}
	if f.isLive() {
		f.runs, err = f.live()
	} else {
		f.runs, err = f.openRuns()
	}
	if err != nil {
		return nil, err
	}
	cases, err := f.cases(f.runs)
	if err != nil {
		return nil, err
	}
	if err := f.addInjected(cases); err != nil {
		return nil, err
	}
	c, err := judge.Compare(f.cfg.context(), cases, f.compareOptions())
	if err != nil {
		return nil, err
	}
	c.Live = f.isLive()
	for _, n := range f.notes {
		c.Note(n)
	}
	f.inspect(c)
	return c, nil
}

// live runs the candidate, all cases in one process, and opens its dump.
func (f *Fixture) live() ([]*dump.Run, error) {
	job, err := f.candidate(f.goldens)
	if err != nil {
		return nil, err
	}
	r, err := f.observed(job)
	if err != nil {
		return nil, err
	}
	return r.Runs, nil
}

func (f *Fixture) isLive() bool { return f.replay == "" && f.cfg.Run != setting.RunReplay }

// NoRecordedRun is what errors say where nothing was recorded yet.
const NoRecordedRun = "no recorded run"

// openRuns opens what is judged: the recorded run that the fixture names, or another one.
func (f *Fixture) openRuns() ([]*dump.Run, error) {
	dir := f.replay
	if dir == "" {
		if f.yaml.Replay == "" {
			return nil, fmt.Errorf("%s names "+NoRecordedRun+": write replay: NAME, or point PARITY_REPLAY to a dump", f.yaml.File)
		}
		dir = f.runDir(f.yaml.Replay, dump.Standard)
		if !isDir(dir) {
			return nil, fmt.Errorf("%s: replay: %s: there is "+NoRecordedRun+" %s: record it with PARITY_REPLAY=DUMP -parity.record=%s",
				f.yaml.File, f.yaml.Replay, filepath.ToSlash(dir), f.yaml.Replay)
		}
	}
	runs, err := dump.OpenCases(dir, dump.Options{})
	if err != nil {
		return nil, err
	}
	if len(runs) == 1 && len(f.yaml.Cases) == 1 && runs[0].Info.Case == "" {
		runs[0].Info.Case = f.yaml.Cases[0].Name // the dump does not say, and there is only one case
	}
	return runs, nil
}

func (f *Fixture) runDir(name, mode string) string { return filepath.Join(f.dir, "runs", name, mode) }

// cases pairs the goldens of each case with the candidate's run of it.
func (f *Fixture) cases(runs []*dump.Run) ([]judge.Case, error) {
	var out []judge.Case
	for _, y := range f.yaml.Cases {
		k := judge.Case{Name: y.Name}
		i := slices.IndexFunc(runs, func(r *dump.Run) bool { return r.Info.Case == y.Name })
		if i < 0 {
			return nil, fmt.Errorf("%s:%d: case %s: the candidate's run in %s has no such case, it has %s",
				f.yaml.File, y.Pos.Line, y.Name, filepath.ToSlash(runs[0].Path), dump.CaseNames(runs))
		}
		k.Actual = runs[i]
		var err error
		if k.Golden, err = f.goldens.run(f.goldens.first, y.Name); err != nil {
			return nil, err
		}
		if k.Golden64, err = f.goldens.float64(y.Name); err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

func (f *Fixture) compareOptions() judge.Options {
	opt := judge.Options{Criteria: f.yaml.Criteria, Diagnosis: judge.Diagnosis{Mode: f.cfg.Diagnose, Evidence: f.evidence, Extra: f.cfg.Hypotheses},
		Match: match.Options{Rules: f.yaml.MatchRules(), Ignore: f.yaml.MatchIgnores()}}
	for _, g := range f.yaml.Scope {
		opt.Scope = append(opt.Scope, g.Pattern)
	}
	opt.Match.Generating = f.yaml.Model.Task == fixture.TextGeneration
	return opt
}

// inspect looks for what makes a result worth less than it seems.
func (f *Fixture) inspect(c *judge.Comparison) {
	for _, text := range f.staleGoldens() {
		f.problem("parity:stale", text)
	}
	for _, r := range slices.Concat(f.runs, f.injected) {
		if f.replay == "" && !f.isLive() {
			if changes := fixture.Changed(r.Info.Inputs, f.runInputs(r.Info)); len(changes) > 0 {
				what, how := "run", "PARITY_REPLAY=DUMP go test"
				if r.Info.Mode == dump.Injected {
					what, how = "injected run", "go test -parity.run=cpu -parity.mode=both"
				}
				f.problem("parity:stale", fmt.Sprintf("the recorded %s %s of case %s is stale: %s; record it again: %s -parity.record=%s",
					what, f.yaml.Replay, r.Info.Case, strings.Join(changes, "; "), how, f.yaml.Replay))
			}
		}
	}
	if err := f.yaml.CheckLayers(c.Names()); err != nil {
		f.problem("parity:fixture", err.Error())
	}
	if err := f.require(c); err != nil {
		f.problem("parity:missing", err.Error())
	}
}

// staleGoldens says for each variant and case what changed in the fixture since its goldens were
// made. It skips goldens of cases that the fixture no longer has.
func (f *Fixture) staleGoldens() []string {
	var out []string
	seen := map[[2]string]bool{}
	for _, p := range f.goldens.store.Passes() {
		of := [2]string{p.Variant, p.Case}
		if _, err := f.yaml.Case(p.Case); err != nil || seen[of] {
			continue
		}
		seen[of] = true
		if changes := fixture.Changed(p.Provenance.Inputs, f.yaml.Inputs(p.Case)); len(changes) > 0 {
			out = append(out, fmt.Sprintf("golden: %s: the goldens %s of case %s are stale: %s; renew them: go test ./... -update",
				f.goldens.store.Dir(), p.Variant, p.Case, strings.Join(changes, "; ")))
		}
	}
	return out
}

func (f *Fixture) problem(name, text string) {
	for i, p := range f.problems {
		if p.Name == name {
			f.problems[i].Text += "\n" + text
			return
		}
	}
	f.problems = append(f.problems, Problem{Name: name, Text: text})
}

// require finds layers that the recorded run has and the replayed one lacks: a dumper that died
// must not pass.
func (f *Fixture) require(c *judge.Comparison) error {
	if f.replay == "" && !f.isLive() || f.yaml.Replay == "" {
		return nil
	}
	runs, err := dump.OpenCases(f.runDir(f.yaml.Replay, dump.Standard), dump.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was recorded yet
	}
	if err != nil {
		return err
	}
	defer dump.CloseAll(runs)
	cases, err := f.cases(runs)
	if err != nil {
		return err
	}
	recorded, err := judge.Outputs(cases, f.compareOptions().Match)
	if err != nil {
		return err
	}
	lost := c.Layers.Require(recorded)
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%d layers that the recorded run %s has were not recorded this time: %s", len(lost), f.yaml.Replay, label.Few(lost))
}

// report returns the report of what tests decided. A fixture with a problem never passes.
func (f *Fixture) report(c *judge.Comparison) *report.Report {
	return f.problematic(c.Report(f.name, false))
}

// Report returns the report of all ports, judged by the fixture's tolerances.
func (f *Fixture) Report() (*report.Report, error) {
	c, err := f.Comparison()
	if err != nil {
		return nil, err
	}
	return f.problematic(c.Report(f.name, true)), nil
}

// problematic adds what is wrong with the fixture itself.
func (f *Fixture) problematic(r *report.Report) *report.Report {
	for _, p := range f.problems {
		r.Notes = append([]string{p.Name + ": " + p.Text}, r.Notes...)
		if r.Verdict == report.Pass || r.Verdict == report.Incomplete {
			r.Verdict = report.Fail
		}
	}
	return r
}

// Summary returns the text of the report of what was decided so far. Where very many tests fail,
// only some of them get it: each takes a look at all ports.
func (f *Fixture) Summary(c *judge.Comparison) string {
	if n := f.summaries.Add(1); n > allSummaries && n&(n-1) != 0 {
		return "parity: more than " + strconv.Itoa(allSummaries) + " tests failed: the report so far is printed again after twice as many\n"
	}
	var b strings.Builder
	if err := report.Text(&b, f.report(c), report.TextOptions{}); err != nil {
		return err.Error()
	}
	return b.String()
}

func (f *Fixture) close() error {
	var errs []error
	if f.goldens != nil && f.goldens.store != nil {
		errs = append(errs, f.goldens.store.Close())
	}
	errs = append(errs, dump.CloseAll(f.runs), dump.CloseAll(f.injected))
	if f.weights != nil {
		errs = append(errs, f.weights.Close())
	}
	return errors.Join(append(errs, f.runner.close())...)
}
