// Package flock locks files, so that one process at a time does something. The locks are the
// operating system's: that of a process which was killed is free.
package flock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/sanitize"
)

// poll is how often Take tries to get a lock that another process holds.
const poll = 20 * time.Millisecond

// tell is how often Take says again for whom it waits.
const tell = 30 * time.Second

// Lock is a lock that this process holds, and with it the processes that it starts from then on, until
// Unlock.
type Lock struct {
	file *os.File
	undo func() // of what they inherit
	once sync.Once
}

// Acquire locks the file path, which it makes if there is none, and its folder too. The file says who
// holds the lock. Whoever removes it must hold the lock: Acquire makes sure that the file which it
// locked is the one that others will find.
//
// If another process holds the lock, waiting is called with its number, its command and since when
// it holds the lock, at first, whenever the holder changes, and each half minute. waiting may be
// nil. Acquire waits until it has the lock or ctx is done; in that case the error names the holder and
// how long Acquire waited, and wraps the cause of ctx. On systems without locks the error is
// [errors.ErrUnsupported].
func Acquire(ctx context.Context, path string, waiting func(holder string)) (*Lock, error) {
	began, told, last := time.Now(), time.Time{}, ""
	for {
		if ctx.Err() != nil {
			err := context.Cause(ctx)
			if !errors.Is(err, ctx.Err()) {
				err = fmt.Errorf("%w: %w", err, ctx.Err())
			}
			if last != "" {
				err = fmt.Errorf("held by %s (%s), after waiting for %s: %w", last, path,
					time.Since(began).Round(100*time.Millisecond), err)
			}
			return nil, err
		}
		f, busy, err := try(path)
		switch {
		case err != nil:
			return nil, err
		case f != nil:
			// The lock is valid without this text, so errors do not matter.
			f.Truncate(0)
			f.WriteAt(fmt.Appendf(nil, "pid %d, %.300s, since %s", os.Getpid(),
				sanitize.SecretsOf(os.Environ()).Redact(strings.Join(os.Args, " ")), time.Now().UTC().Format(time.RFC3339)), 0)
			return &Lock{file: f, undo: bequeath(f)}, nil
		case !busy:
			continue
		}
		if h := holder(path); h != last || time.Since(told) > tell {
			last, told = h, time.Now()
			if waiting != nil {
				waiting(h)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

// try returns the locked file, or whether another process holds the lock. With neither, the file
// was removed before it was locked.
func try(path string) (f *os.File, busy bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		if st, gone := os.Lstat(filepath.Dir(path)); errors.Is(err, fs.ErrExist) && (gone != nil || st.IsDir()) {
			return nil, false, nil // another process removed the folder, or made it
		}
		return nil, false, err
	}
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil // the folder was removed
	}
	if err != nil {
		return nil, false, err
	}
	ok, err := TryLock(f)
	if err != nil || !ok {
		f.Close()
		return nil, err == nil, err
	}
	mine, err1 := f.Stat()
	now, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(mine, now) {
		f.Close()
		return nil, false, nil
	}
	return f, false, nil
}

// Unlock releases the lock, even while a child process has the file open. A second Unlock does
// nothing.
func (l *Lock) Unlock() {
	l.once.Do(func() {
		l.file.Truncate(0)
		unlock(l.file)
		l.undo()
		l.file.Close()
	})
}

// holder returns the process that wrote the file last.
func holder(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "another process"
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 1024))
	if len(text) == 0 {
		return "another process"
	}
	return string(text)
}
