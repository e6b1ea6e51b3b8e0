//go:build unix

package supervise_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/supervise"
)

// The test binary plays all roles: a fake engine and its descendants (FAKE_ENGINE), and a test
// process that dies while its engine runs (FAKE_TEST). Each process of a play leaves a file named
// by its number in FAKE_PIDS.
func TestMain(m *testing.M) {
	if moods := os.Getenv("FAKE_ENGINE"); moods != "" {
		enlist(cmp.Or(os.Getenv("FAKE_ROLE"), "engine"))
		for mood := range strings.SplitSeq(moods, " ") {
			engine(mood)
		}
		os.Exit(0)
	}
	if os.Getenv("FAKE_TEST") != "" {
		os.Exit(victim(m))
	}
	// More plays than cores may run at once, because they mostly wait.
	flag.Parse()
	must(flag.Set("test.parallel", "8"))
	os.Exit(m.Run())
}

// enlist registers this process, and the watchdog, which is the engine's parent.
func enlist(role string) {
	dir := os.Getenv("FAKE_PIDS")
	note := func(pid int, role string) {
		must(os.WriteFile(filepath.Join(dir, strconv.Itoa(pid)), []byte(role), 0o600))
	}
	note(os.Getpid(), role)
	if role == "engine" {
		note(os.Getppid(), "watchdog")
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

// engine does one thing that an engine might do.
func engine(mood string) {
	name, arg, _ := strings.Cut(mood, ":")
	n, _ := strconv.Atoi(arg)
	progress := func() *os.File {
		fd, err := strconv.Atoi(os.Getenv("PARITY_PROGRESS_FD"))
		must(err)
		return os.NewFile(uintptr(fd), "progress")
	}
	switch name {
	case "exit":
		os.Exit(n)
	case "say":
		fmt.Println(arg)
	case "env":
		fmt.Println(os.Getenv(arg))
	case "progress":
		fmt.Fprintln(progress(), arg)
	case "slowly": // n lines in pieces
		for i := range n {
			fmt.Fprintf(progress(), "li")
			time.Sleep(10 * time.Millisecond)
			fmt.Fprintf(progress(), "ne %d\n", i)
		}
	case "quickly": // n lines, more than a pipe holds
		w := progress()
		for i := range n {
			_, err := fmt.Fprintf(w, "line %d %s\n", i, strings.Repeat("x", 100))
			must(err)
		}
	case "long": // a line of n bytes and a short one
		fmt.Fprintf(progress(), "%s\nafter\n", strings.Repeat("x", n))
	case "pad": // a line of n bytes, not ended
		fmt.Print(strings.Repeat("x", n))
	case "bar": // what a progress bar draws
		fmt.Print(" 10%\r 50%\r100%\r\n")
	case "flood": // n lines on both streams
		for i := range n {
			fmt.Fprintln([]*os.File{os.Stdout, os.Stderr}[i%2], "line", i, strings.Repeat("x", 100))
		}
	case "die": // in a shell, since Go does not die by every signal; without a core file
		must(syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -" + arg + " $$"}, os.Environ()))
	case "deaf":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	case "polite": // ends with code 0 on SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		engine("progress:ready")
		<-c
		fmt.Println("good bye")
		os.Exit(0)
	case "mute": // closes its inherited pipes and files
		for fd := range 4 {
			syscall.Close(fd)
		}
	case "child", "deafchild": // inherits all pipes and files
		moods := "progress:child " + map[string]string{"child": "", "deafchild": "deaf "}[name] + "enlisted hang"
		cmd := exec.Command(os.Args[0])
		cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{progress()}
		cmd.Env = append(os.Environ(), "FAKE_ENGINE="+moods, "FAKE_ROLE="+name, "PARITY_PROGRESS_FD=3")
		must(cmd.Start())
		must(eventually(func() bool {
			return exists(filepath.Join(os.Getenv("FAKE_PIDS"), "ready-"+strconv.Itoa(cmd.Process.Pid)))
		}))
	case "daemon": // leaves its group and session; its parent is dead and knows nothing of it
		forked("orphan")
	case "orphan":
		forked("deaf mute enlisted hang")
	case "hopper": // a chain of processes, each in a session of its own, that do not live long enough to be found
		hop := filepath.Join(os.Getenv("FAKE_PIDS"), "hop.sh")
		must(os.WriteFile(hop, []byte("#!/bin/sh\ntrap '' TERM\nexec >/dev/null 2>&1 3>&-\nsetsid \"$0\" &\n"), 0o700))
		must(exec.Command(hop).Run())
	case "enlisted":
		must(os.WriteFile(filepath.Join(os.Getenv("FAKE_PIDS"), "ready-"+strconv.Itoa(os.Getpid())), nil, 0o600))
	case "hang":
		time.Sleep(5 * time.Minute)
		os.Exit(98)
	default:
		must(fmt.Errorf("no mood %q", mood))
	}
}

// forked starts this program in a session of its own, and waits until it has done its moods or is
// enlisted.
func forked(moods string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FAKE_ENGINE="+moods, "FAKE_ROLE=daemon")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(cmd.Start())
	if moods == "orphan" {
		must(cmd.Wait())
		return
	}
	must(eventually(func() bool {
		return exists(filepath.Join(os.Getenv("FAKE_PIDS"), "ready-"+strconv.Itoa(cmd.Process.Pid)))
	}))
}

// victim is a test process whose engine is started before the tests, so that the alarm of a short
// -timeout does not come first.
func victim(m *testing.M) int {
	enlist("test")
	how := os.Getenv("FAKE_TEST")
	ctx, stop := context.Background(), func() {}
	if how == "signals" || how == "patient" {
		ctx, stop = supervise.Signals(ctx)
	}
	if how == "tempdir" {
		_, _, err := supervise.TempDir(os.Getenv("FAKE_PIDS"), "parity-test-")
		must(err)
	}
	if how == "lock" {
		_, err := supervise.Lock(ctx, "device", nil)
		must(err)
	}
	c := supervise.Command{Path: os.Args[0], LogFile: os.DevNull,
		Env: append(os.Environ(), "FAKE_TEST=", "FAKE_ENGINE="+os.Getenv("FAKE_MOODS")), Grace: time.Second}
	if how == "patient" {
		c.Grace = time.Minute
	}
	ready := make(chan bool, 1)
	c.Progress = func(line []byte) {
		if string(line) == "ready" {
			ready <- true
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- supervise.Run(ctx, c) }()
	select {
	case <-ready:
	case err := <-ended:
		must(fmt.Errorf("the engine ended: %w", err))
	}
	must(os.WriteFile(filepath.Join(os.Getenv("FAKE_PIDS"), "ready"), nil, 0o600))
	if how != "waits" {
		must(eventually(func() bool { return exists(filepath.Join(os.Getenv("FAKE_PIDS"), "die")) }))
	}
	if how == "signals" || how == "patient" || how == "waits" {
		fmt.Println(<-ended)
		stop()
		return 97
	}
	return m.Run()
}

// TestVictim is the test in which a fake test process dies.
func TestVictim(t *testing.T) {
	switch os.Getenv("FAKE_TEST") {
	case "":
		t.Skip("only in a process of TestNothingOutlivesTheTest")
	case "panic":
		panic("on purpose")
	case "exit":
		os.Exit(5)
	case "fail":
		t.Fatal("on purpose")
	default:
		time.Sleep(5 * time.Minute)
	}
}

// play is a set of fake processes.
type play struct {
	t   *testing.T
	dir string
}

func newPlay(t *testing.T) *play {
	p := &play{t, t.TempDir()}
	t.Cleanup(func() {
		// Not the watchdogs: if the group is wrong, its leader is another process.
		for pid, role := range p.cast() {
			if t.Failed() && role != "watchdog" && alive(pid) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return p
}

// die lets the test process go on to its death.
func (p *play) die() {
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, "die"), nil, 0o600))
}

// env returns the environment of the processes of the play.
func (p *play) env(more ...string) []string {
	return append([]string{"FAKE_PIDS=" + p.dir, "HOME=" + p.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + p.dir,
		"PARITY_LOCK_DIR=" + p.dir}, more...)
}

// command returns an engine that does these things and then ends.
func (p *play) command(moods ...string) supervise.Command {
	return supervise.Command{Path: os.Args[0], Env: p.env("FAKE_ENGINE=" + strings.Join(moods, " ")),
		LogFile: filepath.Join(p.dir, "log")}
}

// cast returns the role of each process that took part.
func (p *play) cast() map[int]string {
	cast := map[int]string{}
	entries, err := os.ReadDir(p.dir)
	require.NoError(p.t, err)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			role, _ := os.ReadFile(filepath.Join(p.dir, e.Name()))
			cast[pid] = string(role)
		}
	}
	return cast
}

// gone requires that n processes took part and that soon none of them is alive.
func (p *play) gone(n int) {
	p.t.Helper()
	cast := p.cast()
	require.Len(p.t, cast, n, "processes that took part")
	for pid, role := range cast {
		require.NoError(p.t, eventually(func() bool { return !alive(pid) }), "the %s, process %d, is alive", role, pid)
	}
}

// eventually waits for something that takes a second or two, but may take longer on a busy machine.
func eventually(ok func() bool) error {
	for range 400 {
		if ok() {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("not within 20 s")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// alive reports whether a process runs. A dead process that its parent has not yet waited for does
// not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !exists("/proc/self/stat") // a system without /proc, or it has just ended
	}
	state := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	return !strings.HasPrefix(state, " Z") && !strings.HasPrefix(state, " X")
}
