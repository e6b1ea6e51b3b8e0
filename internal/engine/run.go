package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
