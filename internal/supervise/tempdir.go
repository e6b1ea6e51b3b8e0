package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/flock"
)

// ownerFile is in each folder of TempDir: locked while its process or a watchdog of it lives. It is empty
// before that.
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
	release, err := own(path)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("supervise: %w", err), os.RemoveAll(path))
	}
	return path, sync.OnceValue(func() error {
		release()
		return os.RemoveAll(path)
	}), nil
}

// own makes and locks the file that says who owns a folder. While it is empty, others leave
// the folder alone.
func own(dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ownerFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		ok, err := flock.Try(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if ok {
			f.WriteString("locked")
			keep(f)
			return func() {
				drop(f)
				flock.Free(f)
				f.Close()
			}, nil
		}
		time.Sleep(time.Millisecond) // another looks whether it has an owner
	}
}

// sweep removes the folders of dead processes. What cannot be removed stays.
func sweep(dir, name string) {
	found, _ := filepath.Glob(filepath.Join(escaped(dir), escaped(name)+"*"))
	for _, path := range found {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() {
			continue
		}
		if deadOwner(path) {
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
	ok, err := flock.Try(f)
	return ok && err == nil
}

// escaped returns a pattern that matches s alone.
func escaped(s string) string {
	if filepath.Separator == '\\' {
		return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(s)
	}
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "*", `\*`, "?", `\?`).Replace(s)
}
