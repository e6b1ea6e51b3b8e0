package supervise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"
)

// StartError says that a program could not be started: there was an error with the program, its
// working folder, its log or the watchdog.
type StartError struct {
	Path string // as given in Command
	Err  error
}

func (e *StartError) Error() string {
	s := fmt.Sprintf("supervise: cannot start %s: %v", e.Path, e.Err)
	if h := e.hint(); h != "" {
		s += ": " + h
	}
	return s
}

func (e *StartError) Unwrap() error { return e.Err }

// hint says what to do about the common causes.
func (e *StartError) hint() string {
	var p *fs.PathError
	ofProgram := errors.As(e.Err, &p) && p.Op == "fork/exec"
	switch {
	case errors.Is(e.Err, exec.ErrNotFound):
		return "install it, or give its full path"
	case errors.Is(e.Err, exec.ErrDot):
		return "give its full path"
	case ofProgram && errors.Is(e.Err, fs.ErrPermission):
		return "make it executable (chmod +x), and check that its file system may run programs (noexec)"
	case ofProgram && errors.Is(e.Err, fs.ErrNotExist):
		if _, err := os.Stat(e.Path); err == nil {
			return "the file is there, but what runs it is not: the interpreter in its first line (#!), or its loader"
		}
		return "there is no such file: install it, or give its full path"
	case ofProgram && notExecutable(e.Err):
		return "it is not a program for this machine, or a script without an interpreter in its first line (#!)"
	}
	return ""
}

// ExitError says that a program ended by itself, with an exit code other than 0 or by a signal.
type ExitError struct {
	Name     string // the program's file name
	Code     int    // exit code; 128 + n for signal n, as in shells
	Signal   string // "SIGSEGV", or empty if it exited
	Progress string // the last line of the progress pipe
	LogFile  string
	Tail     []string // last lines of the log: at most 200 lines and 64 KiB, secrets overwritten
}

func (e *ExitError) Error() string {
	s := fmt.Sprintf("supervise: %s exited with code %d", e.Name, e.Code)
	switch e.Signal {
	case "":
	case "SIGKILL":
		s = fmt.Sprintf("supervise: %s was killed from outside (SIGKILL): by the system if memory ran out", e.Name)
	default:
		s = fmt.Sprintf("supervise: %s died by %s", e.Name, e.Signal)
	}
	return s + details(e.Progress, e.LogFile, e.Tail)
}

// TimeoutError says that a program was stopped because the deadline of its context had passed.
type TimeoutError struct {
	Name     string        // the program's file name
	After    time.Duration // since Run was called
	Progress string        // the last line of the progress pipe: what the program was doing
	LogFile  string
	Tail     []string // as in ExitError
	Err      error    // the cause of the context; wraps context.DeadlineExceeded
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("supervise: %s was stopped after %s: %v", e.Name, short(e.After), e.Err) + details(e.Progress,
		e.LogFile, e.Tail)
}

func (e *TimeoutError) Unwrap() error { return e.Err }

// details returns the rest of a message: how far the program came, as far as that is known.
func details(progress, log string, tail []string) string {
	var b strings.Builder
	if progress != "" {
		fmt.Fprintf(&b, "; last progress: %s", cut(progress))
	}
	for i := len(tail) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(tail[i]); line != "" {
			fmt.Fprintf(&b, "; last line of its log: %s", cut(line))
			break
		}
	}
	if log != "" { // it was not even started
		fmt.Fprintf(&b, " (log: %s)", log)
	}
	return b.String()
}

// cut keeps a line short enough for a message.
func cut(s string) string {
	const most = 300 // bytes
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// cause returns why ctx is done. It wraps both the cause of ctx and the error of ctx.
func cause(ctx context.Context) error {
	err := context.Cause(ctx)
	if errors.Is(err, ctx.Err()) {
		return err
	}
	return &causeError{err, ctx.Err()}
}

// causeError has the message of its cause; errors.Is also finds the context's error.
type causeError struct{ cause, err error }

func (e *causeError) Error() string   { return e.cause.Error() }
func (e *causeError) Unwrap() []error { return []error{e.cause, e.err} }
