package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/report"
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

// funcProbes are those of an engine in this process.
func (f *Fixture) funcProbes(run engine.Func) probes {
	ps := f.newProbes()
	for _, p := range ps.all() {
		p.call = run
	}
	return ps
}

// beside gives the paths the candidate's runs of one pass.
func (ps probes) beside(onePass []*dump.Run) {
	for _, p := range ps.paths {
		p.own = onePass
	}
}

func (ps probes) all() (all []*probe) {
	for _, p := range ps.paths {
		all = append(all, p.probe)
	}
	for _, g := range ps.texts {
		all = append(all, g.probe)
	}
	return all
}

// cases are what an engine is told to run.
func (ps probes) cases() (cases []engine.Case) {
	for _, p := range ps.all() {
		if p.err == nil {
			cases = append(cases, p.cases...)
		}
	}
	return cases
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

// runs are the candidate's.
func (ps probes) runs() (runs []*dump.Run) {
	for _, p := range ps.all() {
		runs = append(runs, p.runs...)
	}
	return runs
}

// take gives each probe its runs, and returns the others, which are of one pass.
func (ps probes) take(runs []*dump.Run) (onePass []*dump.Run, err error) {
	runs = slices.Clone(runs)
	for _, p := range ps.all() {
		p.runs = nil
		for _, c := range p.cases {
			i := slices.IndexFunc(runs, func(r *dump.Run) bool {
				return r.Info.Case == c.Name && (p.keep != nil || r.Info.Path == c.Path) || r.Info.Case == baseOf(c.Name) && r.Info.Path == c.Path && p.keep == nil
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

// addProbes adds what came of the probes of a comparison to its report.
func (f *Fixture) addProbes(r *report.Report, c *judge.Comparison) {
	ps := f.probesOf(c)
	for _, p := range ps.paths {
		if along := p.Report(); along != nil {
			r.AddPath(p.Name, along)
		}
	}
	for _, g := range ps.texts {
		if of := g.Report(); of != nil {
			r.AddGeneration(of)
		}
	}
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
