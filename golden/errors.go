package golden

import (
	"errors"
	"fmt"
)

// Classes of errors, for [errors.Is].
var (
	// ErrNotFound: there is no golden of that name, or no store.
	ErrNotFound = errors.New("golden not found")
	// ErrCorrupt: the manifest cannot be read, or a file is not what it says.
	ErrCorrupt = errors.New("golden is damaged")
)

// renew is the command that makes the goldens again.
const renew = "go test ./... -update"

// classError is an error of one of the classes above.
type classError struct {
	class error
	msg   string
	cause error
}

func (e *classError) Error() string { return "golden: " + e.msg }

func (e *classError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.class}
	}
	return []error{e.class, e.cause}
}

func corrupt(format string, args ...any) error {
	return &classError{class: ErrCorrupt, msg: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &classError{class: ErrNotFound, msg: fmt.Sprintf(format, args...)}
}

// Problem is one thing that [Store.Verify] found.
type Problem struct {
	File   string // relative to the store
	Tensor string // label, "" for the file as a whole
	Err    error  // is ErrCorrupt or ErrNotFound
	Extra  bool   // the file belongs to no golden: Prune removes it
}

func (p Problem) String() string {
	if p.Tensor == "" {
		return fmt.Sprintf("%s: %v", p.File, p.Err)
	}
	return fmt.Sprintf("%s: %s: %v", p.File, p.Tensor, p.Err)
}
