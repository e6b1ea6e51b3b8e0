package supervise

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

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
	return false, "what an engine starts is not ended with it on Windows"
}

func notExecutable(err error) bool { return err == windows.ERROR_BAD_EXE_FORMAT }

// raise ends this process with the exit code that shells expect.
func raise(s os.Signal) { os.Exit(128 + int(s.(syscall.Signal))) }
