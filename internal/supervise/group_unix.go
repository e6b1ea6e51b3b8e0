//go:build unix

package supervise

import (
	"bufio"
	"context"
	"encoding/json"
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
	orders   *os.File // our end of a pipe; when it closes, the watchdog ends what it started
	answers  *json.Decoder
	end      func()
}

// startGroup starts a watchdog, which starts the program.
func startGroup(ctx context.Context, cmd *exec.Cmd) (*group, error) {
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
	dog := &exec.Cmd{Path: exe, Args: []string{"goparity-watchdog", cmd.Path}, Stdin: stdin,
		ExtraFiles:  append([]*os.File{says, cmd.Stdout.(*os.File)}, cmd.ExtraFiles...),
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	dog.Env = append(os.Environ(), watchdogKey+"="+strconv.Itoa(os.Getpid()))
	held.Lock() // no lock may be closed while the watchdog inherits it
	for f := range held.files {
		dog.ExtraFiles = append(dog.ExtraFiles, f)
	}
	err = dog.Start()
	held.Unlock()
	if err != nil {
		orders.Close()
		answers.Close()
		return nil, fmt.Errorf("its watchdog: %w", err)
	}
	g := &group{watchdog: dog, orders: orders, answers: json.NewDecoder(bufio.NewReader(answers))}
	g.end = sync.OnceFunc(func() { g.kill(); answers.Close() })
	stop := context.AfterFunc(ctx, func() { answers.SetReadDeadline(time.Unix(1, 0)) })
	err = g.start(order{Path: []byte(cmd.Path), Args: joined(cmd.Args), Dir: []byte(cmd.Dir), Env: joined(cmd.Environ()),
		Files: 1 + len(cmd.ExtraFiles), Inherited: len(dog.ExtraFiles)})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *group) start(o order) error {
	var a answer
	err := json.NewEncoder(g.orders).Encode(o)
	if err == nil {
		err = g.answers.Decode(&a)
	}
	if err != nil {
		return fmt.Errorf("its watchdog (this program, executed again) ended before it was ready: %w", err)
	}
	if a.Errno != 0 {
		return &fs.PathError{Op: "fork/exec", Path: string(o.Path), Err: syscall.Errno(a.Errno)}
	}
	return nil
}

// wait returns how the program ended. A watchdog that is killed takes the program with it.
func (g *group) wait() ending {
	var a answer
	if err := g.answers.Decode(&a); err != nil {
		return ending{code: 128 + int(syscall.SIGKILL), signal: "SIGKILL"}
	}
	w := syscall.WaitStatus(a.Status)
	if w.Signaled() {
		return ending{code: 128 + int(w.Signal()), signal: unix.SignalName(w.Signal())}
	}
	return ending{code: w.ExitStatus()}
}

// terminate asks the program and its descendants to end.
func (g *group) terminate() { g.order(order{Signal: int(syscall.SIGTERM)}) }

func (g *group) order(o order) error { return json.NewEncoder(g.orders).Encode(o) }

// close kills what is left.
func (g *group) close() { g.end() }

// kill lets the watchdog kill what is left. With a watchdog that someone has stopped, the program dies.
func (g *group) kill() {
	g.order(order{Signal: int(syscall.SIGKILL)}) // an error: it is dead already
	ended := make(chan error, 1)
	go func() { ended <- g.watchdog.Wait() }()
	select {
	case <-ended:
	case <-time.After(killTime + time.Second):
		g.watchdog.Process.Kill()
		<-ended
	}
	g.orders.Close()
}

// pass lets the program inherit the write end of the progress pipe, and returns the variable that
// says so.
func pass(cmd *exec.Cmd, w *os.File) (variable string, err error) {
	cmd.ExtraFiles = append(cmd.ExtraFiles, w)
	return "PARITY_PROGRESS_FD=" + strconv.Itoa(2+len(cmd.ExtraFiles)), nil
}

// raise ends this process by a signal.
func raise(s os.Signal) {
	n := s.(syscall.Signal)
	signal.Reset(s)
	syscall.Kill(os.Getpid(), n)
	time.Sleep(time.Second) // until the signal arrives
	os.Exit(128 + int(n))
}
