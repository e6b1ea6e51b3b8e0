package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goparity/goparity/internal/flock"
)

// held are the locks of this process. A watchdog inherits them, so that they are released after
// this process dies only when the programs that it ran are dead too.
var held = struct {
	sync.Mutex
	files map[*os.File]bool
}{files: map[*os.File]bool{}}

// Lock keeps other processes of this user off a device until unlock is called, or until this
// process and the programs it runs are dead. name says what to lock, "gpu:0"; the lock is a file of
// that name in PARITY_LOCK_DIR, or else in the folder goparity in the user's cache folder.
//
// If another process holds the lock, waiting is called with its number, its command and since when
// it holds the lock, at first, whenever the holder changes, and each half minute. waiting may be
// nil. Lock waits until it has the lock or ctx is done; in that case the error names the holder and
// how long Lock waited, and wraps the cause of ctx.
func Lock(ctx context.Context, name string, waiting func(holder string)) (unlock func(), err error) {
	path, err := lockPath(name)
	if err != nil {
		return nil, fmt.Errorf("supervise: lock %s: %w", name, err)
	}
	l, err := flock.Acquire(ctx, path, waiting)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("supervise: lock %s: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("supervise: lock %s: %w: set PARITY_LOCK_DIR to a local folder that can be written",
			name, err)
	}
	keep(l.File)
	return func() {
		drop(l.File)
		l.Unlock()
	}, nil
}

// keep hands a locked file on to the watchdogs that are started from now on, until drop.
func keep(f *os.File) {
	held.Lock()
	defer held.Unlock()
	held.files[f] = true
}

func drop(f *os.File) {
	held.Lock()
	defer held.Unlock()
	delete(held.files, f)
}

// lockPath returns the file of a lock, and makes its folder. Characters that are not fit for a file
// name become "_".
func lockPath(name string) (string, error) {
	dir := os.Getenv("PARITY_LOCK_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w: set PARITY_LOCK_DIR", err)
		}
		dir = filepath.Join(cache, "goparity")
	}
	fit := func(r rune) rune {
		if strings.ContainsRune("-_.", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}
	if name == "" {
		return "", errors.New("it has no name")
	}
	return filepath.Join(dir, strings.Map(fit, name)+".lock"), os.MkdirAll(dir, 0o755)
}
