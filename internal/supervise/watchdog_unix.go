//go:build unix

package supervise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchdogKey is the variable that makes this program a watchdog.
const watchdogKey = "PARITY_WATCHDOG"

func init() {
	if v, ok := os.LookupEnv(watchdogKey); ok {
		os.Exit(watch(v))
	}
}

// order is what a watchdog is told, as a line of JSON: first to start a program, then to signal it
// and its descendants. After SIGKILL, and when no more orders can come, the watchdog ends. Texts are
// bytes, which need not be UTF-8.
type order struct {
	Path, Dir []byte
	Args, Env []byte // with a zero byte after each
	Files     int    // how many of the files that the watchdog inherits are the program's: its log first
	Inherited int    // how many there are
	Signal    int
}

// joined puts strings that have no zero byte together.
func joined(list []string) []byte {
	var b []byte
	for _, s := range list {
		b = append(append(b, s...), 0)
	}
	return b
}

func split(b []byte) (list []string) {
	for s := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
		list = append(list, string(s))
	}
	return list
}

// answer is what a watchdog says, as a line of JSON: whether the program was started, then how it
// ended.
type answer struct {
	Errno  int
	Status int
}

// watchdog starts a program and ends it with all its descendants, at the latest when its parent is
// dead.
type watchdog struct {
	say     *json.Encoder
	program int // 0 once it has ended
}

// watch is the main function of a watchdog.
func watch(value string) int {
	// A variable that someone set by hand must not make this process a watchdog.
	if group, _ := unix.Getpgid(0); value != strconv.Itoa(os.Getppid()) || group != os.Getpid() {
		fmt.Fprintf(os.Stderr, "%s=%s is not for this process: unset it\n", watchdogKey, value)
		return 2
	}
	deaf := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) { // the program must inherit that
			signal.Notify(deaf, s)
		}
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	adoptOrphans()
	orders := make(chan order)
	go func() {
		defer close(orders)
		in := json.NewDecoder(os.Stdin)
		for {
			var o order
			if in.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	first, ok := <-orders
	if !ok {
		return 0
	}
	w := &watchdog{say: json.NewEncoder(os.NewFile(saysFD, "answers"))}
	if w.start(first); w.program == 0 {
		return 0
	}
	for {
		select {
		case <-deaf:
		case <-children:
			w.reap()
		case o, ok := <-orders:
			switch {
			case !ok:
				w.end()
				return 0
			case o.Signal == int(syscall.SIGKILL):
				w.kill()
				return 0
			default:
				w.signal(syscall.Signal(o.Signal))
			}
		}
	}
}

// start starts the program. Only the program keeps its files, so that their readers see their end.
func (w *watchdog) start(o order) {
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	files := []uintptr{uintptr(null), logFD, logFD}
	for fd := saysFD; fd < saysFD+o.Inherited; fd++ {
		syscall.CloseOnExec(fd)
		if fd > logFD && fd < logFD+o.Files {
			files = append(files, uintptr(fd))
		}
	}
	if err == nil {
		// The main thread starts it, in an init: when that ends, the process does.
		w.program, err = syscall.ForkExec(string(o.Path), split(o.Args), &syscall.ProcAttr{Dir: string(o.Dir),
			Env: split(o.Env), Files: files, Sys: attributes()})
	}
	for fd := logFD; fd < logFD+o.Files; fd++ {
		syscall.Close(fd)
	}
	var errno syscall.Errno
	if err != nil {
		w.program = 0
		if !errors.As(err, &errno) {
			errno = syscall.EINVAL
		}
	}
	w.say.Encode(answer{Errno: int(errno)})
}

// What a watchdog inherits: where it answers, then the program's files.
const (
	saysFD = 3
	logFD  = 4
)

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
			w.say.Encode(answer{Status: int(status)})
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
