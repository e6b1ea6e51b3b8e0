package supervise

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// pass lets the program inherit the handle of the pipe's write end.
func (p *progress) pass(cmd *exec.Cmd) error {
	h := windows.Handle(p.w.Fd())
	if err := windows.SetHandleInformation(h, windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
		return os.NewSyscallError("SetHandleInformation", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{AdditionalInheritedHandles: []syscall.Handle{syscall.Handle(h)}}
	cmd.Env = append(cmd.Env, "PARITY_PROGRESS_HANDLE="+strconv.FormatUint(uint64(h), 10))
	return nil
}

// Daemons reports whether a program's descendants are ended that have left its process group, and
// says how.
func Daemons() (ended bool, how string) {
	return true, "whatever an engine starts is in a job, and is ended with it"
}

func killMarked(string, time.Duration) {} // nothing outlives its job

func notExecutable(err error) bool { return err == windows.ERROR_BAD_EXE_FORMAT }

// raise ends this process with the exit code that shells expect.
func raise(s os.Signal) { os.Exit(128 + int(s.(syscall.Signal))) }

// lockAt is the offset of the locked byte: far after the text, which others must be able to read.
var lockAt = windows.Overlapped{OffsetHigh: 1 << 30}

// lockFile takes the lock if it is free. The system releases it when this process ends.
func lockFile(f *os.File) (bool, error) {
	at := lockAt
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &at)
	switch err {
	case nil:
		return true, nil
	case windows.ERROR_LOCK_VIOLATION, windows.ERROR_IO_PENDING:
		return false, nil
	}
	return false, os.NewSyscallError("LockFileEx", err)
}

func unlockFile(f *os.File) {
	at := lockAt
	windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
