package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/supervise"
)

// sanityTokens is how many tokens the reference generates by itself before its dump becomes golden.
const sanityTokens = 32

// runner runs engines for a fixture. Its folders live until the session ends.
type runner struct {
	dir, name string // of the fixture
	out       string // folder of its reports; "" for none
	cfg       *Config
	yaml      *fixture.Fixture // once readYAML was called
	remove    []func() error   // its folders
	opened    []*dump.Run
	notes     []string // of the runs, for the report
}

func (r *runner) readYAML() (err error) {
	if r.yaml == nil {
		r.yaml, err = fixture.Load(r.dir)
	}
	return err
}

// candidate says what the fixture asks of the candidate's engine, which is forced to take the
// tokens of the goldens.
func (r *runner) candidate(asked func(device, caseName string) (*dump.Run, error)) (engine.Job, error) {
	device := string(r.cfg.Run)
	encoding := r.yaml.Model.Encodings[device].Candidate
	name := cmp.Or(r.yaml.Model.Engine.Name, engine.MAX)
	if r.yaml.Model.Engine.Command != nil {
		name = engine.Command
	}
	if name == engine.MAX {
		if err := engine.Supports(device, encoding); err != nil {
			return engine.Job{}, fmt.Errorf("%s: %w: write encodings: {%s: {candidate: …}}", r.yaml.File, err, device)
		}
	}
	job := r.yaml.Job(name, device)
	job.Encoding, job.Config = encoding, r.yaml.Model.Engine.Settings
	if err := quantisedFile(&job, r.yaml); err != nil {
		return engine.Job{}, err
	}
	if r.cfg.Bless != "" {
		return job, nil // what it computes becomes golden, with the tokens that it chooses by itself
	}
	for i, y := range r.yaml.Cases {
		run, err := asked(device, y.Name)
		if err != nil {
			return engine.Job{}, err
		}
		job.Cases[i].Forced = run.Decoded()
		if len(y.Prompts)+len(y.Messages) > 0 {
			job.Cases[i].TokenIDs = run.Info.Asked() // what it makes of the text itself is judged apart
		}
	}
	return job, nil
}

// say shows a line that a person should read.
func (r *runner) say(line string) {
	fmt.Fprintf(os.Stderr, "parity: %s: %s\n", r.name, sanitize.Line(line))
}

// waits says which process writes a folder that this one is about to write.
func (r *runner) waits(dir string) func(holder string) {
	return func(holder string) {
		if holder == "" {
			r.say("the file system of " + filepath.ToSlash(dir) + " has no locks: let no other process write it meanwhile")
			return
		}
		r.say("waits for " + holder + ", which writes " + filepath.ToSlash(dir))
	}
}

// supervised returns the context of an engine or a server. It ends by a signal, where these end the
// process, and before the alarm of go test.
func (r *runner) supervised() (ctx context.Context, stop func()) {
	signalled, again := r.cfg.Context, func() {}
	if signalled == nil {
		signalled, again = supervise.Signals(context.Background())
	}
	ctx, cancel := supervise.WithDeadline(signalled, r.cfg.Timeout, r.cfg.Started)
	return ctx, func() {
		cancel()
		if r.cfg.Context == nil && signalled.Err() != nil {
			r.close() // the signal ends the process
		}
		again()
	}
}

// run runs a job under the test's own deadline, alone on its device. The dump lives until the
// session ends.
func (r *runner) run(job engine.Job) (*engine.Result, error) {
	ctx, stop := r.supervised()
	defer stop()
	dir, err := r.tempDir()
	if err != nil {
		return nil, err
	}
	job.Out = filepath.Join(dir, "dump")
	opt, err := r.options(job.Engine)
	if err != nil {
		return nil, err
	}
	result, err := engine.RunOnDevice(ctx, job, opt, r.say)
	if err == nil {
		r.opened = append(r.opened, result.Runs...)
	}
	return result, err
}

// options returns where an engine logs, a file that outlives the run for people and CI to read, and
// what runs the engine command.
func (r *runner) options(name string) (opt engine.Options, err error) {
	if r.out != "" {
		opt.LogFile = filepath.Join(r.out, name+".log")
	} else if opt.LogFile, err = engine.LogFile(r.name + "-" + name); err != nil {
		return opt, err
	}
	if name == engine.Command {
		opt.Dir, opt.Program, err = r.yaml.Program()
	}
	return opt, err
}

// observed runs a job and, where an observer check is asked for, notes whether the hooks change
// what the model returns.
func (r *runner) observed(job engine.Job) (*engine.Result, error) {
	if !r.cfg.Observer {
		return r.run(job)
	}
	result, note, err := engine.Observe(job, r.run)
	if err == nil {
		r.notes = append(r.notes, note)
	}
	return result, err
}

// tempDir makes a folder that is removed when the session ends, or else by the next one.
func (r *runner) tempDir() (string, error) {
	dir, remove, err := supervise.TempDir("", "goparity-"+r.name+"-")
	if err == nil {
		r.remove = append(r.remove, remove)
	}
	return dir, err
}

func (r *runner) close() error {
	errs := []error{dump.CloseAll(r.opened)}
	for _, remove := range r.remove {
		errs = append(errs, remove())
	}
	return errors.Join(errs...)
}
