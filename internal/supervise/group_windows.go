package supervise

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// group is the program alone: what it starts is not ended with it.
type group struct{ cmd *exec.Cmd }

func startGroup(_ context.Context, cmd *exec.Cmd) (*group, error) { return &group{cmd}, cmd.Start() }

// wait returns how the program ended. On Windows a crash is an exit code such as 0xC0000005, not a
// signal.
func (g *group) wait() ending {
	err := g.cmd.Wait()
	if g.cmd.ProcessState == nil {
		return ending{err: err}
	}
	return ending{code: g.cmd.ProcessState.ExitCode()}
}

// terminate kills the program: Windows has no SIGTERM.
func (g *group) terminate() { g.cmd.Process.Kill() }

func (g *group) close() { g.cmd.Process.Kill() }

// pass lets the program inherit the handle of the progress pipe's write end, and returns the
// variable that says so.
func pass(cmd *exec.Cmd, w *os.File) (variable string, err error) {
	h := windows.Handle(w.Fd())
	cmd.SysProcAttr = &syscall.SysProcAttr{AdditionalInheritedHandles: []syscall.Handle{syscall.Handle(h)}}
	return "PARITY_PROGRESS_HANDLE=" + strconv.FormatUint(uint64(h), 10),
		os.NewSyscallError("SetHandleInformation", windows.SetHandleInformation(h, windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT))
}

// Daemons reports whether a program's descendants are ended that have left its process group, and
// says how.
func Daemons() (ended bool, how string) {
	return false, "what an engine starts is not ended with it on Windows"
}

// raise ends this process with the exit code that shells expect.
func raise(s os.Signal) { os.Exit(128 + int(s.(syscall.Signal))) }
