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
)

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
