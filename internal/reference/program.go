package reference

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// Open reads the program that the tensors of a golden were recorded with. The caller closes it.
func Open(file string, of []dump.Entry) (*program.Program, error) {
	p, err := program.Read(file)
	if err != nil {
		return nil, err
	}
	if err := Check(p, of); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Check refuses the program of another run than that of a golden's tensors: it has one of them in
// another shape, or none.
func Check(p *program.Program, of []dump.Entry) error {
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

// Without says that a case is judged without the program that it should have.
func Without(caseName string, err error) string {
	return fmt.Sprintf("case %s: judged without the reference's program: %v; record it again: parity golden program MODEL --golden DIR", caseName, err)
}

// Beside opens the program that lies beside the dump of a golden, once. It is nil where there is none;
// where it cannot be used, the golden notes that.
func Beside(run *dump.Run) *program.Program {
	if run.Program == "" {
		return nil
	}
	p, err := Open(run.Program, run.Entries)
	if err != nil {
		run.Notes = append(run.Notes, Without(cmp.Or(run.Info.Case, filepath.Base(filepath.Clean(run.Path))), err))
		return nil
	}
	return p
}

// InStore returns the program of a golden of a store; it is nil where there is none, or it cannot be
// used, which the golden notes. Its constants are open until the store is closed.
func InStore(s *store.Store, variant, caseName string, run *dump.Run) *program.Program {
	p, err := Stored(s, variant, caseName)
	if p != nil {
		err = Check(p, run.Entries)
	}
	if err != nil {
		run.Notes = append(run.Notes, Without(caseName, err))
		return nil
	}
	return p
}

// Stored returns the program that a store has of a case of a variant; nil for none. Its constants are
// open until the store is closed.
func Stored(s *store.Store, variant, caseName string) (*program.Program, error) {
	kept, err := s.Program(variant, caseName)
	if kept == nil || err != nil {
		return nil, err
	}
	if kept.Constants == nil {
		return program.Parse(kept.File, kept.Data, nil)
	}
	return program.Parse(kept.File, kept.Data, func() (*tensor.File, error) { return kept.Constants, nil })
}
