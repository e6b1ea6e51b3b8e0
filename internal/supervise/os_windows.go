package supervise

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// group is the program alone: what it starts is not ended with it.
type group struct{ cmd *exec.Cmd }

// startGroup starts the program, which inherits the handle of the progress pipe's write end.
func startGroup(cmd *exec.Cmd, progress *os.File) (*group, error) {
	h := progress.Fd()
	err := windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT)
	if err != nil {
		return nil, os.NewSyscallError("SetHandleInformation", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{AdditionalInheritedHandles: []syscall.Handle{syscall.Handle(h)}}
	cmd.Env = append(cmd.Env, "PARITY_PROGRESS_HANDLE="+strconv.FormatUint(uint64(h), 10))
	return &group{cmd}, cmd.Start()
}

// wait returns how the program ended. On Windows a crash is an exit code such as 0xC0000005, not a
// signal.
func (g *group) wait() ending {
	g.cmd.Wait()
	return ending{code: g.cmd.ProcessState.ExitCode()}
}

// terminate kills the program: Windows has no SIGTERM.
func (g *group) terminate() { g.cmd.Process.Kill() }

func (g *group) close() { g.cmd.Process.Kill() }

// Daemons reports whether a program's descendants are ended that have left its process group, and
// says how.
func Daemons() (ended bool, how string) {
	return false, "what an engine starts is not ended with it on Windows"
}

// raise ends this process with the exit code that shells expect.
func raise(s os.Signal) { os.Exit(128 + int(s.(syscall.Signal))) }

// at is the offset of the locked byte: far after the text, which others must be able to read.
var at = windows.Overlapped{OffsetHigh: 1 << 30}

// tryLock locks an open file if no other process holds its lock; its text is the caller's. The system
// releases it when this process ends.
func tryLock(f *os.File) (bool, error) {
	at := at
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

// bequeath does nothing: a lock of Windows is that of one process.
func bequeath(*os.File) (undo func()) { return func() {} }

// unlockFile releases the lock of an open file.
func unlockFile(f *os.File) {
	at := at
	windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
