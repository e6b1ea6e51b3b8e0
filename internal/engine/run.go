// Package engine runs a model in an engine, in a child process, and returns the dump that it wrote.
//
// The engines torch (the reference), max and mlx (candidates) are Python files that are embedded in this
// package, with a table of what each can do; so is one of the user's own, see [Job]. They are unpacked to
// a folder named by their hash and run by the user's interpreter, see [Interpreter]. Any other program can
// be an engine, see [Options]. [RunOnDevice]
// runs a job alone on its device.
//
// The protocol: the program gets the path of one JSON file, a [Job], as its last argument. It
// writes a dump folder for each case, OUT/<case>/<step>/… with OUT/<case>/run.json, as package dump
// reads it; run.json repeats the job's nonce. OUT appears only when everything is written. While it
// runs, the program may write JSON lines, each an [Event], to the file descriptor whose number is
// in PARITY_PROGRESS_FD. What it prints goes to a log file.
//
// An oracle file builds what the engines cannot build by themselves, see docs/models.md. In an injected
// run of MAX every layer gets the golden inputs, bound as weights, so that one graph is compiled for all
// goldens of the same sizes.
//
// MAX reads a weight that is not in the checkpoint as zeros, and Transformers initializes it at
// random. Both runners therefore compare the names in the checkpoint with those that the model asks
// for. They name and refuse a weight that is missing or left over, unless allow_missing has it;
// run.json lists the names ("load_audit").
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/supervise"
)

// Options say how a job is run.
type Options struct {
	Python   string      // Python interpreter; that of [Interpreter] if empty
	Program  []string    // any program in place of an engine of this package, with its first arguments
	Dir      string      // working folder of Program; that of this process if empty
	Env      []string    // complete environment, KEY=value; that of this process if nil
	LogFile  string      // gets what the engine prints; if empty OUT.log, removed after a successful run
	Progress func(Event) // called for each event; may be nil
}

// Run runs a job and opens what it wrote. A dump without the job's nonce is refused, because it
// belongs to another run.
//
// Errors: [*Error], a [*supervise.ExitError] of a deadline, or one that wraps the cause of ctx.
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
	defer os.RemoveAll(job.pictures())
	if err := job.draw(); err != nil {
		return nil, err
	}
	defer os.RemoveAll(job.Out + ".tmp") // left by a run that ended early
	cmd.Args = append(cmd.Args, file)
	h := eventReader{secrets: cmd.Secrets, to: opt.Progress}
	cmd.Progress = h.line
	if err := failure(job.Engine, supervise.Run(ctx, cmd), h.said, cmd.LogFile); err != nil {
		return nil, err
	}
	if err := maskTexts(job.Out, cmd.Secrets); err != nil {
		return nil, err
	}
	r, err := open(job)
	if err != nil {
		return nil, fmt.Errorf("%w (log: %s)", err, cmd.LogFile)
	}
	r.Warnings = h.warnings
	if opt.LogFile == "" {
		os.Remove(cmd.LogFile)
	}
	return r, nil
}

// command returns the program that runs a job, with all arguments except the last, the job's file.
func command(job Job, opt Options) (supervise.Command, error) {
	env := opt.Env
	if env == nil {
		env = os.Environ()
	}
	env = offlineEnv(env)
	cmd := supervise.Command{LogFile: opt.LogFile, Secrets: sanitize.SecretsOf(env)}
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
	if Requirements[job.Engine] == "" && job.EngineFile == "" {
		return cmd, &Error{Class: ClassUsage, Msg: fmt.Sprintf("unknown engine %q", job.Engine),
			Hint: Names() + " is known, others need a program"}
	}
	if cmd.Path = opt.Python; cmd.Path == "" {
		var err error
		if cmd.Path, err = Interpreter(getter(env), "."); err != nil {
			return cmd, err
		}
	}
	runner, err := Unpack()
	if err != nil {
		return cmd, err
	}
	cmd.Args = []string{"-X", "faulthandler", runner}
	cmd.Env, err = withCache(env)
	return cmd, err
}

