//go:build unix

package supervise_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goparity/goparity/internal/supervise"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hear stops ignoring signals, which are ignored in the background of a script or under nohup. A
// test process would inherit that.
var hear = sync.OnceFunc(func() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
})

// start starts a test process, in a group of its own as a shell would, and waits until its engine
// is ready.
func (p *play) start(how, moods string, args, env []string) (*exec.Cmd, *bytes.Buffer) {
	p.t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestVictim$"}, args...)...)
	cmd.Env = p.env(append(env, "FAKE_TEST="+how, "FAKE_MOODS="+moods)...)
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out // pipes: whoever holds them delays Wait, and would delay go test
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	hear()
	require.NoError(p.t, cmd.Start())
	if err := eventually(func() bool { return exists(filepath.Join(p.dir, "ready")) }); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		require.FailNow(p.t, "the engine was not ready", out.String())
	}
	return cmd, out
}

func TestNothingOutlivesTheTest(t *testing.T) {
	group := func(s syscall.Signal) func(int) error { return func(pid int) error { return syscall.Kill(-pid, s) } }
	alone := func(s syscall.Signal) func(int) error { return func(pid int) error { return syscall.Kill(pid, s) } }
	for _, c := range []struct {
		name, how string
		args      []string
		kill      func(pid int) error
		says      string
		reason    string
	}{
		{"timeout", "hang", []string{"-test.timeout=200ms"}, nil, "panic: test timed out", "the alarm runs no cleanup"},
		{"panic", "panic", nil, nil, "panic: on purpose", "nor does a panic"},
		{"exit", "exit", nil, nil, "", "nor os.Exit"},
		{"fail", "fail", nil, nil, "FAIL", "a test process may end while its engine runs"},
		{"SIGKILL", "hang", nil, alone(syscall.SIGKILL), "", "the hardest death"},
		{"SIGKILL-group", "hang", nil, group(syscall.SIGKILL), "", "the watchdog is not in the test's group"},
		{"SIGQUIT", "hang", nil, alone(syscall.SIGQUIT), "SIGQUIT", "what cmd/go sends when a test hangs"},
		{"Ctrl-C", "hang", nil, group(syscall.SIGINT), "", "the engine is not in the terminal's group"},
		{"SIGTERM", "hang", nil, group(syscall.SIGTERM), "", "how CI cancels"},
		{"SIGHUP", "hang", nil, group(syscall.SIGHUP), "", "the terminal is closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t)
			cmd, out := p.start(c.how, "deafchild child deaf progress:ready hang", c.args, nil)
			cast := p.cast()
			require.Len(t, cast, 5, "test, watchdog, engine and two descendants")
			for pid, role := range cast {
				if role != "test" {
					require.True(t, alive(pid), "the %s runs", role)
				}
			}
			p.die()
			if c.kill != nil {
				require.NoError(t, c.kill(cmd.Process.Pid))
			}
			assert.Error(t, cmd.Wait(), c.reason)
			assert.Contains(t, out.String(), c.says, c.reason)
			p.gone(5)
		})
	}
}

// Nothing is left after if the test is killed between the start of the watchdog and that of the
// engine.
func TestNothingOutlivesATestThatIsKilledEarly(t *testing.T) {
	if !exists("/proc/self/environ") {
		t.Skip("no /proc to find processes that had no time to announce themselves")
	}
	t.Parallel()
	p := newPlay(t)
	for i := range 30 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$")
		cmd.Env = p.env("FAKE_TEST=hang", "FAKE_MOODS=deafchild deaf progress:ready hang")
		require.NoError(t, cmd.Start())
		time.Sleep(time.Duration(i) * 2 * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		cmd.Wait()
	}
	var left []int
	assert.NoError(t, eventually(func() bool { left = p.crew(); return len(left) == 0 }), "alive: %v", &left)
}

