package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/gpu"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
)

// sanityTokens is how many tokens the reference generates by itself before its dump becomes golden.
const sanityTokens = 32

// live runs the candidate, all cases in one process, and opens its dump.
func (f *Fixture) live() ([]*dump.Run, error) {
	job, err := f.candidate()
	if err != nil {
		return nil, err
	}
	r, err := f.observed(job)
	if err != nil {
		return nil, err
	}
	return r.Runs, nil
}

// candidate says what the fixture asks of the candidate's engine.
func (f *Fixture) candidate() (engine.Job, error) {
	device := string(f.cfg.Run)
	encoding := f.yaml.Model.Encodings[device].Candidate
	name := engine.Command
	if f.yaml.Model.Command == nil {
		name = engine.MAX
		if err := gpu.Supports(device, encoding); err != nil {
			return engine.Job{}, fmt.Errorf("%s: %w: write encodings: {%s: {candidate: …}}", f.yaml.File, err, device)
		}
	}
	job := f.job(name, device)
	job.Encoding, job.Config = encoding, f.yaml.Model.Engine
	if f.cfg.Bless != "" {
		return job, nil // what it computes becomes golden, with the tokens that it chooses by itself
	}
	for i, y := range f.yaml.Cases {
		g, err := f.golden(f.yaml.References[0], y.Name)
		if err != nil {
			return engine.Job{}, err
		}
		job.Cases[i].Forced = decoded(g)
	}
	return job, nil
}

// job says what the fixture asks of an engine.
func (f *Fixture) job(name, device string) engine.Job {
	m := f.yaml.Model
	job := engine.Job{Engine: name, Device: device, Model: m.Path, Local: m.Local(), Revision: m.Revision, Task: m.Task,
		TrustRemoteCode: m.TrustRemoteCode, Tokenizer: m.Tokenizer, MaxLayers: m.MaxLayers, Overrides: m.ConfigOverrides}
	if m.Local() {
		job.Model = filepath.Join(f.dir, m.Path)
	}
	if m.Oracle != "" {
		job.Oracle = filepath.Join(f.dir, m.Oracle)
	}
	texts := func(globs []fixture.Glob) (out []string) {
		for _, g := range globs {
			out = append(out, g.String())
		}
		return out
	}
	job.AllowMissing = texts(m.AllowMissing)
	job.Capture = engine.Capture{Layers: texts(f.yaml.Capture.Layers), Ports: texts(f.yaml.Capture.Ports)}
	for _, y := range f.yaml.Cases {
		c := engine.Case{Name: y.Name, Prompts: y.Prompts, TokenIDs: y.TokenIDs, Steps: y.Steps}
		for _, msg := range y.Messages {
			c.Messages = append(c.Messages, engine.Message{Role: msg.Role, Content: msg.Content})
		}
		if y.ChatTemplate != "" {
			c.ChatTemplate = filepath.Join(f.dir, y.ChatTemplate)
		}
		for _, image := range y.Images {
			c.Images = append(c.Images, filepath.Join(f.dir, image))
		}
		job.Cases = append(job.Cases, c)
	}
	return job
}

// run runs a job under the test's own deadline, alone on its device. The dump lives until the session ends.
func (f *Fixture) run(job engine.Job) (*engine.Result, error) {
	ctx := f.cfg.Context
	if ctx == nil {
		var stop func()
		ctx, stop = supervise.Signals(context.Background())
		signalled := ctx
		defer func() {
			if signalled.Err() != nil { // stop ends the process
				f.removeDirs()
			}
			stop()
		}()
	}
	ctx, cancel := supervise.WithDeadline(ctx, time.Now(), f.cfg.Timeout, f.cfg.Started, supervise.DefaultGrace)
	defer cancel()
	dir, err := f.tempDir()
	if err != nil {
		return nil, err
	}
	job.Out = filepath.Join(dir, "dump")
	opt, err := f.engineOptions(job.Engine)
	if err != nil {
		return nil, err
	}
	say := func(line string) { fmt.Fprintf(os.Stderr, "parity: %s: %s\n", f.name, line) }
	var phases *engine.Phases
	if f.cfg.Console != nil {
		phases, say = f.cfg.Console(job.Engine)
	} else {
		phases = engine.LogPhases(func(line string) { say(job.Engine + ": " + line) })
	}
	opt.Progress = phases.Event
	r, err := engine.RunOnDevice(ctx, job, opt, say)
	phases.Stop(err == nil)
	return r, err
}

// tempDir makes a folder that is removed when the session ends.
func (f *Fixture) tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "goparity-"+f.name+"-")
	if err == nil {
		f.dirs = append(f.dirs, dir)
	}
	return dir, err
}

func (f *Fixture) removeDirs() error {
	var errs []error
	for _, dir := range f.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// decoded gives the tokens that the reference was given in its decode steps, by sequence: the candidate is forced to take the same ones.
func decoded(golden *dump.Run) [][]int {
	var out [][]int
	steps := golden.Steps()
	for _, step := range steps[min(1, len(steps)):] {
		ids := tokens(golden, step)
		if ids == nil {
			return nil
		}
		for i := range ids.Len() {
			if len(out) <= i {
				out = append(out, nil)
			}
			out[i] = append(out[i], int(ids.At(i)))
		}
	}
	return out
}

// tokens finds the ids that a decode step was given: one of each sequence.
func tokens(golden *dump.Run, step string) *tensor.Tensor {
	for _, e := range golden.Entries {
		named := strings.Contains(e.Port, "input_ids") || e.Port == "input_0" && strings.Contains(e.Layer, "embed")
		if e.Step == step && named && !e.Tensor.DType().IsFloat() && e.Tensor.RowLen() == 1 {
			return e.Tensor
		}
	}
	return nil
}
