package supervise_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/supervise"
)

// empty requires that soon no process of the play is alive, not even one that took no part in it.
func (p *play) empty(reason string) {
	p.t.Helper()
	var left []int
	if err := eventually(func() bool { left = p.crew(); return len(left) == 0 }); err != nil {
		for _, pid := range left {
			line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
			p.t.Errorf("%s: process %d is alive: %q", reason, pid, strings.ReplaceAll(string(line), "\x00", " "))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// watchdog returns the number of the watchdog.
func (p *play) watchdog() int {
	p.t.Helper()
	for pid, role := range p.cast() {
		if role == "watchdog" {
			return pid
		}
	}
	p.t.Fatal("there is no watchdog")
	return 0
}

func TestADaemonDoesNotOutliveTheEngine(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("the chain of sessions is a script: ", err)
	}
	for _, moods := range []string{"daemon", "daemon daemon deafchild", "hopper", "daemon hopper"} {
		t.Run("end,"+strings.ReplaceAll(moods, " ", ","), func(t *testing.T) {
			t.Parallel()
			p := newPlay(t)
			require.NoError(t, supervise.Run(t.Context(), p.command(strings.Split(moods, " ")...)))
			assert.Empty(t, p.crew(), "alive after Run")
			if strings.Contains(moods, "daemon") {
				assert.Contains(t, roles(p), "daemon", "it was there")
			}
		})
		t.Run("stop,"+strings.ReplaceAll(moods, " ", ","), func(t *testing.T) {
			t.Parallel()
			p := newPlay(t)
			err := stopped(t, p, true, 300*time.Millisecond, strings.Split("deaf "+moods+" progress:ready hang", " ")...)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Empty(t, p.crew(), "alive after Run")
		})
		for _, c := range []struct {
			victim string
			signal syscall.Signal
			reason string
		}{
			{"test", syscall.SIGKILL, "the hardest death"},
			{"test", syscall.SIGTERM, "how CI cancels"},
			{"engine", syscall.SIGKILL, "as the system does when memory runs out"},
		} {
			t.Run(c.victim+","+c.signal.String()+","+strings.ReplaceAll(moods, " ", ","), func(t *testing.T) {
				t.Parallel()
				p := newPlay(t)
				how := "waits"
				if c.victim == "test" {
					how = "hang"
				}
				cmd, _ := p.start(how, "deaf "+moods+" progress:ready hang", nil, nil)
				for pid, role := range p.cast() {
					if role == c.victim {
						require.NoError(t, syscall.Kill(pid, c.signal))
					}
				}
				cmd.Wait()
				p.empty(c.reason)
			})
		}
	}
}

func roles(p *play) (roles []string) {
	for _, role := range p.cast() {
		roles = append(roles, role)
	}
	return roles
}

// A watchdog that was stopped does not keep Run waiting.
func TestAStoppedWatchdog(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	c := p.command("progress:ready", "hang")
	c.Grace = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = func(line []byte) {
		if string(line) == "ready" {
			assert.NoError(t, syscall.Kill(p.watchdog(), syscall.SIGSTOP))
			cancel()
		}
	}
	assert.ErrorIs(t, supervise.Run(ctx, c), context.Canceled)
	assert.Empty(t, p.crew(), "alive after Run")
}

// What a killed process and its killed watchdog left is removed by the next process.
func TestTempDir(t *testing.T) {
	p := newPlay(t)
	cmd, _ := p.start("tempdir", "deaf progress:ready hang", nil, nil)
	folder := func() []string {
		found, err := filepath.Glob(filepath.Join(p.dir, "parity-test-*"))
		require.NoError(t, err)
		return found
	}
	require.Len(t, folder(), 1)
	theirs := filepath.Join(p.dir, "parity-test-of-another")
	require.NoError(t, os.Mkdir(theirs, 0o700))
	mine, remove, err := supervise.TempDir(p.dir, "parity-test-")
	require.NoError(t, err)
	assert.Len(t, folder(), 3, "that of a process that lives stays, and one without an owner")

	require.NoError(t, syscall.Kill(p.watchdog(), syscall.SIGSTOP)) // so that it does not act before it dies
	require.NoError(t, cmd.Process.Kill())
	require.NoError(t, syscall.Kill(p.watchdog(), syscall.SIGKILL))
	cmd.Wait()
	require.NoError(t, eventually(func() bool { // its threads hold files until the last is dead
		tasks, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(p.watchdog()), "task"))
		return !alive(p.watchdog()) && len(tasks) < 2
	}))
	other, removeOther, err := supervise.TempDir(p.dir, "parity-test-")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{theirs, mine, other}, folder())
	require.NoError(t, remove())
	require.NoError(t, removeOther())
	assert.Equal(t, []string{theirs}, folder())
}
