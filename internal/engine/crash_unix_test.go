//go:build unix

package engine_test

import (
	"os"
	"syscall"
	"time"
)

// crash dies by a signal, as an engine may. It is SIGKILL because Go would handle SIGSEGV.
func crash() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	time.Sleep(time.Minute)
}
