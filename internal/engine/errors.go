package engine

import (
	"strings"

	"github.com/goparity/goparity/internal/supervise"
)

// InfraError says that the machine or the installation cannot run the engine: no interpreter, no
// engine, no driver, no memory.
type InfraError struct {
	Msg, Hint string
	LogFile   string
	Err       error // nil if the engine itself reported the error
}

func (e *InfraError) Error() string { return text(e.Msg, e.Hint, e.LogFile) }
func (e *InfraError) Unwrap() error { return e.Err }

// ModelError says that the engine cannot run the model: missing weights, an unknown architecture,
// an encoding that the device does not have, or an exception in the model's code.
type ModelError struct {
	Msg, Hint string
	Where     string // file:line of the model's or the oracle's code, if known
	LogFile   string
}

func (e *ModelError) Error() string {
	msg := e.Msg
	if e.Where != "" {
		msg += " (" + e.Where + ")"
	}
	return text(msg, e.Hint, e.LogFile)
}

// BugError says that a runner of goparity has a bug. It says nothing about the model.
type BugError struct{ Msg, Hint, Where, LogFile string }

func (e *BugError) Error() string { return text(e.Msg+" ("+e.Where+")", e.Hint, e.LogFile) }

// UsageError says that the job cannot be run by any engine: a token id is out of range, there are
// more tokens than the model takes.
type UsageError struct{ Msg, Hint string }

func (e *UsageError) Error() string { return text(e.Msg, e.Hint, "") }

// CrashError says that the engine ended by a signal or with an exit code, without saying why.
type CrashError struct {
	Engine string
	Err    *supervise.ExitError // signal or code, and the end of the log
}

func (e *CrashError) Error() string { return "engine " + e.Engine + " crashed: " + e.Err.Error() }
func (e *CrashError) Unwrap() error { return e.Err }

func text(msg, hint, log string) string {
	var b strings.Builder
	b.WriteString("engine: " + msg)
	if hint != "" {
		b.WriteString(": " + hint)
	}
	if log != "" {
		b.WriteString(" (log: " + log + ")")
	}
	return b.String()
}
