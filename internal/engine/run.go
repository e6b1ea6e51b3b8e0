package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/jsonline"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Options say how a job is run.
type Options struct {
	Python   string        // interpreter; that of Interpreter if empty
	Program  []string      // runs the job in place of an engine of this package: any program, and its arguments before the job file
	Dir      string        // in which Program runs; the working folder of this process if empty
	Env      []string      // complete environment, KEY=value; that of this process if nil
	LogFile  string        // what the engine prints; OUT.log if empty, removed after a run that went well
	Progress func(Event)   // told of each event; nil is silent
	Grace    time.Duration // from SIGTERM to SIGKILL; 0 for supervise's own
}

// Event is one line of progress.
type Event struct {
	Phase   string      `json:"phase,omitempty"`   // import, load, compile, sanity, forward, write: it begins, or it ended if Seconds is there
	Seconds *float64    `json:"seconds,omitempty"` // how long the phase took, over all cases so far
	Model   *EventModel `json:"model,omitempty"`   // what was built; it comes once or more before the first forward pass
	Warning string      `json:"warning,omitempty"`
	Error   *EventError `json:"error,omitempty"`
}

// EventModel is the class that computes, and the source file that it is in.
type EventModel struct {
	Class string `json:"class"`
	File  string `json:"file"`
}

// EventError is how an engine says what went wrong before it exits.
type EventError struct {
	Class   string `json:"class"` // infra, model, usage or bug
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Where   string `json:"where,omitempty"`
}

// Result is a run that went well.
type Result struct {
	Dir      string      // the folder of all cases, as dump.OpenCases reads it
	Runs     []*dump.Run // one per case of the job, in its order
	About    []About     // of each run
	Warnings []string
}

// About is what run.json of an engine says beside the contract of a dump.
type About struct {
	Sequence   [][]int `json:"sequence"` // tokens of each sequence, prompt and generated ones; what another engine is forced to take
	ModelClass string  `json:"model_class"`
	ModelFile  string  `json:"model_file"`
}

// Close closes the runs' files. The folder stays.
func (r *Result) Close() error { return dump.CloseAll(r.Runs) }

// Generated is what each sequence got beyond a prompt of the ids of the run: the tokens to force upon another engine.
func (r *Result) Generated(i int) ([][]int, error) {
	var prompt [][]int
	if err := json.Unmarshal(r.Runs[i].Info.TokenIDs, &prompt); err != nil {
		return nil, fmt.Errorf("engine: %s: token_ids: %w", r.Runs[i].Path, err)
	}
	var out [][]int
	for k, s := range r.About[i].Sequence {
		if k >= len(prompt) || len(s) < len(prompt[k]) {
			return nil, fmt.Errorf("engine: %s: sequence %d is shorter than its prompt", r.Runs[i].Path, k)
		}
		out = append(out, s[len(prompt[k]):])
	}
	return out, nil
}

// Returned opens what the model returned in a step of run i, as the dump of a blind run names it. It is there if the job had an observer.
func (r *Result) Returned(i int, step string) (*tensor.File, error) {
	return safetensors.Open(filepath.Join(r.Runs[i].Path, step, "returned.safetensors"))
}

// Run does a job and opens what it wrote. A dump that does not carry the job's nonce is refused: it is of another run.
//
// Errors: *InfraError, *ModelError, *UsageError, *BugError, *CrashError, *supervise.TimeoutError, or one that wraps the cause of ctx.
func Run(ctx context.Context, job Job, opt Options) (*Result, error) {
	if err := job.prepare(); err != nil {
		return nil, err
	}
	cmd, err := command(job, opt)
	if err != nil {
		return nil, err
	}
	file, err := job.write()
	if err != nil {
		return nil, err
	}
	defer os.Remove(file)
	defer os.RemoveAll(job.Out + ".tmp") // of a run that ended early
	cmd.Args = append(cmd.Args, file)
	var warnings []string
	var said *EventError
	cmd.Progress = func(line []byte) {
		var e Event
		if json.Unmarshal(line, &e) != nil {
			return // not ours: a program may print other things
		}
		e.redact(cmd.Secrets)
		if e.Warning != "" {
			warnings = append(warnings, e.Warning)
		}
		if e.Error != nil {
			said = e.Error
		}
		if opt.Progress != nil {
			opt.Progress(e)
		}
	}
	if err := failure(job.Engine, supervise.Run(ctx, cmd), said, cmd.LogFile); err != nil {
		return nil, err
	}
	if err := maskTexts(job.Out, cmd.Secrets); err != nil {
		return nil, err
	}
	r, err := open(job)
	if err != nil {
		return nil, fmt.Errorf("%w (log: %s)", err, cmd.LogFile)
	}
	r.Warnings = warnings
	if opt.LogFile == "" {
		os.Remove(cmd.LogFile)
	}
	return r, nil
}

