package supervise

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of all its descendants whose parents die: whoever
// leaves the program's group, daemons too, remains below it.
func adoptOrphans() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// Daemons reports whether a program's descendants are ended that have left its process group, and
// says how.
func Daemons() (ended bool, how string) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return false, "a process that leaves the engine's process group (a daemon) is not ended: /proc is not mounted"
	}
	return true, "whatever an engine starts is ended with it, daemons too"
}

// attributes are those of the program: it dies with the watchdog.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// signalChildren sends a signal to the children of this process except one. No other process can
// have the number of a child that was not waited for. A child in a session of its own is signalled
// with its group at one stroke, because it may fork faster than its children can be listed: all in
// that session are descendants of this process.
func signalChildren(s syscall.Signal, except int) {
	session, _ := unix.Getsid(0)
	for _, pid := range children() {
		if pid == except {
			continue
		}
		if sid, err := unix.Getsid(pid); err == nil && sid != session {
			if group, err := unix.Getpgid(pid); err == nil {
				syscall.Kill(-group, s)
			}
		}
		syscall.Kill(pid, s)
	}
}

// children lists the children of this process.
func children() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && parentOf(pid) == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func parentOf(pid int) int {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// number (name, which may hold anything) state parent …
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
