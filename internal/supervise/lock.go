package supervise

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goparity/goparity/internal/flock"
)

// Lock keeps other processes of this user off a device until unlock is called, or until this
// process and the programs it runs are dead: their watchdogs inherit the lock. name says what to lock, "gpu:0"; the lock is a file of
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
	return l.Unlock, nil
}

// fit makes a name one of a file.
var fit = strings.NewReplacer(":", "_", "/", "_", `\`, "_")

// lockPath returns the file of a lock, and makes its folder.
func lockPath(name string) (string, error) {
	dir := os.Getenv("PARITY_LOCK_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w: set PARITY_LOCK_DIR", err)
		}
		dir = filepath.Join(cache, "goparity")
	}
	return filepath.Join(dir, fit.Replace(name)+".lock"), os.MkdirAll(dir, 0o755)
}
