package supervise

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

// Lock keeps other processes of this user off a device until unlock is called, or until this
// process and the programs it runs are dead: their watchdogs inherit the lock. name says what to
// lock, "gpu:0"; the lock is a file of that name in PARITY_LOCK_DIR, or else in the folder goparity
// in the user's cache folder. It waits as [LockFile] does.
func Lock(ctx context.Context, name string, waiting func(holder string)) (unlock func(), err error) {
	path, err := lockPath(name)
	if err == nil {
		unlock, err = LockFile(ctx, path, waiting)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: set PARITY_LOCK_DIR to a local folder that can be written", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("supervise: lock %s: %w", name, err)
	}
	return unlock, nil
}

// fit makes a name one of a file.
var fit = strings.NewReplacer(":", "_", "/", "_", `\`, "_")

// lockPath returns the file of a lock.
func lockPath(name string) (string, error) {
	dir := os.Getenv("PARITY_LOCK_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w: set PARITY_LOCK_DIR", err)
		}
		dir = filepath.Join(cache, "goparity")
	}
	return filepath.Join(dir, fit.Replace(name)+".lock"), nil
}

// LockFile locks the file path, which it makes if there is none, and its folder too, so that one
// process at a time does something. The lock is the operating system's: that of a process which was
// killed, with those that it started, is free. The file says who holds the lock. Whoever removes it
// must hold the lock: LockFile makes sure that the file which it locked is the one that others will
// find. A second unlock does nothing.
//
// If another process holds the lock, waiting is called with its number, its command and since when
// it holds the lock, at first, whenever the holder changes, and each half minute. waiting may be
// nil. LockFile waits until it has the lock or ctx is done; in that case the error names the holder
// and how long LockFile waited, and wraps the cause of ctx. On systems without locks the error is
// [errors.ErrUnsupported].
func LockFile(ctx context.Context, path string, waiting func(holder string)) (unlock func(), err error) {
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
		f, busy, err := openLocked(path)
		switch {
		case err != nil:
			return nil, err
		case f != nil:
			// The lock is valid without this text, so errors do not matter.
			f.Truncate(0)
			f.WriteAt(fmt.Appendf(nil, "pid %d, %.300s, since %s", os.Getpid(),
				sanitize.SecretsOf(os.Environ()).Redact(strings.Join(os.Args, " ")), time.Now().UTC().Format(time.RFC3339)), 0)
			undo := bequeath(f)
			return sync.OnceFunc(func() {
				f.Truncate(0)
				unlockFile(f) // even while a child process has the file open
				undo()
				f.Close()
			}), nil
		case !busy:
			continue
		}
		if h := holder(path); h != last || time.Since(told) > lockTell {
			last, told = h, time.Now()
			if waiting != nil {
				waiting(h)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPoll):
		}
	}
}

// openLocked returns the locked file, or whether another process holds the lock. With neither, the
// file was removed before it was locked.
func openLocked(path string) (f *os.File, busy bool, err error) {
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
	ok, err := tryLock(f)
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

// holder returns the process that wrote the file last.
func holder(path string) string {
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		if text, _ := io.ReadAll(io.LimitReader(f, 1024)); len(text) > 0 {
			return string(text)
		}
	}
	return "another process"
}

// ownerFile is in each folder of TempDir: locked while its process or a watchdog of it lives. It is
// empty before that: others leave such a folder alone.
const ownerFile = ".goparity-owner"

// TempDir makes a folder dir/NAME<something>, and returns a function that removes it. dir is the
// system's folder for temporary files if it is empty. The folder of a process that was killed is
// removed by the next process that makes one of the same name.
func TempDir(dir, name string) (path string, remove func() error, err error) {
	if dir == "" {
		dir = os.TempDir()
	}
	found, _ := os.ReadDir(dir)
	for _, e := range found {
		if path := filepath.Join(dir, e.Name()); e.IsDir() && strings.HasPrefix(e.Name(), name) && deadOwner(path) {
			os.RemoveAll(path) // what cannot be removed stays
		}
	}
	if path, err = os.MkdirTemp(dir, name); err != nil {
		return "", nil, err
	}
	unlock, err := LockFile(context.Background(), filepath.Join(path, ownerFile), nil)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("supervise: %w", err), os.RemoveAll(path))
	}
	return path, sync.OnceValue(func() error {
		unlock()
		return os.RemoveAll(path)
	}), nil
}

// deadOwner reports whether the process that made a folder is dead with its watchdogs. A folder that
// TempDir did not make has no owner that could be dead.
func deadOwner(path string) bool {
	name := filepath.Join(path, ownerFile)
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	ok, err := tryLock(f)
	return ok && err == nil
}
