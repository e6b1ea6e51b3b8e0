package mapfile

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Fault says that an open file could not be read any more: it was truncated or replaced, or its
// disk failed.
type Fault struct {
	File string // "" if it is not known
	Err  error
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s became unreadable (was it truncated or rewritten?): %v", cmp.Or(f.File, "a mapped file"), f.Err)
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Guard runs f and returns a [*Fault] if f read bytes of a file that are gone; without Guard the
// process would end. Guard does not recover from other panics.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Fault:
			err = r
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			err = &Fault{Err: r}
		default:
			panic(r)
		}
	}()
	return f()
}
