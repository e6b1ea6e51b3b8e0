package golden

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/afero"

	"github.com/goparity/goparity/internal/whole"
)

// What the tests use besides the exported names.
const (
	ManifestFile = manifestFile
	Schema       = schema
)

// Manifest is manifest.json.
type Manifest = manifest

// on returns a file system of afero as a disk. That of the operating system is the package's own.
type on struct{ afero.Fs }

func diskOf(fsys afero.Fs) disk {
	if _, ok := fsys.(*afero.OsFs); ok {
		return system{}
	}
	return on{fsys}
}

func (d on) Open(name string) (file, error) { return d.Fs.Open(name) }

func (d on) Create(name string) (file, error) {
	return d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

func (d on) Stat(name string) (fs.FileInfo, error)           { return d.Fs.Stat(name) }
func (d on) Walk(root string, visit filepath.WalkFunc) error { return afero.Walk(d.Fs, root, visit) }
func (d on) MkdirAll(name string) error                      { return d.Fs.MkdirAll(name, 0o755) }
func (d on) Steady(_ string, read func() error) error        { return read() }

func (d on) SyncDir(name string) error {
	f, err := d.Fs.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// OpenOn is Open on another file system.
func OpenOn(fsys afero.Fs, dir string) (*Store, error) { return open(diskOf(fsys), dir) }

// ImportOn is Import on another file system, where the lock is a file that no one locks.
func ImportOn(ctx context.Context, fsys afero.Fs, dir string, opt ImportOptions) (*Delta, error) {
	lock := whole.LockFile(filepath.Clean(dir))
	if diskOf(fsys).MkdirAll(filepath.Dir(lock)) == nil {
		afero.WriteFile(fsys, lock, nil, 0o644)
	}
	defer fsys.RemoveAll(filepath.Dir(lock))
	deltas, err := importRuns(ctx, diskOf(fsys), filepath.Clean(dir), []ImportOptions{opt})
	if len(deltas) == 0 {
		return nil, err
	}
	return deltas[0], err
}

// PruneOn is Prune on another file system.
func PruneOn(ctx context.Context, fsys afero.Fs, dir string, opt PruneOptions) ([]string, error) {
	return prune(ctx, diskOf(fsys), dir, opt)
}
