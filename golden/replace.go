package golden

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// sink is a new file.
type sink struct {
	*bufio.Writer
	file file
	size int64
	head []byte // what came before the first tensor
}

func create(d disk, name string) (*sink, error) {
	if err := d.MkdirAll(filepath.Dir(name)); err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	f, err := d.Create(name)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	s := &sink{file: f}
	s.Writer = bufio.NewWriterSize(writerFunc(func(p []byte) (int, error) {
		s.keepHead(p)
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

// keepHead keeps the header of a safetensors file: eight bytes say how long the rest of it is.
func (s *sink) keepHead(p []byte) {
	for len(p) > 0 {
		want := 8
		if len(s.head) >= want {
			want += int(binary.LittleEndian.Uint64(s.head))
		}
		n := min(want-len(s.head), len(p))
		if n <= 0 {
			return
		}
		s.head, p = append(s.head, p[:n]...), p[n:]
	}
}

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
