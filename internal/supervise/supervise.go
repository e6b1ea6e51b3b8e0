package supervise

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// Command is a program to run under supervision.
type Command struct {
	Path     string            // a file, or a name to look up in PATH
	Args     []string          // without the program's name
	Dir      string            // working folder; if empty, that of this process
	Env      []string          // the complete environment, KEY=value; only the progress pipe is added
	LogFile  string            // gets stdout and stderr, is truncated first; if empty, a temporary file
	Progress func(line []byte) // called for each line of the progress pipe, see Run; must not keep line
	Grace    time.Duration     // time between SIGTERM and SIGKILL; 0: DefaultGrace
	Secrets  []string          // values to overwrite with asterisks in the log and in errors
}

// DefaultGrace is how long a program may take to end after SIGTERM.
const DefaultGrace = 10 * time.Second

// Run starts the program and returns when it has ended and its whole process group is dead.
//
// The program finds the progress pipe in PARITY_PROGRESS_FD, the number of a file descriptor (on
// Windows in PARITY_PROGRESS_HANDLE, a handle). Calls of c.Progress do not overlap, and none comes
// after Run has returned. The program's stdin is empty. When ctx is done, the program is told to
// end, and is killed after c.Grace.
//
// Errors: *StartError if the program could not be started, *ExitError if it ended by a signal or
// with a code other than 0, *TimeoutError if the deadline of ctx had passed, and one that wraps the
// cause of ctx if ctx was cancelled.
func Run(ctx context.Context, c Command) error {
	started := time.Now()
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	if ctx.Err() != nil {
		return c.stopped(ctx, started, "", "", nil)
	}
	if c.Dir != "" {
		// Without this check a missing folder would be reported as a missing program.
		if _, err := os.Stat(c.Dir); err != nil {
			return c.notStarted(fmt.Errorf("its working folder: %w", err))
		}
	}
	log, err := openLog(c.LogFile)
	if err != nil {
		return c.notStarted(err)
	}
	defer log.close()
	progress, err := newProgress(c.Progress)
	if err != nil {
		return c.notStarted(err)
	}
	defer progress.finish()
	g, err := newGroup(ctx, c.name(), c.Grace)
	if err != nil {
		if ctx.Err() != nil {
			return c.stopped(ctx, started, "", "", nil)
		}
		return c.notStarted(err)
	}
	defer g.close()

	interrupted := false
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, slices.Clip(c.Env)
	cmd.Stdout, cmd.Stderr = log.out, log.out // files, not writers: Wait must not wait for others that hold them
	cmd.WaitDelay = c.Grace                   // then the program is killed, and the rest of the group below
	cmd.Cancel = func() error {
		err := g.terminate(cmd.Process)
		interrupted = err == nil // otherwise it has just ended by itself
		return err
	}
	if err := progress.pass(cmd); err != nil {
		return c.notStarted(err)
	}
	if err := g.start(cmd); err != nil {
		if ctx.Err() != nil {
			return c.stopped(ctx, started, "", "", nil)
		}
		return c.notStarted(err)
	}
	waitErr := cmd.Wait()
	g.close()
	last := Redact(progress.finish(), c.Secrets)
	tail := log.tail(c.Secrets)

	switch {
	case interrupted:
		return c.stopped(ctx, started, last, c.LogFile, tail)
	case waitErr == nil:
		return nil
	case cmd.ProcessState == nil:
		return fmt.Errorf("supervise: wait for %s: %w", c.name(), waitErr)
	}
	code, signal := status(cmd.ProcessState)
	return &ExitError{Name: c.name(), Code: code, Signal: signal, Progress: last, LogFile: c.LogFile, Tail: tail}
}

func (c *Command) name() string { return filepath.Base(c.Path) }

func (c *Command) notStarted(err error) error {
	return &StartError{Path: c.Path, Err: err}
}

// stopped returns the error for a program that was stopped, or not even started, because ctx was
// done.
func (c *Command) stopped(ctx context.Context, started time.Time, last, log string, tail []string) error {
	if ctx.Err() != context.DeadlineExceeded {
		return fmt.Errorf("supervise: %s was stopped: %w", c.name(), cause(ctx))
	}
	return &TimeoutError{Name: c.name(), After: time.Since(started), Progress: last, LogFile: log, Tail: tail,
		Err: cause(ctx)}
}
