package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/supervise"
)

// Classes of errors: why nothing could be compared. The first four are not the model's fault: another
// try, or another machine, may succeed.
const (
	ClassInfra   = "infra" // no interpreter, engine, driver, GPU or memory
	classCrash   = "crash" // the engine died by a signal or with an exit code, without saying why
	classTimeout = "timeout"
	classStopped = "stopped" // by a signal
	classModel   = "model"   // the engine cannot run the model, or the model's own code failed
	ClassUsage   = "usage"   // no engine can do what was asked for: a token id is out of range
	classBug     = "bug"     // of a runner of goparity; it says nothing about the model
	classFixture = "fixture" // in goldens, the recorded run or fixture.yaml
)

// Error says why an engine did not do its job.
type Error struct {
	Class     string
	Msg, Hint string
	Where     string // file:line of the model's, the oracle's or the runner's code, if known
	Case      string // that was being run; "" if it is not known
	LogFile   string
	Err       error // nil if the engine itself reported the error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("engine: " + e.Msg)
	if e.Where != "" {
		b.WriteString(" (" + e.Where + ")")
	}
	if e.Hint != "" {
		b.WriteString(": " + e.Hint)
	}
	if e.LogFile != "" {
		b.WriteString(" (log: " + e.LogFile + ")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Class returns why nothing could be compared.
func Class(err error) string {
	var e *Error
	var start *supervise.StartError
	known := errors.As(err, &e)
	switch {
	case known && e.Class == classCrash:
		return classCrash
	case errors.Is(err, context.DeadlineExceeded):
		return classTimeout
	case errors.Is(err, context.Canceled):
		return classStopped
	case known:
		return e.Class
	case errors.As(err, &start):
		return ClassInfra
	}
	return classFixture
}

// Text returns the text of an error, with the end of the engine's log if the engine died or was
// stopped: as much as people and JUnit can read in a failure.
func Text(err error) string {
	const most, room = 30, 3000 // lines, bytes
	text := Message(err)
	var exit *supervise.ExitError
	if errors.As(err, &exit) && len(exit.Tail) > 0 {
		end := strings.Join(exit.Tail[max(0, len(exit.Tail)-most):], "\n")
		if len(end) > room {
			end = "…" + strings.ToValidUTF8(end[len(end)-room:], "")
		}
		text += "\nthe end of its log:\n  " + strings.ReplaceAll(sanitize.Text(end), "\n", "\n  ")
	}
	return text
}

// Message returns the text of an error as people and CI may see it: much of it may be what an engine
// said.
func Message(err error) string { return sanitize.Text(err.Error()) }

// Raised returns the case in which the model itself failed; "" for any other error.
func Raised(err error) string {
	if e := (*Error)(nil); errors.As(err, &e) && e.Class == classModel {
		return e.Case
	}
	return ""
}

// failure returns the error of a process that ended with err and had reported said, both of which
// may be nil. It returns nil if the run succeeded.
func failure(engine string, err error, said *eventError, log string) error {
	var exit *supervise.ExitError
	var start *supervise.StartError
	ended := errors.As(err, &exit) && exit.Err == nil
	switch {
	case errors.As(err, &start):
		return &Error{Class: ClassInfra, Msg: "the engine could not be started: " + err.Error(), Err: err}
	case err != nil && !ended:
		return fmt.Errorf("engine %s: %w", engine, err)
	case said != nil && (exit == nil || exit.Signal == ""):
		e := &Error{Class: said.Class, Msg: said.Message, Hint: said.Hint, Where: said.Where, Case: said.Case, LogFile: log}
		if !slices.Contains([]string{ClassInfra, ClassUsage, classBug}, e.Class) {
			e.Class = classModel
		}
		return e
	case ended:
		return &Error{Class: classCrash, Msg: engine + " crashed: " + err.Error(), Err: err}
	}
	return nil
}

// statusFile is the file by which CI tells a machine that failed from a model that is wrong.
const statusFile = "infra.txt"

// ReadStatus reads what [WriteStatus] left in a folder. Without such a file the error is
// fs.ErrNotExist.
func ReadStatus(dir string) (fixture, text string, err error) {
	data, err := mapfile.Read(filepath.Join(dir, statusFile), mapfile.MaxConfig)
	if err != nil {
		return "", "", err
	}
	class, rest, _ := strings.Cut(string(data), "\n")
	fixture, text, ok := strings.Cut(strings.TrimSpace(rest), ": ")
	if !ok {
		return "", strings.TrimSpace(string(data)), nil
	}
	return fixture, strings.TrimPrefix(class, "goparity ") + ": " + text, nil
}

// WriteStatus writes why nothing could be compared to dir/infra.txt, if dir is not empty, and to the
// file that Bazel asks for: a line with the class, and one with the error. Unless the machine is at
// fault, it instead removes the file of an earlier run.
func WriteStatus(dir, fixture string, err error) error {
	own := ""
	if dir != "" {
		own = filepath.Join(dir, statusFile)
	}
	if err == nil || !slices.Contains([]string{ClassInfra, classCrash, classTimeout, classStopped}, Class(err)) {
		if err := os.Remove(own); own != "" && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	text := fmt.Sprintf("goparity %s\n%s: %s\n", Class(err), fixture, sanitize.Line(err.Error()))
	for _, p := range []string{own, os.Getenv("TEST_INFRASTRUCTURE_FAILURE_FILE")} {
		if p == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
