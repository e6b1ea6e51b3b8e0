//go:build unix

package flock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/flock"
)

// Holders that remove the file, and its folder, keep others off all the same.
func TestHoldersRemoveTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "lock")
	var inside, rounds atomic.Int32 // the race detector knows no locks of files
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				l, err := flock.Acquire(t.Context(), path, nil)
				if !assert.NoError(t, err) {
					return
				}
				assert.EqualValues(t, 1, inside.Add(1))
				rounds.Add(1)
				inside.Add(-1)
				assert.NoError(t, os.Remove(path))
				l.Unlock()
				l.Unlock()
				os.Remove(filepath.Dir(path)) // fails where another one has made its file
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 4*50, rounds.Load())
}

func TestWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := flock.Acquire(t.Context(), path, func(string) { t.Error("no one holds it") })
	require.NoError(t, err)
	gone := errors.New("the user went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	var told []string
	_, err = flock.Acquire(ctx, path, func(holder string) { told = append(told, holder); cancel(gone) })
	require.ErrorIs(t, err, gone)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, told, 1)
	assert.Contains(t, told[0], fmt.Sprintf("pid %d, %s", os.Getpid(), os.Args[0]))
	assert.ErrorContains(t, err, told[0])
	l.Unlock()
	l, err = flock.Acquire(t.Context(), path, nil)
	require.NoError(t, err)
	l.Unlock()
	_, err = flock.Acquire(t.Context(), filepath.Join(path, "below", "a", "file"), nil)
	assert.Error(t, err)
}
