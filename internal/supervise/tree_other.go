//go:build unix && !linux

package supervise

import (
	"runtime"
	"syscall"
)

// Daemons reports whether a program's descendants are ended that have left its process group, and
// says how. Orphans become children of the system's first process here, and are out of reach.
func Daemons() (ended bool, how string) {
	return false, "a process that leaves the engine's process group (a daemon) is not ended on " + runtime.GOOS
}

func adoptOrphans() {}

// attributes are those of the program.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signalChildren(syscall.Signal, int) {}
