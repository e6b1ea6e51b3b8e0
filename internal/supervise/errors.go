package supervise

import (
	"fmt"
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
