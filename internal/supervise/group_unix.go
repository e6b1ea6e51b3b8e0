//go:build unix && !aix

package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// group is the program with its descendants, and the watchdog that ends them if this process dies.
type group struct {
	watchdog *exec.Cmd
	alive    *os.File    // its end of the pipe; the watchdog acts when this is closed
	id       int         // of the process group; 0 under Bazel
	program  *os.Process // nil before it runs
	end      func()
}

// newGroup starts the watchdog and waits until it is ready. The program joins its group as it starts: so there is no moment
// in which it runs and is not guarded.
func newGroup(ctx context.Context, name string, grace time.Duration) (*group, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("its watchdog: %w", err)
	}
	own := os.Getenv("BAZEL_TEST") == ""
	stdin, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	ready, done, err := os.Pipe()
	if err != nil {
		alive.Close()
		return nil, err
	}
	defer ready.Close()

	cmd := &exec.Cmd{Path: exe, Args: []string{"goparity-watchdog", name}, Stdin: stdin, ExtraFiles: []*os.File{done}}
	cmd.Env = append(os.Environ(), watchdogKey+"="+watchdogOrder{parent: os.Getpid(), own: own, grace: grace}.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: own}
	held.Lock() // a lock must not be closed while it is passed on
	for f := range held.files {
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	err = cmd.Start()
	held.Unlock()
	done.Close()
	if err != nil {
		alive.Close()
		return nil, fmt.Errorf("its watchdog: %w", err)
	}
	g := &group{watchdog: cmd, alive: alive}
	if own {
		g.id = cmd.Process.Pid
	}
	g.end = sync.OnceFunc(g.kill)

	defer context.AfterFunc(ctx, func() { ready.SetReadDeadline(time.Unix(1, 0)) })()
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		g.close()
		return nil, fmt.Errorf("its watchdog (this program, executed again) ended before it was ready: %w", err)
	}
	return g, nil
}

// start starts the program in the group.
func (g *group) start(cmd *exec.Cmd) error {
	if g.id != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	g.program = cmd.Process
	if g.id == 0 {
		io.WriteString(g.alive, strconv.Itoa(g.program.Pid)+"\n") // if the watchdog is gone, the program is unguarded, as without Bazel
	}
	return nil
}

// terminate asks the group to end. The watchdog does not listen.
func (g *group) terminate() error { return g.signal(syscall.SIGTERM) }

func (g *group) signal(s syscall.Signal) error {
	if g.id != 0 {
		// The watchdog is a child that was not waited for: the number cannot be another group's.
		return syscall.Kill(-g.id, s)
	}
	if g.program == nil {
		return nil
	}
	return g.program.Signal(s)
}

// close kills all that is left of the group.
func (g *group) close() { g.end() }

func (g *group) kill() {
	g.signal(syscall.SIGKILL)
	g.watchdog.Process.Kill()
	g.alive.Close()
	g.watchdog.Wait()
	if g.id == 0 {
		return
	}
	// Descendants die a moment later, and free their device then. The limit is for one that the system cannot end, or that
	// is dead but whose parent does not collect it.
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err := syscall.Kill(-g.id, 0); errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) {
			return
		}
	}
}
