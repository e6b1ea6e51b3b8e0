package golden

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/goparity/goparity/internal/whole"
)

// beside returns the name of a hidden folder next to dir: "new" for goldens that are being written,
// "old" for the replaced ones between the two renames.
func beside(dir, what string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+"."+what)
}

// replace replaces the folder dir with one that build fills. dir is not touched until the new
// folder is on disk. Then there are two renames; between them dir does not exist, and Open opens
// the old folder. If anything fails, the old goldens stay.
func replace(d disk, dir string, build func(tmp string) error) (err error) {
	dir = filepath.Clean(dir)
	tmp, old, parent := beside(dir, "new"), beside(dir, "old"), filepath.Dir(dir)
	if err := recoverOld(d, dir); err != nil {
		return err
	}
	if err := d.RemoveAll(tmp); err != nil { // left by an update that died
		return fmt.Errorf("golden: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.RemoveAll(tmp))
		}
	}()
	if err := d.MkdirAll(tmp); err != nil {
		return fmt.Errorf("golden: %w", err)
	}
	if err := build(tmp); err != nil {
		return err
	}
	err = d.Walk(tmp, func(name string, info fs.FileInfo, err error) error {
		if err != nil || !info.IsDir() {
			return err
		}
		return syncDir(d, name)
	})
	if err != nil {
		return fmt.Errorf("golden: %w", err)
	}
	if err := whole.Swap(d, tmp, dir, old); err != nil {
		return fmt.Errorf("golden: the goldens are not changed: %w", err)
	}
	// The new goldens are there. A failure from here on leaves at most a folder, which the next
	// update removes.
	if err := syncDir(d, parent); err != nil {
		return fmt.Errorf("golden: the new goldens are written, but perhaps not on disk yet: %w", err)
	}
	if err := d.RemoveAll(old); err != nil {
		return fmt.Errorf("golden: the new goldens are written, but the old ones in %s could not be removed: %w",
			old, err)
	}
	return nil
}

// recoverOld cleans up after an update that died: if there is no dir, it moves the old goldens
// back; otherwise it removes them.
func recoverOld(d disk, dir string) error {
	old := beside(dir, "old")
	left, err := exists(d, old)
	if err != nil || !left {
		return err
	}
	there, err := exists(d, dir)
	if err == nil && there {
		err = d.RemoveAll(old)
	} else if err == nil {
		err = d.Rename(old, dir)
	}
	if err != nil {
		return fmt.Errorf("golden: %w", err)
	}
	return nil
}

func syncDir(d disk, dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced on Windows
	}
	f, err := d.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sink is a new file that is hashed while it is written.
type sink struct {
	*bufio.Writer
	file file
	hash hash.Hash
	size int64
}

func create(d disk, name string) (*sink, error) {
	if err := d.MkdirAll(filepath.Dir(name)); err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	f, err := d.Create(name)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	s := &sink{file: f, hash: sha256.New()}
	s.Writer = bufio.NewWriterSize(writerFunc(func(p []byte) (int, error) {
		s.hash.Write(p)
		n, err := f.Write(p)
		s.size += int64(n)
		return n, err
	}), 1<<20)
	return s, nil
}

// finish syncs the file to disk, if err is nil, and closes it.
func (s *sink) finish(err error) error {
	if err == nil {
		err = s.Flush()
	}
	if err == nil {
		err = s.file.Sync()
	}
	return errors.Join(err, s.file.Close())
}

func (s *sink) sha256() string { return hex.EncodeToString(s.hash.Sum(nil)) }

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// writeManifest writes the manifest into a folder.
func writeManifest(d disk, dir string, m *manifest) error {
	data, err := m.marshal()
	if err != nil {
		return err
	}
	if _, err := parseManifest(manifestFile, data); err != nil {
		return fmt.Errorf("golden: the manifest would not be readable: %w", err)
	}
	s, err := create(d, filepath.Join(dir, manifestFile))
	if err != nil {
		return err
	}
	_, err = s.Write(data)
	return s.finish(err)
}

// copyTree copies the files that keep accepts, by their relative names with slashes. A missing
// folder counts as empty.
func copyTree(ctx context.Context, d disk, from, to string, keep func(rel string) bool) error {
	if there, err := exists(d, from); err != nil || !there {
		return err
	}
	return d.Walk(from, func(name string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil || !keep(filepath.ToSlash(rel)) {
			return err
		}
		s, err := create(d, filepath.Join(to, rel))
		if err != nil {
			return err
		}
		return s.finish(stream(ctx, d, name, io.Writer(s)))
	})
}
