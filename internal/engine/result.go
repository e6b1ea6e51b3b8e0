package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Result is a successful run.
type Result struct {
	Dir      string      // the folder of all cases, as dump.OpenCases reads it
	Runs     []*dump.Run // one per case of the job, in the same order
	About    []About     // one per run
	Warnings []string
}

// About has the keys of an engine's run.json that are not part of a dump's.
type About struct {
	Sequence   [][]int `json:"sequence"` // by sequence, the tokens of the prompt and the generated ones
	ModelClass string  `json:"model_class"`
	ModelFile  string  `json:"model_file"`
	NoProgram  string  `json:"program_error"` // why there is no program, where the job asks for one
	Known      int     `json:"known_tokens"`  // how many ids the tokenizer has: the others are never chosen; 0: not known
}

// Close closes the files of the runs. The folder stays.
func (r *Result) Close() error { return dump.CloseAll(r.Runs) }

// Generated returns the tokens of run i that follow the prompt, by sequence. They can be forced on
// another engine.
func (r *Result) Generated(i int) ([][]int, error) {
	prompt := r.Runs[i].Info.Tokens()
	var out [][]int
	for k, s := range r.About[i].Sequence {
		if k >= len(prompt) || len(s) < len(prompt[k]) {
			return nil, fmt.Errorf("engine: %s: sequence %d is shorter than its prompt", r.Runs[i].Path, k)
		}
		out = append(out, s[len(prompt[k]):])
	}
	return out, nil
}

// Returned opens what the model returned in a step of run i, named as in the dump of a blind run.
// The job must have had an observer.
func (r *Result) Returned(i int, step string) (*tensor.File, error) {
	return safetensors.Open(filepath.Join(r.Runs[i].Path, step, "returned.safetensors"))
}

// open opens the dump that a job should have written.
func open(job Job) (r *Result, err error) {
	var runs []*dump.Run
	if job.Mode == ProgramMode {
		runs, err = openPrograms(job)
	} else {
		runs, err = dump.OpenCases(job.Out, dump.Options{Unjudged: slices.ContainsFunc(job.Cases, func(c Case) bool { return c.Passes != nil })})
	}
	if err != nil {
		return nil, fmt.Errorf("engine %s succeeded, but left no dump that can be judged: %w", job.Engine, err)
	}
	r = &Result{Dir: job.Out}
	for _, c := range job.Cases {
		run, err := find(runs, job, c)
		if err != nil {
			return nil, errors.Join(err, dump.CloseAll(runs))
		}
		about, err := readAbout(run)
		if err != nil {
			return nil, errors.Join(err, dump.CloseAll(runs))
		}
		r.Runs, r.About = append(r.Runs, run), append(r.About, about)
	}
	return r, nil
}

// openPrograms opens what a job of ProgramMode should have written: runs with a program, and without
// tensors.
func openPrograms(job Job) (runs []*dump.Run, err error) {
	for _, c := range job.Cases {
		dir := filepath.Join(job.Out, c.Name)
		info, err := dump.ReadInfo(dir)
		if err != nil {
			return nil, err
		}
		run := dump.New(dir, info, dump.OrderRunFile, nil)
		run.Program = filepath.Join(dir, dump.ProgramFile)
		if _, err := os.Stat(run.Program); err != nil {
			return nil, fmt.Errorf("case %s has no program: %w", c.Name, err)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// find returns the run of a case. It refuses one that belongs to another job or has another number
// of steps.
func find(runs []*dump.Run, job Job, c Case) (*dump.Run, error) {
	i := slices.IndexFunc(runs, func(run *dump.Run) bool {
		return run.Info.Case == c.Name || run.Info.Case == "" && len(job.Cases) == 1
	})
	if i < 0 {
		return nil, fmt.Errorf("engine %s wrote no case %q, only %s", job.Engine, c.Name, dump.CaseNames(runs))
	}
	run := runs[i]
	run.Info.Case = c.Name
	if run.Info.Nonce != job.Nonce {
		return nil, fmt.Errorf("engine %s: %s has the nonce %q instead of %q: it is the dump of another run",
			job.Engine, filepath.Join(run.Path, dump.RunFile), run.Info.Nonce, job.Nonce)
	}
	if job.Mode == ProgramMode {
		return run, nil
	}
	want := max(c.Steps, 1, len(c.Passes))
	if steps := run.Steps(); len(steps) != want {
		return nil, fmt.Errorf("engine %s: case %s has the steps %s, not the %d that were asked for",
			job.Engine, c.Name, strings.Join(steps, ", "), want)
	}
	switch {
	case c.Passes != nil:
		if err := took(run, c); err != nil {
			return nil, fmt.Errorf("engine %s: case %s: %w", job.Engine, c.Name, err)
		}
	case run.Info.AlongPath():
		return nil, fmt.Errorf("engine %s: case %s was run along %s, and the job asks for one pass", job.Engine, c.Name, run.Info.Path)
	}
	return run, nil
}

// took returns an error if a run did not feed the passes that a case asks for. What the prefix cache
// held need not be fed.
func took(run *dump.Run, c Case) error {
	info := run.Info
	wrong := func(what string, has, asked any) error {
		return fmt.Errorf("path not taken: run.json has %s %v, the job asks for %v: repeat them as they were run", what, has, asked)
	}
	switch {
	case info.Path != c.Path:
		return wrong("the path", info.Path, c.Path)
	case !slices.EqualFunc(info.Tokens(), c.TokenIDs, slices.Equal):
		return wrong("token_ids", info.Tokens(), c.TokenIDs)
	case len(info.Passes) != len(c.Passes):
		return wrong("so many passes:", len(info.Passes), len(c.Passes))
	}
	for k, asked := range c.Passes {
		same := func(a, b dump.PassItem) bool {
			if a.CachedTokens > 0 {
				a.From, a.CachedTokens = b.From, 0
			}
			return a.Sequence == b.Sequence && a.From == b.From && a.To == b.To && slices.Equal(a.Hidden, b.Hidden)
		}
		if fed := info.Passes[k]; !slices.EqualFunc(fed, asked, same) {
			return wrong(fmt.Sprintf("in forward pass %d", k), fed, asked)
		}
	}
	return nil
}

func readAbout(run *dump.Run) (a About, err error) {
	name := filepath.Join(run.Path, dump.RunFile)
	data, err := mapfile.Read(name, mapfile.MaxListing)
	if err != nil {
		return a, fmt.Errorf("engine: %w", err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("engine: %s: %w", name, mapfile.JSONError(data, err))
	}
	return a, nil
}

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