// command gives the program that runs a job, but for the job's file.
func command(job Job, opt Options) (supervise.Command, error) {
	env := opt.Env
	if env == nil {
		env = os.Environ()
	}
	env = quiet(env, job.Online)
	getenv := func(key string) string { return lookup(env, key) }
	cmd := supervise.Command{LogFile: opt.LogFile, Grace: opt.Grace, Secrets: secrets(env)}
	if cmd.LogFile == "" {
		cmd.LogFile = job.Out + ".log"
	}
	if err := os.MkdirAll(filepath.Dir(cmd.LogFile), 0o755); err != nil {
		return cmd, fmt.Errorf("engine: %w", err)
	}
	if len(opt.Program) > 0 {
		cmd.Path, cmd.Args, cmd.Dir, cmd.Env = opt.Program[0], slices.Clone(opt.Program[1:]), opt.Dir, env
		return cmd, nil
	}
	if job.Engine != Torch && job.Engine != MAX {
		return cmd, &UsageError{Msg: fmt.Sprintf("unknown engine %q", job.Engine), Hint: "torch and max are known, others need a program"}
	}
	if cmd.Path = opt.Python; cmd.Path == "" {
		var err error
		if cmd.Path, err = Interpreter(getenv, "."); err != nil {
			return cmd, err
		}
	}
	runner, err := Unpack()
	if err != nil {
		return cmd, err
	}
	cache, err := CompileCache(getenv)
	if err != nil {
		return cmd, err
	}
	cmd.Args = []string{"-X", "faulthandler", runner}
	cmd.Env = append(slices.Clone(env), "MODULAR_MAX_CACHE_DIR="+cache, "PYTHONUNBUFFERED=1", "PYTHONIOENCODING=utf-8")
	return cmd, nil
}

// failure makes an error of how the process ended and what it said before.
func failure(engine string, err error, said *EventError, log string) error {
	var exit *supervise.ExitError
	var start *supervise.StartError
	switch {
	case errors.As(err, &start):
		return &InfraError{Msg: "the engine could not be started: " + err.Error(), Err: err}
	case err != nil && !errors.As(err, &exit):
		return fmt.Errorf("engine %s: %w", engine, err)
	case said != nil && (exit == nil || exit.Signal == ""):
		switch said.Class {
		case "infra":
			return &InfraError{Msg: said.Message, Hint: said.Hint, LogFile: log}
		case "usage":
			return &UsageError{Msg: said.Message, Hint: said.Hint}
		case "bug":
			return &BugError{Msg: said.Message, Hint: said.Hint, Where: said.Where, LogFile: log}
		default:
			return &ModelError{Msg: said.Message, Hint: said.Hint, Where: said.Where, LogFile: log}
		}
	case exit != nil:
		return &CrashError{Engine: engine, Err: exit}
	}
	return nil
}

// open opens the dump that a job should have written.
func open(job Job) (*Result, error) {
	runs, err := dump.OpenCases(job.Out, dump.Options{})
	if err != nil {
		return nil, fmt.Errorf("engine %s ended well, but left no dump that can be judged: %w", job.Engine, err)
	}
	r := &Result{Dir: job.Out}
	for _, c := range job.Cases {
		i := slices.IndexFunc(runs, func(run *dump.Run) bool { return run.Info.Case == c.Name || run.Info.Case == "" && len(job.Cases) == 1 })
		if i < 0 {
			err = fmt.Errorf("engine %s wrote no case %q, only %s", job.Engine, c.Name, dump.CaseNames(runs))
			break
		}
		run := runs[i]
		run.Info.Case = c.Name
		if err = check(run, job, c); err != nil {
			break
		}
		about, e := readAbout(run)
		if err = e; err != nil {
			break
		}
		r.Runs, r.About = append(r.Runs, run), append(r.About, about)
	}
	if err != nil {
		return nil, errors.Join(err, dump.CloseAll(runs))
	}
	return r, nil
}

// check refuses a dump of another run, and one of too few steps.
func check(run *dump.Run, job Job, c Case) error {
	if run.Info.Nonce != job.Nonce {
		return fmt.Errorf("engine %s: %s carries the nonce %q in place of %q: it is the dump of another run",
			job.Engine, filepath.Join(run.Path, dump.RunFile), run.Info.Nonce, job.Nonce)
	}
	if steps := run.Steps(); len(steps) != max(c.Steps, 1) {
		return fmt.Errorf("engine %s: case %s has the steps %s, and not the %d that were asked for", job.Engine, c.Name, strings.Join(steps, ", "), max(c.Steps, 1))
	}
	return nil
}

func readAbout(run *dump.Run) (a About, err error) {
	name := filepath.Join(run.Path, dump.RunFile)
	data, err := os.ReadFile(name)
	if err != nil {
		return a, fmt.Errorf("engine: %w", err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("engine: %s: %w", name, jsonline.Error(data, err))
	}
	return a, nil
}
