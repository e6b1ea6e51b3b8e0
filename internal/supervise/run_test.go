//go:build unix

package supervise_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/supervise"
)

func TestHowAnEngineEnds(t *testing.T) {
	for _, c := range []struct {
		moods   string
		took    int // processes, with the watchdog
		code    int
		signal  string
		message []string
		tail    []string
		reason  string
	}{
		{"exit:0", 2, 0, "", nil, nil, "success"},
		{"say:x exit:3", 2, 3, "", []string{"exited with code 3", "last line of its log: x", "(log: "}, []string{"x"},
			"a failure has its code, log and last line"},
		{"exit:1", 2, 1, "", []string{"exited with code 1 (log: "}, nil, "an empty log has no tail"},
		{"progress:compile say:x die:11", 2, 139, "SIGSEGV", []string{"died by SIGSEGV", "last progress: compile"},
			[]string{"x"}, "a crash names its signal and phase"},
		{"die:9", 2, 137, "SIGKILL", []string{"killed from outside", "memory"}, nil,
			"the system's way to say that memory ran out"},
		{"deafchild exit:0", 3, 0, "", nil, nil,
			"a descendant that holds the log does not delay Run, nor does it live on"},
		{"deafchild say:x exit:3", 3, 3, "", []string{"exited with code 3"}, []string{"x"}, "the same after a failure"},
		{"child child deafchild exit:0", 5, 0, "", nil, nil, "several descendants"},
		{"mute exit:4", 2, 4, "", []string{"exited with code 4"}, nil, "Run waits for the exit, not for the pipes"},
		{"pad:200000 exit:1", 2, 1, "", nil, []string{strings.Repeat("x", 64<<10)}, "one endless line is cut"},
		{"pad:200000 say:y say:z exit:1", 2, 1, "", nil, []string{"z"}, "a line that is cut is left out if there is another"},
		{"bar: say:z exit:1", 2, 1, "", nil, []string{"100%", "z"}, "the last state of a progress bar"},
		{"say:\xff\xfez exit:1", 2, 1, "", nil, []string{"\uFFFDz"}, "no text"},
	} {
		t.Run(strings.ReplaceAll(c.moods, " ", ","), func(t *testing.T) {
			t.Parallel()
			p := newPlay(t)
			err := supervise.Run(t.Context(), p.command(strings.Split(c.moods, " ")...))
			for pid, role := range p.cast() {
				assert.False(t, alive(pid), "%s: the %s is alive after Run", c.reason, role)
			}
			p.gone(c.took)
			if c.code == 0 {
				require.NoError(t, err, c.reason)
				return
			}
			var exit *supervise.ExitError
			require.ErrorAs(t, err, &exit, c.reason)
			assert.Equal(t, c.code, exit.Code, c.reason)
			assert.Equal(t, c.signal, exit.Signal, c.reason)
			assert.Equal(t, c.tail, exit.Tail, c.reason)
			assert.Less(t, len(exit.Error()), 1000, c.reason)
			for _, m := range c.message {
				assert.ErrorContains(t, err, m, c.reason)
			}
		})
	}
}

// stopped runs an engine until it says "ready", and then ends its context.
func stopped(t *testing.T, p *play, deadline bool, grace time.Duration, moods ...string) error {
	t.Helper()
	c := p.command(moods...)
	c.Grace = grace
	ctx, cancel := context.WithCancelCause(t.Context())
	if deadline {
		// The deadline passes when the engine is ready, however busy the machine is.
		ctx = &manualDeadline{ctx}
	}
	c.Progress = func(line []byte) {
		if string(line) == "ready" {
			cancel(errors.New("the test is over"))
		}
	}
	return supervise.Run(ctx, c)
}

// manualDeadline is a context whose deadline passes when it is cancelled.
type manualDeadline struct{ context.Context }

