package whole

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/goparity/goparity/internal/flock"
)

// FS is what Folder needs of a file system.
type FS interface {
	Renamer
	Stat(name string) (fs.FileInfo, error)
	Walk(root string, visit filepath.WalkFunc) error
	MkdirAll(name string) error
	RemoveAll(name string) error
	// Remove removes a file, or a folder that is empty.
	Remove(name string) error
	// SyncDir writes to disk which files a folder has.
	SyncDir(name string) error
}

// exchanger is a file system that can exchange two folders at one stroke.
type exchanger interface {
	Exchange(a, b string) error
}

// work returns the hidden folder next to dir in which a new dir is made: git does not see it, and
// the next update removes what one that was killed left there.
func work(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".work")
}

// aside is where the old folder is between two renames.
func aside(dir string) string { return filepath.Join(work(dir), "old") }

// LockFile is the file that Lock locks. While it is there, the process that holds the lock may
// remove what others left in its folder.
func LockFile(dir string) string { return filepath.Join(work(dir), "lock") }

// Target returns the folder that Lock, Folder and Find are about where dir is a link to it.
func Target(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil && isLink(dir) {
		return real
	}
	return filepath.Clean(dir)
}

func isLink(dir string) bool {
	st, err := os.Lstat(dir)
	return err == nil && st.Mode()&fs.ModeSymlink != 0
}

// Lock keeps other processes from replacing dir until unlock is called, or this process is dead.
// The lock lies next to dir, so that containers which share the folder share the lock; readers need
// none. While another process holds it, waiting is told which; waiting may be nil. Where the file system
// has no locks, it is told "" once, and the last one to write wins: dir is whole even so.
func Lock(ctx context.Context, dir string, waiting func(holder string)) (unlock func(), err error) {
	in, file := work(dir), LockFile(dir)
	ignore := filepath.Join(in, ".gitignore")
	l, err := flock.Take(ctx, file, waiting)
	if errors.Is(err, errors.ErrUnsupported) {
		os.Remove(file)
		if waiting != nil {
			waiting("")
		}
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	os.WriteFile(ignore, []byte("*\n"), 0o644) // only for looks
	return func() {
		os.Remove(ignore)
		os.Remove(file) // the last file: from here on it may be another process's folder
		l.Unlock()
		os.Remove(in)
	}, nil
}

// Folder replaces the folder dir with one that build fills; the caller holds the lock. dir is not
// touched until the new folder is on disk. Where the system can, the two are exchanged at one
// stroke; else there are two renames, between which Find returns the old folder. If anything fails,
// the old folder stays.
func Folder(d FS, dir string, build func(tmp string) error) error {
	if err := Recover(d, dir); err != nil {
		return err
	}
	in := work(dir)
	tmp := filepath.Join(in, "new-"+rand.Text())
	defer func() {
		// The new folder where it failed, and else the old one. What cannot be removed, because
		// someone reads it, is not seen by git, and the next update removes it.
		d.RemoveAll(tmp)
		d.RemoveAll(aside(dir))
		d.Remove(in) // fails where the lock lies in it
	}()
	if err := d.MkdirAll(tmp); err != nil {
		return err
	}
	if err := build(tmp); err != nil {
		return err
	}
	err := d.Walk(tmp, func(name string, info fs.FileInfo, err error) error {
		if err != nil || !info.IsDir() {
			return err
		}
		return d.SyncDir(name)
	})
	if err != nil {
		return err
	}
	if err := swap(d, tmp, dir); err != nil {
		return fmt.Errorf("nothing is changed: %w", err)
	}
	if err := d.SyncDir(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("the new files are written, but perhaps not on disk yet: %w", err)
	}
	return nil
}

func swap(d FS, tmp, dir string) error {
	if x, ok := d.(exchanger); ok {
		if err := x.Exchange(tmp, dir); err == nil {
			return nil
		}
	}
	return Swap(d, tmp, dir, aside(dir))
}

// Recover moves the old folder back if there is no dir, because an update died, and removes what it
// left. The caller holds the lock.
func Recover(d FS, dir string) error {
	if _, err := d.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := d.Rename(aside(dir), dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	} else if err != nil {
		return err
	}
	if _, err := d.Stat(LockFile(dir)); err != nil {
		return nil // without a lock, that may be what others are writing
	}
	in := work(dir)
	var left []string
	err := d.Walk(in, func(name string, info fs.FileInfo, err error) error {
		if err != nil || name == in {
			return err
		}
		if base := filepath.Base(name); base == "old" || strings.HasPrefix(base, "new-") {
			left = append(left, name)
		}
		if info.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range left {
		if err := d.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// Find returns where the folder dir is: between two renames, and if a process died there, it is the
// old one that was moved aside.
func Find(d interface {
	Stat(name string) (fs.FileInfo, error)
}, dir string) string {
	old := aside(dir)
	for _, path := range []string{dir, old, dir} { // again: the update may have ended in between
		if _, err := d.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return dir
}

// Steady calls read until no other process replaced the folder dir meanwhile: then all that read
// saw is of one folder. What a call has opened must be closed in the next one.
func Steady(dir string, read func() error) error {
	const most = 100 // updates take longer than reading
	for try := 1; ; try++ {
		s := See(dir)
		err := read()
		same := s.Same()
		s.Close()
		if same || try == most {
			return err
		}
	}
}

// Sight is a folder as it was seen.
type Sight struct {
	dir  string
	file *os.File // open, so that its number cannot become another folder's
	info fs.FileInfo
}

// See opens a folder, which need not be there.
func See(dir string) *Sight {
	s := &Sight{dir: dir}
	s.info, _ = os.Stat(dir)
	switch {
	case runtime.GOOS == "windows": // an open folder cannot be renamed there
		return s
	case s.info == nil || !s.info.IsDir() && !s.info.Mode().IsRegular(): // a pipe would wait
		return s
	}
	if f, err := os.Open(dir); err == nil {
		s.file = f
		s.info, _ = f.Stat()
	}
	return s
}

// Same reports whether that folder, and no other one, is still at its path.
func (s *Sight) Same() bool {
	now, err := os.Stat(s.dir)
	if err != nil || s.info == nil {
		return err != nil && s.info == nil
	}
	return os.SameFile(s.info, now)
}

// Close ends the sight; a second Close does nothing.
func (s *Sight) Close() error {
	f := s.file
	if s.file = nil; f == nil {
		return nil
	}
	return f.Close()
}
