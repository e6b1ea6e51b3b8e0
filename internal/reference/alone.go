package reference

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/supervise"
)

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
