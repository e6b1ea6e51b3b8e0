package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/store"
)

// alone returns the program of a case that judges without goldens. One that cannot be used is an
// error: nothing else judges.
func (f *Fixture) alone(caseName string) (*program.Program, error) {
	p, err := reference.Stored(f.goldens, f.yaml.Reference(""), caseName)
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
	return reference.Blank(caseName, p)
}

// compare judges cases: by their goldens, or without any by the program and the model's weights.
func (f *Fixture) compare(cases []judge.Case) (*judge.Comparison, error) {
	opt := f.compareOptions()
	if f.yaml.Alone {
		of := judge.AloneOptions{Options: opt}
		undo, err := reference.Keep(&of)
		if err != nil {
			return nil, err
		}
		f.remove = append(f.remove, undo)
		if cases, err = reference.Alone(f.cfg.context(), cases, of); err != nil {
			return nil, err
		}
	}
	return judge.Compare(f.cfg.context(), cases, opt)
}

// recordPrograms renews the programs of a fixture that judge alone. No weights are needed.
func (u *update) recordPrograms() error {
	switch {
	case u.cfg.Bless != "":
		return errors.New("there are no goldens to bless: reference: program judges alone")
	case u.goldenDump != "":
		return errors.New("reference: program: a program is recorded, and no dump imported: take PARITY_GOLDEN_DUMP out")
	}
	variant := u.yaml.Reference("")
	job, err := u.reference(variant)
	if err != nil {
		return err
	}
	job.Mode, job.Capture = engine.ProgramMode, engine.Capture{}
	fixture.RecordProgram(&job, u.yaml.Programs)
	have, err := u.have(variant, true)
	if err != nil {
		return err
	}
	m := &made{variant: variant, runs: map[string]*dump.Run{}}
	if job.Cases = slices.DeleteFunc(job.Cases, func(c engine.Case) bool {
		return u.mode == setting.UpdateNew && slices.Contains(have, c.Name)
	}); len(job.Cases) == 0 {
		return u.replace([]*made{m})
	}
	r, err := u.run(job)
	if err != nil {
		return err
	}
	for i, run := range r.Runs {
		p, err := program.Read(run.Program)
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			return fmt.Errorf("case %s: %w", job.Cases[i].Name, err)
		}
		m.runs[job.Cases[i].Name] = run
	}
	return u.replace([]*made{m})
}

// have returns what there is of a variant: runs with tensors, or with a program alone.
func (u *update) have(variant string, alone bool) (cases []string, err error) {
	s, err := store.Open(u.goldenDir())
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, k := range s.Runs() {
		if k.Variant == variant && (alone && len(k.Program) > 0 || !alone && len(k.Info.Order) > 0) {
			cases = append(cases, k.Info.Case)
		}
	}
	return cases, s.Close()
}
