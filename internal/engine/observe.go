package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
)

// Observe runs a job with hooks and again without, and says in a note whether the hooks change what
// the model returns. The result is that of the run with hooks.
func Observe(job Job, run func(Job) (*Result, error)) (r *Result, note string, err error) {
	if job.Engine == Command {
		r, err = run(job)
		return r, "observer check: not made, since a program places its own hooks", err
	}
	job.Observer = Seen
	if r, err = run(job); err != nil {
		return nil, "", err
	}
	job.Observer = Blind
	// Hooks that change what a model returns do so in one pass, too.
	job.Cases = slices.DeleteFunc(slices.Clone(job.Cases), func(c Case) bool { return c.Passes != nil })
	blind, err := run(job)
	if err == nil {
		note, err = sameReturned(job.Engine, r, blind)
		err = errors.Join(err, blind.Close())
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("observer check: %w", err), r.Close())
	}
	return r, note, nil
}

// sameReturned compares what the model returned with hooks and without, bit for bit.
func sameReturned(name string, seen, blind *Result) (string, error) {
	n, other, first := 0, 0, ""
	for i, run := range blind.Runs {
		for _, e := range run.Entries {
			same, err := seen.returned(i, e)
			if err != nil {
				return "", err
			}
			if n++; !same {
				if other++; other == 1 {
					first = fmt.Sprintf("case %s, step %s", run.Info.Case, e.Step)
				}
			}
		}
	}
	if other == 0 {
		return fmt.Sprintf("observer check: %s returns the same without hooks, all %d outputs bit for bit", name, n), nil
	}
	return fmt.Sprintf("observer check: without hooks %s returns something else: %d of %d outputs differ, the first in %s", name, other, n, first), nil
}

// returned reports whether a run with an observer returned an output bit for bit.
func (r *Result) returned(i int, e dump.Entry) (bool, error) {
	file, err := r.Returned(i, e.Step)
	if err != nil {
		return false, err
	}
	defer file.Close()
	t, ok := file.Lookup(e.Label())
	if !ok {
		return false, fmt.Errorf("%s has no %s, which the model returned without hooks", file.Path, e.Label())
	}
	with, _ := t.Bytes()
	without, _ := e.Tensor.Bytes()
	return bytes.Equal(with, without), nil
}
