package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// Problem is something wrong with the fixture itself, which tests show as a subtest of this name.
type Problem struct {
	Name, Text string
	Class      string // of parity:infra: why nothing could be compared
}

// Trouble is the one subtest that fails where nothing could be compared.
func Trouble(err error) Problem {
	return Problem{Name: "parity:infra", Text: engine.Text(err), Class: engine.Class(err)}
}

// Fixture is one fixture of the test binary. It is opened and compared once, for the first test
// that needs it.
type Fixture struct {
	dir, name  string
	out        string // folder of its reports; "" for none
	replay     string // instead of the recorded run
	goldenDump string
	cfg        *Config
	yaml       *fixture.Fixture // once readYAML was called

	remove []func() error // folders that engines wrote, which live until the session ends
	opened []*dump.Run
	notes  []string // of these runs, for the report
	used   atomic.Bool

	onePass, ofPaths paths.Own // for paths without goldens of their own, and with them

	opening  sync.Once // guards goldens and openErr
	goldens  *store.Store
	recorded *store.Store // of the recorded run
	openErr  error

	comparing sync.Once   // guards the rest
	runs      []*dump.Run // the candidate's
	probes    probes      // with its runs along paths and texts
	injected  []*dump.Run // the candidate's on golden inputs; nil if there are none
	c         *judge.Comparison
	err       error

	mu          sync.Mutex
	programs    map[*dump.Run]*program.Program // by golden; nil where there is none
	answered    bool                           // something judged what the fixture expects
	compared    []*judged                      // what is reported: that of c, or those of functions
	idle        judged                         // of tests that compared nothing
	served      []*report.Serving
	servedErr   error
	servedLater bool // a test asks the server in a live run

	weights *checkpoint.Checkpoint // opened when a cause is looked for
}

// Name is the last element of the folder.
func (f *Fixture) Name() string { return f.name }

// Mode says where the candidate runs, RunReplay for a recorded run; "" where another dump is judged.
func (f *Fixture) Mode() setting.Run {
	if f.replay != "" {
		return "" // a dump, which may have what a recorded run has not
	}
	return f.cfg.Run
}

// Comparison is the result for all cases, computed once.
func (f *Fixture) Comparison() (*judge.Comparison, error) {
	f.used.Store(true)
	f.comparing.Do(func() {
		f.c, f.err = f.load()
	})
	return f.c, f.err
}

// judged is a comparison, and what belongs to it.
type judged struct {
	c        *judge.Comparison
	probes   probes
	problems []Problem
	tests    []string // names of those that judged it, which may run in parallel
	failed   bool     // one of them did
	told     bool     // and said where the error is and why
}

// of returns what belongs to a comparison; the caller holds mu.
func (f *Fixture) of(c *judge.Comparison) *judged {
	if i := slices.IndexFunc(f.compared, func(j *judged) bool { return j.c == c }); i >= 0 {
		return f.compared[i]
	}
	return &f.idle
}

// Tested says that a test has judged a comparison of the fixture, nil if there is none, and whether it failed and told where
// the error is.
func (f *Fixture) Tested(c *judge.Comparison, test string, failed, told bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.of(c)
	j.tests = append(j.tests, test)
	j.failed, j.told = j.failed || failed, j.told || told
}

// testsOf lists the tests of a comparison, and those that compared nothing: their subtests are of the
// fixture's own report.
func (f *Fixture) testsOf(j *judged) []string {
	names := slices.Concat(j.tests, f.idle.tests)
	slices.Sort(names)
	return slices.Compact(names)
}

