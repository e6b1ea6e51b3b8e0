// Package golden reads the goldens of a fixture: the tensors that a reference computed, which parity
// compares a port with. They are made by go test -update, never from the candidate unless someone blesses
// it with a reason.
package golden

import (
	"context"
	"fmt"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
)

// Classes of errors, for [errors.Is].
var (
	// ErrNotFound: there is no golden of that name, or no store.
	ErrNotFound = store.ErrNotFound
	// ErrCorrupt: the index cannot be read, or a file is not what it says.
	ErrCorrupt = store.ErrCorrupt
)

// Store is an open folder of goldens, as it was when it was opened. It is safe for concurrent use.
type Store struct{ s *store.Store }

// Open opens the goldens in dir, such as fixtures/minilm/golden. The errors are [ErrNotFound] and
// [ErrCorrupt].
func Open(dir string) (*Store, error) {
	s, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// Close unmaps all files: tensors must not be used after it.
func (s *Store) Close() error { return s.s.Close() }

// Entry is one golden tensor.
type Entry struct {
	Layer, Port string
	Tensor      *tensor.Tensor
}

// Label returns "<layer>-<port>".
func (e Entry) Label() string { return label.Join(e.Layer, e.Port) }

// Tensors returns the goldens of a forward pass in execution order, once their hashes are checked. The
// variant is the type in which the reference ran, "float32"; step "0" is the prefill. The errors are
// [ErrNotFound] and [ErrCorrupt].
func (s *Store) Tensors(variant, caseName, step string) (out []Entry, err error) {
	run, err := s.s.Golden(variant, caseName)
	if err != nil {
		return nil, err
	}
	for _, e := range run.Entries {
		if e.Step == step {
			out = append(out, Entry{e.Layer, e.Port, e.Tensor})
		}
	}
	if len(out) == 0 {
		err = fmt.Errorf("golden: %s of case %s: step %s: %w", variant, caseName, step, ErrNotFound)
	}
	return out, err
}

// Verify reads everything and returns what is not what it was when the goldens were made. Files that belong to no
// golden, as an update leaves that is killed, are none of it.
func (s *Store) Verify(ctx context.Context) (problems []error, err error) {
	found, err := s.s.Verify(ctx)
	for _, p := range found {
		if !p.Extra {
			problems = append(problems, p.Err)
		}
	}
	return problems, err
}

// Diff says which goldens are gone and new, and of each other one that two stores do not have alike how
// far it moved, the furthest first.
func Diff(old, now *Store) []string { return store.Diff(old.s, now.s, nil).Lines(0) }
