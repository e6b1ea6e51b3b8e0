//go:build unix

package supervise_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/supervise"
)

func TestLockKeepsOthersOff(t *testing.T) {
	t.Setenv("PARITY_LOCK_DIR", filepath.Join(t.TempDir(), "made"))
	inside, most := 0, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			unlock, err := supervise.Lock(t.Context(), "gpu:0", nil)
			if !assert.NoError(t, err) {
				return
			}
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			inside--
			mu.Unlock()
			unlock()
			unlock()
		})
	}
	wg.Wait()
	assert.Equal(t, 1, most)
	files, err := os.ReadDir(os.Getenv("PARITY_LOCK_DIR"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	assert.Equal(t, "gpu_0.lock", files[0].Name())
}

func TestLockNamesTheHolder(t *testing.T) {
	t.Setenv("PARITY_LOCK_DIR", t.TempDir())
	unlock, err := supervise.Lock(t.Context(), "gpu", func(string) { t.Error("no one holds it") })
	require.NoError(t, err)
	defer unlock()
	other, err := supervise.Lock(t.Context(), "another", nil)
	require.NoError(t, err, "another name is another lock")
	other()

	ctx, cancel := context.WithCancel(t.Context())
	var holder string
	_, err = supervise.Lock(ctx, "gpu", func(h string) { holder = h; cancel() })
	assert.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, holder, "pid "+strconv.Itoa(os.Getpid())+", "+os.Args[0])
	assert.ErrorContains(t, err, holder)
}

func TestLockErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		dir, home, name, message, reason string
	}{
		{file, "", "gpu", "file", "a file instead of a folder"},
		{"", "", "gpu", "PARITY_LOCK_DIR", "no home, no cache folder"},
		{file, "", "", "no name", "the name is empty"},
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

func TestALockWhoseFileIsRemovedIsNotTakenTwice(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PARITY_LOCK_DIR", dir)
	unlock, err := supervise.Lock(t.Context(), "gpu", nil)
	require.NoError(t, err)
	got := make(chan func(), 1)
	go func() {
		u, err := supervise.Lock(t.Context(), "gpu", nil)
		assert.NoError(t, err)
		got <- u
	}()
	require.NoError(t, os.Remove(filepath.Join(dir, "gpu.lock")))
	u := <-got // the first holder is unknown by now, but the new one holds the file that others see
	unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = supervise.Lock(ctx, "gpu", nil)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	u()
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