// CompareFunc compares what an engine in this process computes with the goldens.
func (f *Fixture) CompareFunc(run engine.Func) (*judge.Comparison, error) {
	f.used.Store(true)
	if err := f.open(); err != nil {
		return nil, err
	}
	var runs []*dump.Run
	for _, y := range f.yaml.Cases {
		g, err := f.asked("", y.Name)
		if err != nil {
			return nil, err
		}
		r, err := run.Run(g)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	ps := f.newProbes()
	for _, p := range ps.all() {
		p.call = run
	}
	return f.judge(runs, ps, true)
}

// judge compares the candidate's runs of one pass, and keeps the comparison for the report, with what else is
// judged of the candidate.
func (f *Fixture) judge(runs []*dump.Run, ps probes, isFunc bool) (*judge.Comparison, error) {
	for _, p := range ps.paths {
		p.own = runs
	}
	cases, err := f.cases(runs)
	if err == nil && !isFunc {
		err = f.addInjected(cases)
	}
	if err != nil {
		return nil, err
	}
	c, err := f.compare(cases)
	if err != nil {
		return nil, err
	}
	c.Live = !isFunc && f.isLive()
	f.mu.Lock()
	f.compared = append(f.compared, &judged{c: c, probes: ps})
	f.mu.Unlock()
	f.inspect(c, isFunc)
	return c, nil
}

// Problems lists what is wrong with the fixture although it could be compared, as a comparison shows it.
func (f *Fixture) Problems(c *judge.Comparison) []Problem {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(c).problems
}

// open opens the goldens.
func (f *Fixture) open() error {
	f.opening.Do(func() {
		if f.openErr = f.readYAML(); f.openErr != nil {
			return
		}
		f.goldens, f.openErr = store.Open(f.goldenDir())
	})
	return f.openErr
}

func (f *Fixture) goldenDir() string { return filepath.Join(f.dir, "golden") }

func (f *Fixture) load() (*judge.Comparison, error) {
	err := f.open()
	if err != nil {
		return nil, err
	}
	if f.isLive() {
		f.probes = f.newProbes()
		err = f.live()
	} else {
		err = f.openRuns()
	}
	if err != nil {
		return nil, err
	}
	c, err := f.judge(f.runs, f.probes, false)
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Concat(f.notes, checkpoint.Unread(f.modelFolder())) {
		c.Note(n)
	}
	if len(f.yaml.NotTried) > 0 {
		c.Note("not tried: " + strings.Join(f.yaml.NotTried, "; "))
	}
	if f.goldenDump != "" && f.cfg.Update == setting.UpdateNone {
		c.Note("PARITY_GOLDEN_DUMP was not read: only an update imports it, the fixture's goldens judged")
	}
	return c, nil
}

// take keeps runs until the session ends, and gives them to those who planned them.
func (f *Fixture) take(runs []*dump.Run) (onePass []*dump.Run, err error) {
	f.opened = append(f.opened, runs...)
	return f.probes.take(runs)
}

// live runs the candidate, all cases in one process, and opens its dump.
func (f *Fixture) live() error {
	job, err := f.candidate()
	if err != nil {
		return err
	}
	switch f.yaml.Weights {
	case fixture.WeightsOff:
	case fixture.WeightsHashes:
		job.WeightHashes = true
	default:
		job.Weights = mostWeights
	}
	for _, p := range f.probes.all() {
		if p.err == nil {
			job.Cases = append(job.Cases, p.cases...)
		}
	}
	r, err := f.observed(job)
	for f.probes.raised(err, &job) { // an engine that cannot run a path is judged by all else
		r, err = f.observed(job)
	}
	if err != nil {
		return err
	}
	f.runs, err = f.take(r.Runs)
	return err
}

func (f *Fixture) isLive() bool { return f.replay == "" && f.cfg.Run != setting.RunReplay }

// ErrNoRecordedRun says that nothing was recorded yet.
var ErrNoRecordedRun = errors.New("no recorded run")

// openRuns opens what is judged: another run, or the recorded one that the fixture names, with its
// injected run if it has one.
func (f *Fixture) openRuns() error {
	if f.replay != "" {
		f.probes = f.newProbes()
		runs, err := f.openCases(f.replay)
		if err == nil {
			f.runs, err = f.take(runs)
		}
		return err
	}
	name := f.yaml.Replay
	if name == "" {
		return fmt.Errorf("%s names %w: write replay: NAME, or point PARITY_REPLAY to a dump", f.yaml.File, ErrNoRecordedRun)
	}
	dir := f.runDir(name)
	s, err := store.Open(dir)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%s: replay: %s: there is %w %s: record it with -parity.record=%s and -parity.run=cpu or PARITY_REPLAY=DUMP",
			f.yaml.File, name, ErrNoRecordedRun, filepath.ToSlash(dir), name)
	}
	if err != nil {
		return err
	}
	f.recorded = s
	f.probes = f.newProbes()
	var runs []*dump.Run
	for _, k := range s.Runs() {
		r, err := s.Run(k)
		if err != nil {
			return err
		}
		if k.Info.Mode == dump.Injected {
			f.injected = append(f.injected, r)
		} else {
			runs = append(runs, r)
		}
	}
	f.runs, err = f.take(runs)
	return err
}

// openCases opens a run of the fixture's cases.
func (f *Fixture) openCases(dir string) ([]*dump.Run, error) {
	if x, err := store.ReadIndex(dir); err == nil && slices.ContainsFunc(x.Runs, func(k *store.Kept) bool { return k.Variant != "" }) {
		return nil, fmt.Errorf("%s holds goldens: the reference would be compared with itself, name a run of the candidate", filepath.ToSlash(dir))
	}
	runs, err := store.OpenCases(dir, dump.Options{Cases: f.yaml.CaseNames(), Unjudged: len(f.yaml.Paths) > 0 || f.yaml.Generation > 0})
	if len(runs) == 1 {
		runs[0].Info.Case = f.yaml.CaseOfOnly(runs[0].Info.Case)
	}
	return runs, err
}

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
		var err error
		if f.yaml.Alone {
			k.Actual = runs[i]
			k.Program, err = f.alone(y.Name)
		} else {
			k, err = f.known(f.yaml.Reference(runs[i].Info.Device), y.Name, runs[i])
		}
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// known is what is known of a case beside a candidate's run: the goldens of the variant that judges,
// what the reference ran for them, and what other variants say: how far off the judging one is
// itself, what the candidate's encoding costs it, or, where it is not the plain reference, what that
// costs.
func (f *Fixture) known(variant, caseName string, actual *dump.Run) (k judge.Case, err error) {
	k = judge.Case{Name: caseName, Actual: actual}
	if k.Golden, err = f.goldens.Golden(variant, caseName); err != nil {
		return k, err
	}
	k.Program = f.program(variant, caseName, k.Golden)
	of := map[string]**dump.Run{}
	if r, _ := f.yaml.Variant(variant); !r.IsPlain() {
		of[f.yaml.Unquantised(variant)], of[f.yaml.Unrounded(variant)] = &k.Unquantised, &k.Unrounded
	} else {
		if d := k.Encoding(); d.Size() == 2 {
			of[d.String()] = &k.Encoded
		}
		of[tensor.F64.String()] = &k.Golden64
	}
	for other, to := range of {
		if other != variant && f.goldens.Find(other, caseName) != nil {
			if *to, err = f.goldens.Golden(other, caseName); err != nil {
				return k, err
			}
		}
	}
	return k, nil
}

