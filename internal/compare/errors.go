package compare

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// ShapeError says that two tensors cannot be compared element by element.
type ShapeError struct{ Golden, Actual []int }

func (e *ShapeError) Error() string {
	return fmt.Sprintf("compare: golden has shape %s, actual %s", tensor.FormatShape(e.Golden),
		tensor.FormatShape(e.Actual))
}

// MisuseError says that a comparison makes no sense: a tolerance is negative, a limit is not a
// number, there is no criterion. It is an error in the test, not in the tensors.
type MisuseError struct{ Msg string }

func (e *MisuseError) Error() string { return "compare: " + e.Msg }

func misuse(format string, args ...any) error { return &MisuseError{Msg: fmt.Sprintf(format, args...)} }

// FaultError says that the bytes of a tensor could no longer be read: a mapped file was truncated,
// or its disk failed.
type FaultError struct {
	Files []string // the files of the tensors
	Err   error    // the error of the runtime
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("compare: a mapped file became unreadable while it was compared "+
		"(was it truncated or rewritten?): %q: %v", e.Files, e.Err)
}

// Unwrap returns the error of the runtime.
func (e *FaultError) Unwrap() error { return e.Err }

// guard runs f and returns a FaultError if a tensor's file became unreadable.
func guard[T any](f func() (T, error), tensors ...*tensor.Tensor) (result T, err error) {
	err = mapfile.Guard(func() (err error) {
		result, err = f()
		return err
	})
	fault, is := errors.AsType[*mapfile.Fault](err)
	if !is {
		return result, err
	}
	e := &FaultError{Err: fault.Err}
	for _, t := range tensors {
		if t != nil && t.Place().File != "" {
			e.Files = append(e.Files, t.Place().File)
		}
	}
	return result, e
}

// check returns an error if two tensors cannot be compared.
func check(golden, actual *tensor.Tensor) error {
	if golden == nil || actual == nil {
		return misuse("a tensor is nil")
	}
	if g, a := golden.Shape(), actual.Shape(); !slices.Equal(g, a) {
		return &ShapeError{Golden: g, Actual: a}
	}
	return nil
}
