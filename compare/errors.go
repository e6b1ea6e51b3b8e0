package compare

import (
	"errors"
	"fmt"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// ShapeError says that two tensors cannot be compared element by element.
type ShapeError struct{ Golden, Actual []int }

func (e *ShapeError) Error() string {
	return fmt.Sprintf("compare: golden has shape %s, actual %s", tensor.FormatShape(e.Golden),
		tensor.FormatShape(e.Actual))
}

// MisuseError says that a comparison was asked for in a way that has no meaning: a negative
// tolerance, a limit that is not a number, no criterion at all. It is a fault of the test, not of
// the tensors.
type MisuseError struct{ Msg string }

func (e *MisuseError) Error() string { return "compare: " + e.Msg }

func misuse(format string, args ...any) error { return &MisuseError{Msg: fmt.Sprintf(format, args...)} }

// FaultError says that the bytes of a tensor could not be read any more: a mapped file was
// truncated, or its disk failed.
type FaultError struct {
	Files []string // the files behind the tensors of this comparison
	Err   error    // what the runtime said
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("compare: a mapped file became unreadable while it was compared (was it truncated or "+
		"rewritten?): %q: %v", e.Files, e.Err)
}

// Unwrap returns the error of the runtime.
func (e *FaultError) Unwrap() error { return e.Err }

// guard runs f and returns a FaultError where a tensor's file became unreadable.
func guard(f func() error, tensors ...*tensor.Tensor) error {
	err := mapfile.Guard(f)
	var fault *mapfile.Fault
	if !errors.As(err, &fault) {
		return err
	}
	e := &FaultError{Err: fault.Err}
	for _, t := range tensors {
		if t != nil && t.Place().File != "" {
			e.Files = append(e.Files, t.Place().File)
		}
	}
	return e
}

// check makes sure that two tensors can be compared.
func check(golden, actual *tensor.Tensor) error {
	if golden == nil || actual == nil {
		return misuse("a tensor is nil")
	}
	g, a := golden.Shape(), actual.Shape()
	same := len(g) == len(a)
	for i := 0; same && i < len(g); i++ {
		same = g[i] == a[i]
	}
	if !same {
		return &ShapeError{Golden: g, Actual: a}
	}
	return nil
}