// program returns what the reference ran for a golden; nil if that was not recorded, or cannot be
// used, which the golden notes once.
func (f *Fixture) program(variant, caseName string, golden *dump.Run) *program.Program {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, known := f.programs[golden]
	if !known {
		p = programInStore(f.goldens, variant, caseName, golden)
		if f.programs == nil {
			f.programs = map[*dump.Run]*program.Program{}
		}
		f.programs[golden] = p
	}
	return p
}

func (f *Fixture) compareOptions() judge.Options {
	opt := judge.Options{Criteria: f.yaml.Criteria, Coarser: f.yaml.Coarser, Diagnosis: judge.Diagnosis{Mode: f.cfg.Diagnose, Evidence: f.evidence},
		Match: match.Options{Rules: f.yaml.Names, Ignore: f.yaml.MatchIgnores()}, Scope: f.yaml.Patterns(), Strict: f.yaml.Strict, Vacuous: f.yaml.Vacuous != ""}
	opt.Match.Generating = f.yaml.Model.Task == fixture.TextGeneration
	return opt
}

// Report returns the report of all ports and all execution paths, judged by the fixture's tolerances.
func (f *Fixture) Report() (*report.Report, error) {
	c, err := f.Comparison()
	if err != nil {
		return nil, err
	}
	for _, p := range f.Paths(c) {
		p.Judge() // its report says what went wrong
	}
	for _, g := range f.Generations(c) {
		g.Judge(0)
	}
	return f.report(c, false), nil
}

// report returns the report of a comparison, as tests decided or else in full. A fixture with a problem never passes.
func (f *Fixture) report(c *judge.Comparison, byTests bool) *report.Report {
	r := c.Report(f.name, !byTests)
	for _, p := range f.Paths(c) {
		if along := p.Report(); along != nil {
			r.AddPath(p.Name, along)
		}
	}
	for _, g := range f.Generations(c) {
		if of := g.Report(); of != nil {
			r.AddGeneration(of)
		}
	}
	f.addServing(r)
	f.addUnjudged(r, byTests)
	f.addContradiction(r)
	for _, p := range f.Problems(c) {
		r.Refuse(p.Name + ": " + p.Text)
	}
	return r
}

func (f *Fixture) close() error {
	errs := []error{f.goldens.Close(), f.recorded.Close()}
	if f.weights != nil {
		errs = append(errs, f.weights.Close())
	}
	return errors.Join(append(errs, f.release())...)
}

// alone returns the program of a case that judges without goldens. One that cannot be used is an
// error: nothing else judges.
func (f *Fixture) alone(caseName string) (*program.Program, error) {
	p, err := storedProgram(f.goldens, f.yaml.Reference(""), caseName)
	if err == nil && p == nil {
		err = fmt.Errorf("%s has no program of case %s: record it: parity golden update %s", f.goldens.Dir(), caseName, f.dir)
	}
	return p, err
}

// asked is what a case of the reference was given, where there is a golden or a program of it.
func (f *Fixture) asked(device, caseName string) (*dump.Run, error) {
	if !f.yaml.Alone {
		return f.goldens.Golden(f.yaml.Reference(device), caseName)
	}
	p, err := f.alone(caseName)
	if err != nil {
		return nil, err
	}
	return judge.Blank(caseName, p)
}

// compare judges cases: by their goldens, or without any by the program and the model's weights.
func (f *Fixture) compare(cases []judge.Case) (*judge.Comparison, error) {
	opt := f.compareOptions()
	if f.yaml.Alone {
		of := judge.AloneOptions{Options: opt}
		undo, err := of.Spill()
		if err != nil {
			return nil, err
		}
		f.remove = append(f.remove, undo)
		if cases, err = Alone(f.cfg.context(), cases, of); err != nil {
			return nil, err
		}
	}
	return judge.Compare(f.cfg.context(), cases, opt)
}
