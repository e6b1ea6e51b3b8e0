package mapfile

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Fault says that mapped memory could not be read: the file was truncated, or its disk failed.
type Fault struct {
	Err runtime.Error
}

func (f *Fault) Error() string {
	return fmt.Sprintf("a mapped file became unreadable (was it truncated or rewritten?): %v", f.Err)
}

// Unwrap returns the error of the runtime.
func (f *Fault) Unwrap() error { return f.Err }

// Guard runs f and returns a [*Fault] if f read mapped memory that is gone; without Guard the
// runtime would end the process. Guard does not recover from other panics.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
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
