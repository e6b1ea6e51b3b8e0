package whole

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// OS is the file system of the operating system.
type OS struct{}

// Rename calls [os.Rename].
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Stat calls [os.Stat].
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Walk calls [filepath.Walk].
func (OS) Walk(root string, visit filepath.WalkFunc) error { return filepath.Walk(root, visit) }

// MkdirAll calls [os.MkdirAll].
func (OS) MkdirAll(name string) error { return os.MkdirAll(name, 0o755) }

// RemoveAll calls [os.RemoveAll].
func (OS) RemoveAll(name string) error { return os.RemoveAll(name) }

// Remove calls [os.Remove].
func (OS) Remove(name string) error { return os.Remove(name) }

// SyncDir does nothing on Windows, which cannot sync folders.
func (OS) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Exchange exchanges two folders at one stroke; an error changes nothing.
func (OS) Exchange(a, b string) error { return exchange(a, b) }