// RunOnDevice runs a job as go test and the command do: on an existing device, alone on it, and
// with the module's edited copy of transformers if there is one. It passes to say, a line each,
// what a person should know: which GPU it uses, who holds the device and how long, what the engine does, and warnings.
//
// Errors: those of [Run] and of supervise.Lock.
func RunOnDevice(ctx context.Context, job Job, opt Options, say func(line string)) (*Result, error) {
	if opt.Env == nil {
		opt.Env = os.Environ()
	}
	job.Device = cmp.Or(job.Device, CPU)
	locks := []string{job.Device + ":0"}
	if job.Device == GPU {
		devices, err := PickGPUs(ctx, opt.Env)
		if err != nil {
			return nil, &Error{Class: ClassInfra, Msg: err.Error(), Err: err}
		}
		locks = nil
		for _, d := range devices {
			say("runs on " + d.String())
			locks = append(locks, GPU+":"+d.ID())
		}
		opt.Env = environOf(devices, opt.Env)
	}
	if len(opt.Program) == 0 {
		overlay, err := FindOverlay(".")
		if err != nil {
			return nil, err
		}
		if overlay != nil {
			say(overlay.String())
			opt.Env = overlay.Environ(opt.Env)
		}
	}
	unlock, waited, err := alone(ctx, job, locks, say)
	if err != nil {
		return nil, err
	}
	defer unlock()
	told := logPhases(func(line string) { say(job.Engine + ": " + line) })
	opt.Progress = told.event
	r, err := Run(ctx, job, opt)
	told.end(err == nil)
	if err != nil {
		if waited != "" && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w; before that, %s", err, waited)
		}
		return nil, err
	}
	for _, w := range r.Warnings {
		say(job.Engine + ": " + w)
	}
	return r, nil
}

// lockKey switches the locks of devices off.
const lockKey = "PARITY_LOCK"

// alone waits until no other process of this user runs an engine on the devices of these locks.
// waited says for whom and how long, if that took time. torch, MAX and MLX take all cores and the
// memory that there is; another program, which may do anything, is kept from others on a GPU only. Nothing
// is locked if PARITY_LOCK is off.
func alone(ctx context.Context, job Job, locks []string, say func(string)) (unlock func(), waited string, err error) {
	switch v := os.Getenv(lockKey); v {
	case "", "on":
	case "off":
		return func() {}, "", nil
	default:
		return nil, "", &Error{Class: ClassUsage, Msg: fmt.Sprintf("%s is %q", lockKey, v), Hint: "want on or off"}
	}
	taken := []func(){}
	unlock = func() {
		for _, u := range taken {
			u()
		}
	}
	if Requirements[job.Engine] == "" && job.Device != GPU {
		return unlock, "", nil
	}
	began, first := time.Now(), ""
	waiting := func(holder string) {
		first = cmp.Or(first, holder)
		left := ""
		if deadline, ok := ctx.Deadline(); ok {
			left = fmt.Sprintf("; %s are left until the deadline of this test", time.Until(deadline).Round(time.Second))
		}
		say(fmt.Sprintf("waits for the %s, which %s uses%s (%s=off does not wait)", job.Device, holder, left, lockKey))
	}
	for _, name := range slices.Sorted(slices.Values(locks)) { // in one order: two processes never wait for each other
		u, err := supervise.Lock(ctx, name, waiting)
		if err != nil {
			unlock()
			return nil, "", fmt.Errorf("%w: %s=off does not wait", err, lockKey)
		}
		taken = append(taken, u)
	}
	if first != "" {
		waited = fmt.Sprintf("%s were spent waiting for the %s, held by %s", time.Since(began).Round(time.Second),
			job.Device, first)
		say(waited)
	}
	return unlock, waited, nil
}
