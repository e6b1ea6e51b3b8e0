//go:build unix

package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
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
		{file, "", "gpu", "not a directory: set PARITY_LOCK_DIR to a local folder that can be written", "a file instead of a folder"},
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
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = supervise.Lock(ctx, "../../x", nil)
	assert.EqualError(t, err, "supervise: lock ../../x: context canceled", "the folder is not to blame")
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

// Holders that remove the file, and its folder, keep others off all the same.
func TestHoldersRemoveTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "lock")
	var inside, rounds atomic.Int32 // the race detector knows no locks of files
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				unlock, err := supervise.LockFile(t.Context(), path, nil)
				if !assert.NoError(t, err) {
					return
				}
				assert.EqualValues(t, 1, inside.Add(1))
				rounds.Add(1)
				inside.Add(-1)
				assert.NoError(t, os.Remove(path))
				unlock()
				unlock()
				os.Remove(filepath.Dir(path)) // fails where another one has made its file
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 4*50, rounds.Load())
}

func TestWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := supervise.LockFile(t.Context(), path, func(string) { t.Error("no one holds it") })
	require.NoError(t, err)
	gone := errors.New("the user went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	var told []string
	_, err = supervise.LockFile(ctx, path, func(holder string) { told = append(told, holder); cancel(gone) })
	require.ErrorIs(t, err, gone)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, told, 1)
	assert.Contains(t, told[0], fmt.Sprintf("pid %d, %s", os.Getpid(), os.Args[0]))
	assert.ErrorContains(t, err, "held by "+told[0]+" ("+path+"), after waiting for ")
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err = supervise.LockFile(ctx, path, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded, "no one is told")
	unlock()
	unlock, err = supervise.LockFile(t.Context(), path, nil)
	require.NoError(t, err)
	unlock()
	_, err = supervise.LockFile(t.Context(), filepath.Join(path, "below", "a", "file"), nil)
	assert.Error(t, err)
}
