// Package supervise runs an engine as a child process that cannot outlive the process that started
// it.
//
// [Run] lets a watchdog start the program, in a process group of its own, with its own pipes and log
// file, so that nothing it leaves after keeps go test waiting. When Run returns, all of it is dead:
// the program has ended by itself or, once the context was done, by SIGTERM and then SIGKILL, and
// its descendants have been killed. If this process dies first (a test's alarm, a panic, os.Exit,
// SIGKILL), the watchdog ends them.
//
// The watchdog is this program, executed again: an init of this package recognises it, so every
// test binary that links the package can be one. It reads orders from a pipe whose other end only
// this process holds. When that end closes, this process is dead: the watchdog sends SIGTERM, waits
// at most a second, and sends SIGKILL.
//
// On Linux the watchdog adopts the orphans below it (PR_SET_CHILD_SUBREAPER). Whatever a descendant
// does, with sessions, process groups, or its parents' deaths, it remains below the watchdog, which
// kills its children until there are none. If the watchdog itself is killed, the program dies by
// that (PR_SET_PDEATHSIG); what it started is out of reach then. What another
// service starts on request (systemd-run, docker, at) is no descendant.
//
// On other Unix systems only the process group is ended: a daemon, which leaves it, is out of reach.
// [Daemons] says which it is. On Windows the program alone is killed.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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
	Grace    time.Duration     // time between SIGTERM and SIGKILL; 0: defaultGrace
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
		c.Grace = defaultGrace
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

// StartError says that a program could not be started: there was an error with the program, its
// working folder, its log or the watchdog.
type StartError struct {
	Path string // as given in Command
	Err  error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("supervise: cannot start %s: %v: want a program in PATH, or the full path of one that may be run (chmod +x) "+
		"on this machine; the first line of a script names its interpreter (#!)", e.Path, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// ExitError says that a program ended by itself with an exit code other than 0 or by a signal, or
// that it was stopped because a deadline had passed.
type ExitError struct {
	Name   string // the program's file name
	Code   int    // exit code; 128 + n for signal n, as in shells
	Signal string // "SIGSEGV", or empty if it exited

	After time.Duration // it was stopped, so long after it was started
	Err   error         // why it was stopped, wraps context.DeadlineExceeded; nil if it was not

	Progress string // the last line of the progress pipe: what the program was doing
	LogFile  string
	Tail     []string // last lines of the log: at most 200 lines and 64 KiB, secrets overwritten
}

func (e *ExitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "supervise: %s ", e.Name)
	switch {
	case e.Err != nil:
		fmt.Fprintf(&b, "was stopped after %s: %v", e.After.Round(10*time.Millisecond), e.Err)
	case e.Signal == "SIGKILL":
		b.WriteString("was killed from outside (SIGKILL): by the system if memory ran out")
	case e.Signal != "":
		b.WriteString("died by " + e.Signal)
	default:
		fmt.Fprintf(&b, "exited with code %d", e.Code)
	}
	if e.Progress != "" {
		fmt.Fprintf(&b, "; last progress: %s", cut(e.Progress))
	}
	for i := len(e.Tail) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(e.Tail[i]); line != "" {
			fmt.Fprintf(&b, "; last line of its log: %s", cut(line))
			break
		}
	}
	if e.LogFile != "" { // else it was not even started
		fmt.Fprintf(&b, " (log: %s)", e.LogFile)
	}
	return b.String()
}

func (e *ExitError) Unwrap() error { return e.Err }

// cut keeps a line short enough for a message.
func cut(s string) string {
	const most = 300 // bytes
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// WithDeadline returns ctx with a deadline at which an engine must be told to end, so that this can
// be reported before the alarm of go test -timeout, which ends the process at began + timeout; a
// timeout of 0 has none. With left = alarm − now, the deadline is
//
//	alarm − min(defaultGrace + 1 s, left/4)
//
// so that the engine gets at least three quarters of a short timeout. The context's cause then names
// -timeout. A program that does not end by itself is killed (see [Run]) before the alarm.
func WithDeadline(ctx context.Context, timeout time.Duration, began time.Time) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	left := max(0, time.Until(began.Add(timeout)))
	room := min(defaultGrace+time.Second, left/4)
	left -= room
	return context.WithDeadlineCause(ctx, time.Now().Add(left), &testTimeoutError{timeout, left, room})
}

// testTimeoutError says which deadline passed. There is room after it until go test's own alarm.
type testTimeoutError struct{ timeout, left, room time.Duration }

func (e *testTimeoutError) Error() string {
	return fmt.Sprintf("go test -timeout %s leaves %s for the engine: give it more, or -timeout 0 for no limit",
		e.timeout, e.left.Round(100*time.Millisecond))
}

func (e *testTimeoutError) Unwrap() error { return context.DeadlineExceeded }

// Signals returns a context that the first SIGINT or SIGTERM cancels, so that a running program is
// stopped gracefully. After that both signals have their default effect: a second Ctrl-C ends this
// process at once, and then the watchdog ends the program.
//
// stop must be called when the work is done. If there was a signal, stop raises it again and does
// not return: the process ends by that signal, which shells show as exit code 130 or 143. Signals
// that were ignored when this process started stay ignored.
func Signals(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	came := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	var got os.Signal
	done := make(chan struct{})
	go func() {
		defer close(done)
		if got = <-came; got != nil {
			signal.Stop(came)
			cancel(&signalError{got})
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(came)
		close(came) // one that has just arrived is still received
		<-done
		cancel(nil)
		if got != nil {
			raise(got)
		}
	})
}

type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "signal: " + e.signal.String() }
func (e *signalError) Unwrap() error { return context.Canceled }
