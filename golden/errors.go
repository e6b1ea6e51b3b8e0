package golden

import (
	"errors"
	"fmt"
	"strings"
)

// What an error of this package is about.
var (
	// ErrNotFound: there is no golden of that name, or no store at all.
	ErrNotFound = errors.New("golden not found")
	// ErrCorrupt: what is there is not what the manifest says.
	ErrCorrupt = errors.New("golden is damaged")
	// ErrStale: the golden was made of something else than what the fixture says now.
	ErrStale = errors.New("golden is stale")
)

// Renew is the command that makes goldens anew.
const Renew = "go test ./... -update"

// classError says something and is one of the classes above.
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

// StaleError is an [ErrStale] that says what changed.
type StaleError struct {
	Dir           string // of the store
	Variant, Case string
	Changes       []string
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("golden: %s: the goldens %s of case %s are stale: %s; renew them: %s",
		e.Dir, e.Variant, e.Case, strings.Join(e.Changes, "; "), Renew)
}

// Unwrap gives ErrStale.
func (e *StaleError) Unwrap() error { return ErrStale }

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
