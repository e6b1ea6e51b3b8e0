//go:build unix

package supervise

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pass lets the program inherit the write end of the pipe: descriptor 3 if it is the first extra
// file.
func (p *progress) pass(cmd *exec.Cmd) error {
	cmd.ExtraFiles = append(cmd.ExtraFiles, p.w)
	cmd.Env = append(cmd.Env, "PARITY_PROGRESS_FD="+strconv.Itoa(2+len(cmd.ExtraFiles)))
	return nil
}

func endingOf(w syscall.WaitStatus) ending {
	if w.Signaled() {
		return ending{code: 128 + int(w.Signal()), signal: unix.SignalName(w.Signal())}
	}
	return ending{code: w.ExitStatus()}
}

func notExecutable(err error) bool { return errors.Is(err, syscall.ENOEXEC) }

// raise ends this process by a signal.
func raise(s os.Signal) {
	n := s.(syscall.Signal)
	signal.Reset(s)
	syscall.Kill(os.Getpid(), n)
	time.Sleep(time.Second) // until the signal arrives
	os.Exit(128 + int(n))
}
