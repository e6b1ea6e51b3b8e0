package mapfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
)

const (
	// smallFile is up to which size a file is read and not mapped. Measured, ext4, warm, with open
	// and close: 4 KiB 8 µs against 15, 16 KiB 13 against 14, 64 KiB 34 against 18.
	smallFile = 16 << 10
	// maxMapped is how many files are mapped at once; more are read. Linux allows 65,530 mappings
	// (vm.max_map_count), those of the process itself among them, and ends a Go program that gets no more.
	maxMapped = 1 << 15
)

// What is read of a file at most, in bytes: many times what real ones have, and no more than fits
// into memory.
const (
	MaxConfig  = 16 << 20 // what people write: fixture.yaml, config.json
	MaxListing = 1 << 30  // what has a line for each tensor: of 100,000, report.json has 200 MB, run.json 10
	MaxLog     = 1 << 30  // what an engine printed
)

// tooLarge says that a file has more bytes than are read of its kind.
func tooLarge(name string, size, limit int64) error {
	return fmt.Errorf("%s has %d bytes, at most %d are read: is it the right file?", name, size, limit)
}

// Reader opens a regular file of at most limit bytes. Errors: those of the system ([fs.ErrNotExist]
// and others), [ErrNotRegular], and that it is too large, also of reading a file that grows beyond
// the limit.
func Reader(name string, limit int64) (io.ReadCloser, error) {
	f, st, err := open(name)
	if err != nil {
		return nil, err
	}
	if st.Size() > limit {
		return nil, errors.Join(tooLarge(name, st.Size(), limit), f.Close())
	}
	return &limited{f, name, 0, limit}, nil
}

// Copy writes the content of a regular file to another one, which it replaces.
func Copy(to, from string) error {
	in, _, err := open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Read returns the content of a file. The errors are those of Reader.
func Read(name string, limit int64) ([]byte, error) {
	f, err := Reader(name, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Hash returns the SHA-256 of a regular file's content, in hexadecimal digits.
func Hash(name string) (string, error) {
	f, _, err := open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// limited is a file of which no more than limit bytes are read: files of /proc and of some network
// systems say that they have none.
type limited struct {
	file        io.ReadCloser
	name        string
	read, limit int64
}

func (l *limited) Close() error { return l.file.Close() }

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.file.Read(p)
	if l.read += int64(n); l.read > l.limit {
		return 0, tooLarge(l.name, l.read, l.limit)
	}
	return n, err
}

// IsFile reports whether there is a file of a name, and IsFolder whether there is a folder; a link is what it leads to.
func IsFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}

// IsFolder: see [IsFile].
func IsFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// ErrNotRegular says that a name is that of a folder, a pipe, a socket or a device.
var ErrNotRegular = errors.New("not a regular file")

// open opens a regular file. It never waits, not even for a pipe that nobody writes to.
func open(name string) (*os.File, fs.FileInfo, error) {
	st, err := os.Stat(name)
	if err == nil {
		err = regular(name, st)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0) // it may have become a pipe
	if err != nil {
		return nil, nil, err
	}
	st, err = f.Stat()
	if err == nil {
		err = regular(name, st)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

func regular(name string, st fs.FileInfo) error {
	switch {
	case st.Mode().IsRegular() && st.Size() > math.MaxInt:
		return tooLarge(name, st.Size(), math.MaxInt)
	case st.Mode().IsRegular():
		return nil
	case st.IsDir():
		return fmt.Errorf("%s is a folder, %w", name, ErrNotRegular)
	}
	return fmt.Errorf("%s is %w (%s)", name, ErrNotRegular, st.Mode().Type())
}

// JSONError adds the line to an error of encoding/json about data, if the error knows its position.
func JSONError(data []byte, err error) error {
	var off int64 = -1
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		off = syntax.Offset
	case errors.As(err, &typ):
		off = typ.Offset
	}
	if off < 0 || off > int64(len(data)) {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:off], []byte("\n")), err)
}
