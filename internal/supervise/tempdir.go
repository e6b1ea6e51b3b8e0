package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/flock"
)

// ownerFile is in each folder of TempDir: locked while its process or a watchdog of it lives, and
// with the nonce of that process.
const ownerFile = ".goparity-owner"

// TempDir makes a folder dir/NAME<something>, and returns a function that removes it. dir is the
// system's folder for temporary files if it is empty. The folder of a process that was killed is
// removed by the next process that makes one of the same name, as are the programs of that process
// that are still alive, if its watchdog was killed, too.
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

// own makes and locks the file that says who owns a folder. Until the nonce is in it, others leave
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
			f.WriteString(processNonce()) // the lock is valid without it
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
		if nonce, dead := deadOwner(path); dead {
			killMarked(nonce, killTime)
			os.RemoveAll(path)
		}
	}
}

// deadOwner returns the nonce of the process that made a folder, and whether it is dead with its
// watchdogs. A folder that TempDir did not make has no owner that could be dead.
func deadOwner(path string) (nonce string, dead bool) {
	name := filepath.Join(path, ownerFile)
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if ok, err := flock.Try(f); err != nil || !ok {
		return "", false
	}
	defer flock.Free(f)
	text, _ := io.ReadAll(io.LimitReader(f, 64))
	return string(text), len(text) == len(processNonce()) && string(text) != processNonce()
}

// escaped returns a pattern that matches s alone.
func escaped(s string) string {
	if filepath.Separator == '\\' {
		return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(s)
	}
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "*", `\*`, "?", `\?`).Replace(s)
}