// crew returns the living processes that have this play in their environment, which all of them
// inherit.
func (p *play) crew() (crew []int) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(p.t, err)
	for _, name := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		require.NoError(p.t, err)
		if env, err := os.ReadFile(name); err == nil && bytes.Contains(env, []byte("FAKE_PIDS="+p.dir+"\x00")) &&
			alive(pid) {
			crew = append(crew, pid)
		}
	}
	return crew
}

func TestASignalStopsTheEngineAndThenTheTest(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		moods  string
		reason string
	}{
		{syscall.SIGINT, "polite", "the engine says goodbye"},
		{syscall.SIGTERM, "polite", "SIGTERM has the same effect"},
		{syscall.SIGINT, "deafchild deaf progress:ready hang", "the engine must be killed"},
	} {
		t.Run(c.signal.String()+","+c.moods, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t)
			cmd, out := p.start("signals", c.moods, nil, nil)
			p.die()
			require.NoError(t, syscall.Kill(-cmd.Process.Pid, c.signal))
			cmd.Wait()
			w := cmd.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, w.Signaled(), "it raises the signal again: %v\n%s", cmd.ProcessState, out)
			assert.Equal(t, c.signal, w.Signal(), c.reason)
			assert.Contains(t, out.String(), "was stopped: signal: "+c.signal.String(), "Run returned before")
			p.gone(len(p.cast()))
		})
	}
}

func TestASecondSignalDoesNotWait(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	cmd, out := p.start("patient", "deaf progress:ready hang", nil, nil)
	p.die()
	require.NoError(t, syscall.Kill(cmd.Process.Pid, syscall.SIGINT))
	require.NoError(t, eventually(func() bool { // until the first one has arrived, which does not end it
		syscall.Kill(cmd.Process.Pid, syscall.SIGINT)
		return !alive(cmd.Process.Pid)
	}))
	cmd.Wait()
	assert.NotContains(t, out.String(), "was stopped", "Run had no time to return")
	p.gone(3)
}

// A variable set by hand must neither run tests nor kill anything.
func TestTheWatchdogObeysOnlyItsParent(t *testing.T) {
	for _, value := range []string{"", "1", "x y z", "99999999"} {
		t.Run(value, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), "PARITY_WATCHDOG="+value)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, 2, exit.ExitCode())
			assert.Contains(t, string(out), "unset it")
		})
	}
}

func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		ago, timeout, left time.Duration
		reason             string
	}{
		{0, 10 * time.Minute, 10*time.Minute - 11*time.Second, "the grace and a second for the report"},
		{7 * time.Minute, 10 * time.Minute, 3*time.Minute - 11*time.Second, "time that has passed counts"},
		{0, 8 * time.Second, 6 * time.Second, "a short timeout leaves three quarters"},
		{11 * time.Minute, 10 * time.Minute, 0, "too late"},
	} {
		ctx, cancel := supervise.WithDeadline(t.Context(), c.timeout, time.Now().Add(-c.ago))
		d, ok := ctx.Deadline()
		require.True(t, ok, c.reason)
		assert.InDelta(t, c.left.Seconds(), time.Until(d).Seconds(), 2, c.reason)
		cancel()
	}
	ctx, cancel := supervise.WithDeadline(t.Context(), 0, time.Now())
	defer cancel()
	_, limited := ctx.Deadline()
	assert.False(t, limited, "with -timeout 0 there is no alarm")
}

// An engine that ignores SIGTERM is dead before the alarm of a short -timeout, whatever its grace.
func TestADeafEngineUnderAShortTimeout(t *testing.T) {
	p := newPlay(t)
	c := p.command("deaf", "progress:ready", "hang")
	c.Grace = time.Hour
	ctx, cancel := supervise.WithDeadline(t.Context(), 2*time.Second, time.Now())
	defer cancel()
	err := supervise.Run(ctx, c)
	assert.ErrorContains(t, err, "go test -timeout 2s leaves 1.5s for the engine")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	p.gone(2)
}
