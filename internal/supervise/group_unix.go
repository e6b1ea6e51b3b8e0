//go:build unix && !aix

package supervise

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// group is the program with its descendants, and the watchdog that ends them if this process dies.
type group struct {
	watchdog *exec.Cmd
	alive    *os.File    // our end of the pipe; the watchdog acts when it closes
	id       int         // of the process group; 0 under Bazel
	program  *os.Process // nil before it runs
	end      func()
}

// newGroup starts the watchdog and waits until it is ready. The program joins its group as it
// starts, so that it never runs unguarded.
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
	held.Lock() // no lock may be closed while the watchdog inherits it
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
		io.WriteString(g.alive, strconv.Itoa(g.program.Pid)+
			"\n") // if the watchdog is gone, the program is unguarded, as without Bazel
	}
	return nil
}

// terminate asks the group to end. The watchdog ignores this.
func (g *group) terminate(program *os.Process) error { return g.signal(program, syscall.SIGTERM) }

func (g *group) signal(program *os.Process, s syscall.Signal) error {
	if g.id != 0 {
		// The watchdog is a child that has not been waited for, so the number cannot be another
		// group's.
		return syscall.Kill(-g.id, s)
	}
	if program == nil {
		return nil
	}
	return program.Signal(s)
}

// close kills what is left of the group.
func (g *group) close() { g.end() }

func (g *group) kill() {
	g.signal(g.program, syscall.SIGKILL)
	g.watchdog.Process.Kill()
	g.alive.Close()
	g.watchdog.Wait()
	if g.id == 0 {
		return
	}
	// Descendants die, and free their device, a moment later. The limit of 3 s is for one that the
	// system cannot end.
	for deadline := time.Now().Add(3 * time.Second); living(g.id) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
}

// living reports whether the process group has a living member. Dead processes that no parent waits
// for remain members, in a container whose first process does not collect orphans; /proc, if there
// is one, tells them apart.
func living(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		// number (name, which may hold anything) state parent group …
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return len(stats) == 0
}
