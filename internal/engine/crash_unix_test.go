//go:build unix

package engine_test

import (
	"os"
	"syscall"
	"time"
)

// crash dies as an engine does. Go's own handler of SIGSEGV is not asked, so SIGKILL stands for it.
func crash() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	time.Sleep(time.Minute)
}
