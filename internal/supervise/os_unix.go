//go:build unix

package supervise

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// group is the program with its descendants, and the watchdog that started it and will end it.
type group struct {
	watchdog *exec.Cmd
	program  string
	orders   *os.File // our end of a pipe; when it closes, the watchdog ends what it started
	answers  *os.File
	close    func() // kills what is left, once
}

// startGroup starts a watchdog, which starts the program: its arguments, environment, folder and files
// are those of the program.
func startGroup(cmd *exec.Cmd, progress *os.File) (*group, error) {
	if cmd.Err != nil {
		return nil, cmd.Err // the program was not found
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("its watchdog: %w", err)
	}
	stdin, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	answers, says, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, err
	}
	defer says.Close()
	g := &group{watchdog: cmd, program: cmd.Path, orders: orders, answers: answers}
	g.close = sync.OnceFunc(g.kill)
	cmd.Path, cmd.Args = exe, append([]string{"goparity-watchdog", cmd.Path}, cmd.Args...)
	cmd.Env = append(cmd.Env, fmt.Sprintf("PARITY_PROGRESS_FD=%d", progressFD), watchdogKey+"="+strconv.Itoa(os.Getpid()))
	cmd.Stdin, cmd.ExtraFiles = stdin, []*os.File{progress, says}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		orders.Close()
		answers.Close()
		return nil, fmt.Errorf("its watchdog: %w", err)
	}
	return g, nil
}

// wait returns how the program ended. A watchdog that is killed takes the program with it.
func (g *group) wait() ending {
	var errno, status int
	answers := bufio.NewReader(g.answers)
	if _, err := fmt.Fscanln(answers, &errno); err != nil {
		return ending{err: fmt.Errorf("its watchdog (this program, executed again) ended before it was ready: %w", err)}
	}
	if errno != 0 {
		return ending{err: &fs.PathError{Op: "fork/exec", Path: g.program, Err: syscall.Errno(errno)}}
	}
	if _, err := fmt.Fscanln(answers, &status); err != nil {
		return ending{code: 128 + int(syscall.SIGKILL), signal: "SIGKILL"}
	}
	w := syscall.WaitStatus(status)
	if w.Signaled() {
		return ending{code: 128 + int(w.Signal()), signal: unix.SignalName(w.Signal())}
	}
	return ending{code: w.ExitStatus()}
}

// terminate asks the program and its descendants to end.
func (g *group) terminate() { g.order(syscall.SIGTERM) }

// order has the watchdog signal all that is below it. An error: it is dead already.
func (g *group) order(s syscall.Signal) { g.orders.Write([]byte{byte(s)}) }

// kill lets the watchdog kill what is left. With a watchdog that someone has stopped, the program dies.
func (g *group) kill() {
	g.order(syscall.SIGKILL)
	late := time.AfterFunc(killTime+time.Second, func() { g.watchdog.Process.Kill() })
	g.watchdog.Wait()
	late.Stop()
	g.orders.Close()
	g.answers.Close()
}

// raise ends this process by a signal.
func raise(s os.Signal) {
	n := s.(syscall.Signal)
	signal.Reset(s)
	syscall.Kill(os.Getpid(), n)
	time.Sleep(time.Second) // until the signal arrives
	os.Exit(128 + int(n))
}

// tryLock locks an open file if no other process holds its lock; its text is the caller's. The lock
// belongs to the open file, hence to all processes that inherit it.
func tryLock(f *os.File) (bool, error) {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// bequeath lets processes that are started inherit an open file. Its number is above those that they get
// from os/exec.
func bequeath(f *os.File) (undo func()) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 16)
	return func() {
		if err == nil {
			unix.Close(fd)
		}
	}
}

// unlockFile releases the lock of an open file.
func unlockFile(f *os.File) { unix.Flock(int(f.Fd()), unix.LOCK_UN) }