func (m *manualDeadline) Err() error {
	if m.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

func TestHowAnEngineIsStopped(t *testing.T) {
	for _, c := range []struct {
		moods    string
		took     int
		deadline bool
		tail     []string
		reason   string
	}{
		{"polite", 2, true, []string{"good bye"}, "it ends with code 0, but its work is not done"},
		{"progress:ready hang", 2, true, nil, "it dies by SIGTERM"},
		{"deaf say:x progress:ready hang", 2, true, []string{"x"}, "it ignores SIGTERM"},
		{"deafchild deaf progress:ready hang", 3, true, nil, "all ignore SIGTERM"},
		{"deafchild progress:ready hang", 3, true, nil, "only a descendant ignores SIGTERM"},
		{"deafchild progress:ready mute hang", 3, true, nil, "it holds no pipe"},
		{"deafchild progress:ready hang", 3, false, nil, "cancelled, not late"},
	} {
		t.Run(strings.ReplaceAll(c.moods, " ", ","), func(t *testing.T) {
			t.Parallel()
			p := newPlay(t)
			err := stopped(t, p, c.deadline, 300*time.Millisecond, strings.Split(c.moods, " ")...)
			p.gone(c.took)
			assert.ErrorContains(t, err, "the test is over", c.reason)
			var late *supervise.ExitError
			if !c.deadline {
				assert.ErrorIs(t, err, context.Canceled, c.reason)
				assert.False(t, errors.As(err, &late), c.reason)
				return
			}
			require.ErrorAs(t, err, &late, c.reason)
			assert.ErrorIs(t, err, context.DeadlineExceeded, c.reason)
			assert.Equal(t, "ready", late.Progress, "the phase")
			assert.ErrorContains(t, err, "last progress: ready", c.reason)
			assert.Equal(t, c.tail, late.Tail, c.reason)
		})
	}
}

func TestAContextThatIsDoneStartsNothing(t *testing.T) {
	p := newPlay(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, supervise.Run(ctx, p.command("exit:0")), context.Canceled)
	ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	assert.ErrorIs(t, supervise.Run(ctx, p.command("exit:0")), context.DeadlineExceeded)
	assert.Empty(t, p.cast())
}

func TestWhatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("hello\n"), 0o644))
	for _, c := range []struct {
		command supervise.Command
		message string
		reason  string
	}{
		{supervise.Command{Path: "goparity-no-such-program"}, "not found in $PATH: want a program in PATH", "not in PATH"},
		{supervise.Command{Path: filepath.Join(dir, "none")}, "no such file", "a full path"},
		{supervise.Command{Path: plain}, "permission denied: want", "not executable"},
		{supervise.Command{Path: os.Args[0], Dir: filepath.Join(dir, "none")}, "its working folder",
			"a missing folder is not a missing program"},
		{supervise.Command{Path: os.Args[0], LogFile: filepath.Join(dir, "none", "log")}, "its log",
			"the log's folder is missing"},
	} {
		c.command.LogFile = cmp.Or(c.command.LogFile, filepath.Join(t.TempDir(), "log"))
		err := supervise.Run(t.Context(), c.command)
		var start *supervise.StartError
		require.ErrorAs(t, err, &start, c.reason)
		assert.ErrorContains(t, err, c.message, c.reason)
		assert.ErrorContains(t, err, c.command.Path, c.reason)
	}
}

func TestProgressComesLineByLine(t *testing.T) {
	for _, c := range []struct {
		moods       string
		lines       int
		first, last string
		reason      string
	}{
		{"slowly:5", 5, "line 0", "line 4", "pieces make a line"},
		{"quickly:3000", 3000, "line 0 " + strings.Repeat("x", 100), "line 2999 " + strings.Repeat("x", 100),
			"none is lost, not even the last"},
		{"long:300000", 2, strings.Repeat("x", 64<<10), "after",
			"a line that is too long is cut, and the next one is whole"},
	} {
		t.Run(c.moods, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t)
			cmd := p.command(c.moods)
			var lines []string
			cmd.Progress = func(line []byte) { lines = append(lines, string(line)) }
			require.NoError(t, supervise.Run(t.Context(), cmd))
			require.Len(t, lines, c.lines, c.reason)
			assert.Equal(t, c.first, lines[0], c.reason)
			assert.Equal(t, c.last, lines[len(lines)-1], c.reason)
		})
	}
}

func TestTheTailIsShort(t *testing.T) {
	p := newPlay(t)
	var exit *supervise.ExitError
	require.ErrorAs(t, supervise.Run(t.Context(), p.command("flood:20000", "exit:1")), &exit)
	require.Len(t, exit.Tail, 200)
	assert.Equal(t, "line 19999 "+strings.Repeat("x", 100), exit.Tail[199])
	log, err := os.ReadFile(filepath.Join(p.dir, "log"))
	require.NoError(t, err)
	assert.Equal(t, 20000, strings.Count(string(log), "\n"), "the log has all lines")
	assert.Less(t, len(exit.Error()), 1000)
}

// What is long is cut, and the last line that says something is told.
func TestExitErrorSays(t *testing.T) {
	long := strings.Repeat("p", 300)
	for want, e := range map[string]*supervise.ExitError{
		"x exited with code 3; last line of its log: a (log: l)":         {Code: 3, LogFile: "l", Tail: []string{" a\t", " "}},
		"x died by SIGSEGV; last progress: " + long + " (log: l)":        {Code: 139, Signal: "SIGSEGV", Progress: long, LogFile: "l"},
		"x exited with code 1; last progress: " + long + "… (log: l)":    {Code: 1, Progress: long + "p", LogFile: "l"},
		"x was stopped after 1.23s: " + context.DeadlineExceeded.Error(): {After: 1234 * time.Millisecond, Err: context.DeadlineExceeded},
	} {
		e.Name = "x"
		assert.EqualError(t, e, "supervise: "+want)
	}
}

func TestSecretsDoNotLeaveTheEngine(t *testing.T) {
	p := newPlay(t)
	c := p.command("say:before", "env:TOKEN", "progress:very-secret-word", "exit:1")
	c.Env = append(c.Env, "TOKEN=very-secret-word")
	c.Secrets = sanitize.SecretsOf(c.Env)
	err := supervise.Run(t.Context(), c)
	var exit *supervise.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, []string{"before", "****************"}, exit.Tail)
	assert.Equal(t, "***", exit.Progress)
	log, readErr := os.ReadFile(c.LogFile)
	require.NoError(t, readErr)
	assert.NotContains(t, fmt.Sprintf("%v %s", err, log), "very-secret")
}

func TestTheEnvironmentIsComplete(t *testing.T) {
	t.Setenv("GOPARITY_OURS", "seen")
	p := newPlay(t)
	var exit *supervise.ExitError
	require.ErrorAs(t, supervise.Run(t.Context(),
		p.command("say:a", "env:GOPARITY_OURS", "env:PARITY_WATCHDOG", "say:b", "exit:1")), &exit)
	assert.Equal(t, []string{"a", "", "", "b"}, exit.Tail)
}
