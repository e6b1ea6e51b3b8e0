package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/secret"
)

// lockPoll is how often Lock tries to get a lock that another process holds: a fraction of what
// loading an engine takes.
const lockPoll = 100 * time.Millisecond

// held are the locks of this process. A watchdog inherits them, so that they are released after
// this process dies only when the programs that it ran are dead too.
var held = struct {
	sync.Mutex
	files map[*os.File]bool
}{files: map[*os.File]bool{}}

// lockTell is how often Lock says again for whom it waits.
const lockTell = 30 * time.Second

// Lock keeps other processes of this user off a device until unlock is called, or until this
// process and the programs it runs are dead. name says what to lock, "gpu:0"; the lock is a file of
// that name in PARITY_LOCK_DIR, or else in the folder goparity in the user's cache folder. The file
// stays: it says who holds the lock, and if it were removed, two processes could hold the lock.
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
	began, told := time.Now(), time.Time{}
	holder := ""
	for {
		if ctx.Err() != nil {
			if holder == "" {
				return nil, fmt.Errorf("supervise: lock %s: %w", name, cause(ctx))
			}
			return nil, fmt.Errorf("supervise: lock %s is held by %s (%s), after waiting for %s: %w", name,
				holding(holder), path, short(time.Since(began)), cause(ctx))
		}
		f, err := tryLock(path)
		if err != nil {
			return nil, fmt.Errorf("supervise: lock %s: %w: set PARITY_LOCK_DIR to a local folder that can be written",
				name, err)
		}
		if f != nil {
			return keep(f, fmt.Sprintf("%d %s %s", os.Getpid(), time.Now().UTC().Format(time.RFC3339),
				cut(secret.FromEnv(os.Environ()).Redact(strings.Join(os.Args, " "))))), nil
		}
		if h := holderOf(path); h != holder || time.Since(told) > lockTell {
			holder, told = h, time.Now()
			if waiting != nil {
				waiting(holding(h))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPoll):
		}
	}
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

// tryLock returns the locked file, or nil if another holds the lock.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	ok, err := lockFile(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	// Someone who cleans caches may have removed the file since it was opened. Then this lock would
	// keep no one off.
	mine, err1 := f.Stat()
	now, err2 := os.Stat(path)
	if !ok || err1 != nil || err2 != nil || !os.SameFile(mine, now) {
		f.Close()
		return nil, nil
	}
	return f, nil
}

// keep writes into a locked file who holds it.
func keep(f *os.File, holder string) (unlock func()) {
	// The lock is valid without this text, so errors do not matter.
	f.Truncate(0)
	f.WriteAt([]byte(holder), 0)
	held.Lock()
	held.files[f] = true
	held.Unlock()
	return sync.OnceFunc(func() {
		held.Lock()
		defer held.Unlock()
		delete(held.files, f)
		f.Truncate(0)
		unlockFile(f)
		f.Close()
	})
}

// holderOf returns what the process wrote that locked the file last.
func holderOf(path string) string {
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

// holding says in words who holds a lock and for how long.
func holding(holder string) string {
	pid, rest, _ := strings.Cut(holder, " ")
	since, command, ok := strings.Cut(rest, " ")
	t, err := time.Parse(time.RFC3339, since)
	if !ok || err != nil {
		return holder
	}
	return fmt.Sprintf("pid %s, %s, for %s", pid, command, short(max(0, time.Since(t).Round(time.Second))))
}
