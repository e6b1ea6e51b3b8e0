//go:build unix && !aix

package supervise

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchdogKey is the variable that makes this program a watchdog.
const watchdogKey = "PARITY_WATCHDOG"

// orphanGrace limits the time between SIGTERM and SIGKILL once no one waits for the result.
const orphanGrace = time.Second

func init() {
	if v, ok := os.LookupEnv(watchdogKey); ok {
		os.Exit(watch(v))
	}
}

// watchdogOrder is the value of watchdogKey.
type watchdogOrder struct {
	parent int // the process to outlive
	own    bool
	grace  time.Duration
}

func (o watchdogOrder) String() string { return fmt.Sprintf("%d %t %s", o.parent, o.own, o.grace) }

// watch waits until the parent is dead and then ends what it left. A parent that lives on kills the
// watchdog.
func watch(order string) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	var o watchdogOrder
	var grace string
	_, err := fmt.Sscan(order, &o.parent, &o.own, &grace)
	if err == nil {
		o.grace, err = time.ParseDuration(grace)
	}
	// A variable that someone set by hand must not make this process kill the group of a shell.
	group, _ := unix.Getpgid(0)
	if err != nil || os.Getppid() != o.parent || o.own != (group == os.Getpid()) {
		fmt.Fprintf(os.Stderr, "%s=%s is not for this process: unset it\n", watchdogKey, order)
		return 2
	}
	ready := os.NewFile(3, "ready")
	ready.Write([]byte{1})
	ready.Close()

	var program *os.Process
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() { // until the parent is dead
		if pid, err := strconv.Atoi(strings.TrimSpace(in.Text())); err == nil {
			program, _ = os.FindProcess(pid) // on Linux a handle: the number cannot become another's
		}
	}
	end := func(s syscall.Signal) {
		if o.own {
			syscall.Kill(0, s) // the group that this process leads
		} else if program != nil {
			program.Signal(s)
		}
	}
	end(syscall.SIGTERM)
	time.Sleep(min(o.grace, orphanGrace))
	end(syscall.SIGKILL)
	return 0
}
