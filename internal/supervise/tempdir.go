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

// ownerFile is in each folder of TempDir: locked while its process or a watchdog of it lives. It is empty
// before that: others leave such a folder alone.
const ownerFile = ".goparity-owner"

// TempDir makes a folder dir/NAME<something>, and returns a function that removes it. dir is the
// system's folder for temporary files if it is empty. The folder of a process that was killed is
// removed by the next process that makes one of the same name.
func TempDir(dir, name string) (path string, remove func() error, err error) {
	if dir == "" {
		dir = os.TempDir()
	}
	sweep(dir, name)
	if path, err = os.MkdirTemp(dir, name); err != nil {
		return "", nil, err
	}
	owner, err := flock.Acquire(context.Background(), filepath.Join(path, ownerFile), nil)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("supervise: %w", err), os.RemoveAll(path))
	}
	return path, sync.OnceValue(func() error {
		owner.Unlock()
		return os.RemoveAll(path)
	}), nil
}

// sweep removes the folders of dead processes. What cannot be removed stays.
func sweep(dir, name string) {
	found, _ := os.ReadDir(dir)
	for _, e := range found {
		if path := filepath.Join(dir, e.Name()); e.IsDir() && strings.HasPrefix(e.Name(), name) && deadOwner(path) {
			os.RemoveAll(path)
		}
	}
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
	ok, err := flock.TryLock(f)
	return ok && err == nil
}
