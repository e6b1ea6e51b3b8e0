// Package infra tells a machine that failed from a model that is wrong. It says why nothing could
// be compared, in words for people and in files for CI.
package infra

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/gpu"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/supervise"
)

// Why nothing could be compared. The first four are not the model's fault: another try, or another
// machine, may succeed.
const (
	classInfra   = "infra" // no interpreter, engine, driver, GPU or memory
	classCrash   = "crash" // the engine died
	classTimeout = "timeout"
	classStopped = "stopped" // by a signal
	classModel   = "model"   // the engine cannot run the model, or the model's own code failed
	classUsage   = "usage"   // no engine can do what was asked for
	classBug     = "bug"     // of goparity
	classFixture = "fixture" // in goldens, the recorded run or fixture.yaml
)

// Class returns why nothing could be compared.
func Class(err error) string {
	var infra *engine.InfraError
	var crash *engine.CrashError
	var start *supervise.StartError
	var model *engine.ModelError
	var usage *engine.UsageError
	var bug *engine.BugError
	switch {
	case errors.As(err, &crash):
		return classCrash
	case errors.Is(err, context.DeadlineExceeded):
		return classTimeout
	case errors.Is(err, context.Canceled):
		return classStopped
	case errors.As(err, &infra), errors.As(err, &start), gpu.IsInfra(err):
		return classInfra
	case errors.As(err, &model):
		return classModel
	case errors.As(err, &usage):
		return classUsage
	case errors.As(err, &bug):
		return classBug
	}
	return classFixture
}

// Text returns the text of an error, with the end of the engine's log if the engine died or was
// stopped.
func Text(err error) string {
	text := Message(err)
	var exit *supervise.ExitError
	var late *supervise.TimeoutError
	var tail []string
	switch {
	case errors.As(err, &exit):
		tail = exit.Tail
	case errors.As(err, &late):
		tail = late.Tail
	}
	if tail = lastLines(tail); len(tail) > 0 {
		text += "\nthe end of its log:\n  " + strings.ReplaceAll(sanitize.Text(strings.Join(tail, "\n")), "\n", "\n  ")
	}
	return text
}

// Message returns the text of an error as people and CI may see it: much of it may be what an engine
// said.
func Message(err error) string { return sanitize.Text(err.Error()) }

// lastLines keeps as many lines as people and JUnit can read in a failure. Of a line that is too
// long it keeps the end.
func lastLines(lines []string) []string {
	const most, room = 30, 3000 // lines, bytes
	lines = slices.Clone(lines[max(0, len(lines)-most):])
	left := room
	for i := len(lines) - 1; i >= 0; i-- {
		if left -= len(lines[i]); left < 0 {
			if i < len(lines)-1 {
				return lines[i+1:]
			}
			lines[i] = "…" + strings.ToValidUTF8(lines[i][len(lines[i])-room:], "")
			return lines[i:]
		}
	}
	return lines
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

// WriteStatus writes why nothing could be compared to dir/infra.txt, and to the file that Bazel
// asks for: a line with the class, and one with the error. Unless err is of one of the first four
// classes, it instead removes the file of an earlier run.
func WriteStatus(dir, fixture string, err error) error {
	bazel := os.Getenv("TEST_INFRASTRUCTURE_FAILURE_FILE")
	var paths []string
	if dir != "" {
		paths = append(paths, filepath.Join(dir, statusFile))
	}
	class := ""
	if err != nil {
		class = Class(err)
	}
	if !slices.Contains([]string{classInfra, classCrash, classTimeout, classStopped}, class) {
		for _, p := range paths {
			if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		return nil
	}
	if bazel != "" {
		paths = append(paths, bazel)
	}
	text := fmt.Sprintf("goparity %s\n%s: %s\n", class, fixture, sanitize.Line(err.Error()))
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
