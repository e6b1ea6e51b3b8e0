package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/goparity/goparity/internal/sanitize"
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
	Secrets  *sanitize.Secrets // overwritten with asterisks in the log and in errors; nil: those of a known form
}

// Run starts the program and returns when it has ended and all its descendants are dead.
//
// The program finds the progress pipe in PARITY_PROGRESS_FD, the number of a file descriptor (on
// Windows in PARITY_PROGRESS_HANDLE, a handle). Calls of c.Progress do not overlap, and none comes
// after Run has returned. The program's stdin is empty. When ctx is done, the program is told to end, and is killed after c.Grace,
// or earlier if the alarm of go test would come first (see [WithDeadline]).
//
// Errors: *StartError if the program could not be started; *ExitError if it ended by a signal or
// with a code other than 0, or the deadline of ctx had passed; one that wraps the cause of ctx if
// ctx was cancelled.
func Run(ctx context.Context, c Command) error {
	started := time.Now()
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	e := &ExitError{Name: filepath.Base(c.Path)}
	if ctx.Err() != nil {
		return e.stopped(ctx, started)
	}
	if c.Dir != "" {
		// Without this check a missing folder would be reported as a missing program.
		if _, err := os.Stat(c.Dir); err != nil {
			return &StartError{c.Path, fmt.Errorf("its working folder: %w", err)}
		}
	}
	log, err := openLog(c.LogFile, c.Secrets)
	if err != nil {
		return &StartError{c.Path, err}
	}
	defer log.close()
	last := ""
	progress, err := newPipe(func(r io.Reader) { last = readLines(r, c.Progress) })
	if err != nil {
		return &StartError{c.Path, err}
	}
	defer progress.end()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log.w, log.w
	cmd.Env = append([]string{}, c.Env...) // an empty environment is none of ours
	g, err := startGroup(cmd, progress.w)
	if err != nil {
		return &StartError{c.Path, err}
	}
	defer g.close()
	end, interrupted := c.wait(ctx, g)
	g.close()
	progress.end()
	e.Code, e.Signal, e.Progress, e.LogFile, e.Tail = end.code, end.signal, c.Secrets.Redact(last), c.LogFile, log.tail()
	switch {
	case interrupted:
		return e.stopped(ctx, started)
	case end.err != nil:
		return &StartError{c.Path, end.err}
	case end.code == 0:
		return nil
	}
	return e
}

// ending is how a program ended.
type ending struct {
	code   int // 128 + n for signal n
	signal string
	err    error // it was not started
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

// stopped returns the error for a program that was stopped, or not even started, because ctx was
// done.
func (e *ExitError) stopped(ctx context.Context, started time.Time) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, ctx.Err()) {
		cause = fmt.Errorf("%w (%w)", cause, ctx.Err())
	}
	if ctx.Err() != context.DeadlineExceeded {
		return fmt.Errorf("supervise: %s was stopped: %w", e.Name, cause)
	}
	e.After, e.Err = time.Since(started), cause
	return e
}
