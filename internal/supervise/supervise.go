package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/goparity/goparity/internal/secret"
)

// Command is a program to run under supervision.
type Command struct {
	Path     string            // a file, or a name to look up in PATH
	Args     []string          // without the program's name
	Dir      string            // working folder; if empty, that of this process
	Env      []string          // the complete environment, KEY=value; Run adds the progress pipe
	LogFile  string            // gets stdout and stderr; it is truncated first
	Progress func(line []byte) // called for each line of the progress pipe, see Run; must not keep line
	Grace    time.Duration     // time between SIGTERM and SIGKILL; 0: DefaultGrace
	Secrets  *secret.Values    // overwritten with asterisks in the log and in errors; nil: those of a known form
}

// DefaultGrace is how long a program may take to end after SIGTERM.
const DefaultGrace = 10 * time.Second

// Run starts the program and returns when it has ended and all its descendants are dead.
//
// The program finds the progress pipe in PARITY_PROGRESS_FD, the number of a file descriptor (on
// Windows in PARITY_PROGRESS_HANDLE, a handle). Calls of c.Progress do not overlap, and none comes
// after Run has returned. The program's stdin is empty. When ctx is done, the program is told to end, and is killed after c.Grace,
// or earlier if the alarm of go test would come first (see [WithDeadline]).
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
	log, err := openLog(c.LogFile, c.Secrets)
	if err != nil {
		return c.notStarted(err)
	}
	defer log.close()
	progress, err := newProgress(c.Progress)
	if err != nil {
		return c.notStarted(err)
	}
	defer progress.finish()

	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, append([]string{}, c.Env...) // an empty environment is none of ours
	cmd.Stdout, cmd.Stderr = log.w, log.w
	if err := progress.pass(cmd); err != nil {
		return c.notStarted(err)
	}
	g, err := startGroup(ctx, cmd)
	if err != nil {
		if ctx.Err() != nil {
			return c.stopped(ctx, started, "", "", nil)
		}
		return c.notStarted(err)
	}
	defer g.close()
	end, interrupted := c.wait(ctx, g)
	g.close()
	last := c.Secrets.Redact(progress.finish())
	tail := log.tail()

	switch {
	case interrupted:
		return c.stopped(ctx, started, last, c.LogFile, tail)
	case end.err != nil:
		return fmt.Errorf("supervise: wait for %s: %w", c.name(), end.err)
	case end.code == 0:
		return nil
	}
	return &ExitError{Name: c.name(), Code: end.code, Signal: end.signal, Progress: last, LogFile: c.LogFile, Tail: tail}
}

// ending is how a program ended.
type ending struct {
	code   int // 128 + n for signal n
	signal string
	err    error // it is not known how
}

// wait waits for the program, and ends it when ctx is done.
func (c *Command) wait(ctx context.Context, g *group) (e ending, interrupted bool) {
	ended := make(chan ending, 1)
	go func() { ended <- g.wait() }()
	select {
	case e := <-ended:
		return e, false
	case <-ctx.Done():
	}
	select {
	case e := <-ended: // it has just ended by itself
		return e, false
	default:
	}
	grace := c.Grace
	var alarm *testTimeoutError
	if errors.As(context.Cause(ctx), &alarm) {
		grace = min(grace, alarm.room/2) // the other half is for the report
	}
	g.terminate()
	select {
	case e = <-ended:
	case <-time.After(grace):
		g.close()
		e = <-ended
	}
	return e, true
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
