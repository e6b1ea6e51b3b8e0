//go:build unix

package supervise_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/supervise"
)

func TestLockErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		dir, home, name, message, reason string
	}{
		{file, "", "gpu", "file", "a file instead of a folder"},
		{"", "", "gpu", "PARITY_LOCK_DIR", "no home, no cache folder"},
	} {
		t.Setenv("PARITY_LOCK_DIR", c.dir)
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_CACHE_HOME", "")
		_, err := supervise.Lock(t.Context(), c.name, nil)
		assert.ErrorContains(t, err, c.message, c.reason)
	}
	t.Setenv("PARITY_LOCK_DIR", t.TempDir())
	unlock, err := supervise.Lock(t.Context(), "../../x", nil)
	require.NoError(t, err)
	unlock()
	assert.FileExists(t, filepath.Join(os.Getenv("PARITY_LOCK_DIR"), ".._.._x.lock"), "no name leads out of the folder")
}

// The lock of a killed process is free only when its engine is dead too.
func TestALockIsHeldUntilTheEngineIsDead(t *testing.T) {
	p := newPlay(t)
	t.Setenv("PARITY_LOCK_DIR", p.dir)
	cmd, _ := p.start("lock", "deafchild deaf progress:ready hang", nil, nil)
	cast := p.cast()
	require.Len(t, cast, 4)
	unlock, err := supervise.Lock(t.Context(), "device", func(holder string) {
		assert.Contains(t, holder, "pid "+strconv.Itoa(cmd.Process.Pid))
		require.NoError(t, syscall.Kill(cmd.Process.Pid, syscall.SIGKILL))
		cmd.Wait()
	})
	require.NoError(t, err)
	defer unlock()
	for pid, role := range cast {
		// One signal ends them all, and the lock with the watchdog. The others may end a moment
		// later, but they would live for a second longer if the lock had been freed by the death of
		// the test.
		for i := 0; i < 300 && alive(pid); i++ {
			time.Sleep(time.Millisecond)
		}
		assert.False(t, alive(pid), "the %s still has the device", role)
	}
	p.gone(4)
}
