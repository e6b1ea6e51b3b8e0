package engine_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/supervise"
)

// A program does not wait for the CPU that an engine of another test uses; torch and MAX do, unless
// the lock is off. Whoever waits says for whom, how long that one has had it, and how not to.
func TestWhoWaitsForTheCPU(t *testing.T) {
	for _, c := range []struct {
		engine, lock string
		waits        bool
		reason       string
	}{
		{engine.Command, "", false, "any program"},
		{engine.Torch, "", true, "torch takes all cores"},
		{engine.MAX, "on", true, "so does MAX"},
		{engine.Torch, "off", false, "the user knows better"},
	} {
		t.Run(c.engine+","+c.lock, func(t *testing.T) {
			t.Setenv("PARITY_LOCK_DIR", t.TempDir())
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("PARITY_LOCK", c.lock)
			unlock, err := supervise.Lock(t.Context(), "cpu:0", nil)
			require.NoError(t, err)
			defer unlock()
			j, opt := job(t), fake(t, "good")
			j.Engine, j.Device = c.engine, engine.CPU
			if c.engine != engine.Command {
				opt.Python, opt.Program = opt.Program[0], nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			said := ""
			r, err := engine.RunOnDevice(ctx, j, opt, func(line string) {
				said += line + "\n"
				if strings.Contains(line, "waits for") {
					unlock()
				}
			})
			require.NoError(t, err, c.reason)
			require.NoError(t, r.Close())
			if !c.waits {
				assert.Empty(t, said, c.reason)
				return
			}
			assert.Regexp(t, `waits for the cpu, which pid \d+, .*, since \S+ uses; 1m0s are left until the deadline of `+
				`this test \(PARITY_LOCK=off does not wait\)`, said, c.reason)
			assert.Contains(t, said, "were spent waiting for the cpu", c.reason)
		})
	}
}

// A deadline that passes while an engine waits says so, and so does one that passes later.
func TestWaitingIsNoSilentLossOfTime(t *testing.T) {
	t.Setenv("PARITY_LOCK_DIR", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	unlock, err := supervise.Lock(t.Context(), "cpu:0", nil)
	require.NoError(t, err)
	defer unlock()
	j, opt := job(t), fake(t, "good")
	j.Engine, opt.Python, opt.Program = engine.Torch, opt.Program[0], nil
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = engine.RunOnDevice(ctx, j, opt, func(string) {})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "after waiting for ")
	assert.ErrorContains(t, err, os.Args[0])
	assert.ErrorContains(t, err, "PARITY_LOCK=off does not wait")

	opt = fake(t, "hang")
	opt.Python, opt.Program = opt.Program[0], nil
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = engine.RunOnDevice(ctx, j, opt, func(string) { unlock() })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "before that, ")
	assert.ErrorContains(t, err, "were spent waiting for the cpu, held by pid ")

	t.Setenv("PARITY_LOCK", "of")
	_, err = engine.RunOnDevice(t.Context(), j, opt, func(string) {})
	assert.ErrorContains(t, err, `PARITY_LOCK is "of": want on or off`)
}
