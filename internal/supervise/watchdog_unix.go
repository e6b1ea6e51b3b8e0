//go:build unix

package supervise

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchdogKey is the variable that makes this program a watchdog of the program in its arguments.
const watchdogKey = "PARITY_WATCHDOG"

// What a watchdog inherits besides its orders (stdin) and the program's log (stdout and stderr).
const (
	progressFD = 3 // the program's progress pipe
	saysFD     = 4 // answers: a line with the error of the program's start, 0 for none, and one with how it ended
)

func init() {
	if v, ok := os.LookupEnv(watchdogKey); ok {
		os.Exit(watch(v))
	}
}

// watchdog starts a program and ends it with all its descendants, at the latest when its parent is
// dead.
type watchdog struct {
	says    *os.File
	program int // 0 once it has ended
}

// watch is the main function of a watchdog. Each byte of stdin is a signal that it passes on to all that
// it started; SIGKILL and the end of stdin, which is that of its parent, are its own end, too.
func watch(value string) int {
	// A variable that someone set by hand must not make this process a watchdog.
	if group, _ := unix.Getpgid(0); value != strconv.Itoa(os.Getppid()) || group != os.Getpid() || len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "%s=%s is not for this process: unset it\n", watchdogKey, value)
		return 2
	}
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) { // the program must inherit that
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	adoptOrphans()
	w := &watchdog{says: os.NewFile(saysFD, "answers")}
	w.start()
	orders := make(chan syscall.Signal)
	go func() {
		defer close(orders)
		for b := []byte{0}; ; {
			if n, err := os.Stdin.Read(b); n == 0 || err != nil {
				return
			}
			orders <- syscall.Signal(b[0])
		}
	}()
	for w.program != 0 {
		select {
		case <-children:
			w.reap()
		case s, ok := <-orders:
			switch {
			case !ok:
				w.end()
				return 0
			case s == syscall.SIGKILL:
				w.kill()
				return 0
			}
			w.signal(s)
		}
	}
	w.kill() // what the program left
	return 0
}

// start starts the program, which inherits no lock. It alone keeps its files, so that their readers see
// their end.
func (w *watchdog) start() {
	for fd := progressFD; fd < 1024; fd++ {
		syscall.CloseOnExec(fd)
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, watchdogKey+"=") })
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err == nil {
		// The main thread starts it, in an init: when that ends, the process does.
		w.program, err = syscall.ForkExec(os.Args[1], os.Args[2:], &syscall.ProcAttr{Env: env,
			Files: []uintptr{uintptr(null), 1, 2, progressFD}, Sys: attributes()})
	}
	for fd := 1; fd <= progressFD; fd++ {
		syscall.Close(fd)
	}
	errno := syscall.Errno(0)
	if err != nil {
		w.program, errno = 0, syscall.EINVAL
		if e, ok := err.(syscall.Errno); ok {
			errno = e
		}
	}
	fmt.Fprintln(w.says, int(errno))
}

// reap waits for the children that have ended, and reports the program's end. It returns whether
// there are others.
func (w *watchdog) reap() (others bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == w.program:
			syscall.Kill(-pid, syscall.SIGKILL) // who is left in its group, at once: it keeps the number
			w.program = 0
			fmt.Fprintln(w.says, int(status))
		}
	}
}

// signal sends a signal to the program's group and to those that have left it.
func (w *watchdog) signal(s syscall.Signal) {
	if w.program != 0 {
		syscall.Kill(-w.program, s)
	}
	signalChildren(s, w.program)
}

// end gives what is left a short time to end by itself.
func (w *watchdog) end() {
	w.signal(syscall.SIGTERM)
	for deadline := time.Now().Add(orphanGrace); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if !w.reap() {
			return
		}
	}
	w.kill()
}

// kill kills the children until there are none. Each that dies leaves its own children to the
// watchdog, so that this reaches all descendants, whatever group or session they are in.
func (w *watchdog) kill() {
	for deadline := time.Now().Add(killTime); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		w.signal(syscall.SIGKILL)
		if !w.reap() {
			return
		}
	}
}
