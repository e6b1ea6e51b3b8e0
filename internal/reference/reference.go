// Package reference finds the program that the reference ran (package program) beside a golden, and
// refuses one that is damaged or of another run. Without a golden it makes one of the program and the
// candidate's own tensors.
package reference

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/internal/supervise"
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

// Alone makes goldens for cases that have a program and none: see [judge.Alone].
func Alone(ctx context.Context, cases []judge.Case, opt judge.AloneOptions) (done []judge.Case, err error) {
	for _, k := range cases {
		if k.Golden, err = Blank(k.Name, k.Program); err == nil {
			k, err = judge.Alone(ctx, k, opt)
		}
		if err != nil {
			return nil, err
		}
		done = append(done, k)
	}
	return done, nil
}

// Keep lets what is replayed and does not fit into memory lie in a temporary folder until undo.
func Keep(opt *judge.AloneOptions) (undo func() error, err error) {
	dir, remove, err := supervise.TempDir("", "goparity-replayed-")
	if err != nil {
		return nil, err
	}
	k := &keeper{name: filepath.Join(dir, "tensors")}
	opt.Keep = k.keep
	return func() error { return errors.Join(k.close(), remove()) }, nil
}

// OfCase returns the program for a run of a candidate: that of path, a file or a folder with one for
// the case (path/program.json, path/CASE/program.json). The caller closes it.
func OfCase(path string, run *dump.Run, only bool) (*program.Program, error) {
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

// Case asks an engine for what a run was given: its tokens in as many steps, without padding. Of a run
// along an execution path, or of a text, it is one pass over all tokens.
func Case(run *dump.Run) (engine.Case, error) {
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

// keeper holds the replayed tensors of a run: in memory, and what is more than that in a file.
type keeper struct {
	name  string // of the file that it writes, if it has to
	file  *os.File
	bytes int64 // in memory, or in the file
}

// keep returns a tensor whose elements are not held in memory if there are many.
func (k *keeper) keep(t *tensor.Tensor) (*tensor.Tensor, error) {
	if k.file == nil {
		if k.bytes += int64(t.Len() * t.DType().Size()); k.bytes <= inMemory {
			return t, nil
		}
		file, err := os.OpenFile(k.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("what is replayed: %w", err)
		}
		k.file, k.bytes = file, 0
	}
	at := k.bytes
	n, err := t.WriteTo(k.file)
	if err != nil {
		return nil, fmt.Errorf("what is replayed: %w", err)
	}
	k.bytes += n
	return t.Deferred(func() []byte {
		data := make([]byte, n)
		if _, err := k.file.ReadAt(data, at); err != nil {
			panic(&mapfile.Fault{File: k.name, Err: err})
		}
		return data
	}), nil
}

// close closes the file. The tensors must not be used after it.
func (k *keeper) close() error {
	if k.file == nil {
		return nil
	}
	return k.file.Close()
}

// inMemory is how many bytes of replayed tensors are not written to a file. By reason.
const inMemory = 256 << 20
