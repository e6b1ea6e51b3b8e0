package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// OpenProgram reads the program that the tensors of a golden were recorded with. The caller closes it.
func OpenProgram(file string, of []dump.Entry) (*program.Program, error) {
	p, err := program.Read(file)
	if err != nil {
		return nil, err
	}
	if err := CheckProgram(p, of); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// CheckProgram refuses the program of another run than that of a golden's tensors: it has one of them in
// another shape, or none.
func CheckProgram(p *program.Program, of []dump.Entry) error {
	type key struct{ step, layer, port string }
	shapes := map[key][]int{}
	for _, q := range p.Ports {
		shapes[key{q.Step, q.Layer, q.Name}] = p.Values[q.Value].Shape
	}
	have := false
	for _, e := range of {
		shape, ok := shapes[key{e.Step, e.Layer, e.Port}]
		if ok && !slices.Equal(shape, e.Tensor.Shape()) {
			return fmt.Errorf("%s: passes: step %s: %s is %s, in the golden %s: it is the program of another run",
				p.File, e.Step, e.Label(), tensor.FormatShape(shape), tensor.FormatShape(e.Tensor.Shape()))
		}
		have = have || ok
	}
	if !have {
		return fmt.Errorf("%s: passes: none of its ports is in the golden: it is the program of another run", p.File)
	}
	return nil
}

// without says that a case is judged without the program that it should have.
func without(caseName string, err error) string {
	return fmt.Sprintf("case %s: judged without the reference's program: %v; record it again: parity golden program MODEL --golden DIR", caseName, err)
}

// ProgramBeside opens the program that lies beside the dump of a golden, once. It is nil where there is none;
// where it cannot be used, the golden notes that.
func ProgramBeside(run *dump.Run) *program.Program {
	if run.Program == "" {
		return nil
	}
	p, err := OpenProgram(run.Program, run.Entries)
	if err != nil {
		run.Notes = append(run.Notes, without(cmp.Or(run.Info.Case, filepath.Base(filepath.Clean(run.Path))), err))
		return nil
	}
	return p
}

// programInStore returns the program of a golden of a store; it is nil where there is none, or it cannot be
// used, which the golden notes. Its constants are open until the store is closed.
func programInStore(s *store.Store, variant, caseName string, run *dump.Run) *program.Program {
	p, err := storedProgram(s, variant, caseName)
	if p != nil {
		err = CheckProgram(p, run.Entries)
	}
	if err != nil {
		run.Notes = append(run.Notes, without(caseName, err))
		return nil
	}
	return p
}

// storedProgram returns the program that a store has of a case of a variant; nil for none. Its constants are
// open until the store is closed.
func storedProgram(s *store.Store, variant, caseName string) (*program.Program, error) {
	kept, err := s.Program(variant, caseName)
	if kept == nil || err != nil {
		return nil, err
	}
	if kept.Constants == nil {
		return program.Parse(kept.File, kept.Data, nil)
	}
	return program.Parse(kept.File, kept.Data, func() (*tensor.File, error) { return kept.Constants, nil })
}

// Alone makes goldens for cases that have a program and none: see [judge.Alone].
func Alone(ctx context.Context, cases []judge.Case, opt judge.AloneOptions) (done []judge.Case, err error) {
	for _, k := range cases {
		if k.Golden, err = judge.Blank(k.Name, k.Program); err == nil {
			k, err = judge.Alone(ctx, k, opt)
		}
		if err != nil {
			return nil, err
		}
		done = append(done, k)
	}
	return done, nil
}

// ProgramOfCase returns the program for a run of a candidate: that of path, a file or a folder with one for
// the case (path/program.json, path/CASE/program.json). The caller closes it.
func ProgramOfCase(path string, run *dump.Run, only bool) (*program.Program, error) {
	if filepath.Ext(path) == ".json" {
		if !only {
			return nil, fmt.Errorf("%s is of one case: name a folder that has %s for each", path, filepath.Join("CASE", dump.ProgramFile))
		}
		return program.Read(path)
	}
	of := filepath.Join(path, run.Info.Case, dump.ProgramFile)
	p, err := program.Read(of)
	if err != nil && only {
		if p, other := program.Read(filepath.Join(path, dump.ProgramFile)); other == nil {
			return p, nil
		}
	}
	return p, err
}

// CaseOf asks an engine for what a run was given: its tokens in as many steps, without padding. Of a run
// along an execution path, or of a text, it is one pass over all tokens.
func CaseOf(run *dump.Run) (engine.Case, error) {
	c := engine.Case{Name: run.Info.Case, TokenIDs: run.Info.Unpadded(), Steps: 1}
	if run.Info.AlongPath() || run.Info.Generation != nil {
		return c, nil
	}
	if len(c.TokenIDs) == 0 {
		c.TokenIDs = run.Prompts()
	}
	if c.Steps = len(run.Steps()); c.Steps == 1 {
		return c, nil
	}
	if c.Forced = run.Decoded(); len(c.Forced) == 0 {
		return c, fmt.Errorf("%s: case %s has %d steps, and does not show which tokens the decode steps were given: "+
			"record the inputs of the embedding", run.Path, c.Name, c.Steps)
	}
	return c, nil
}
