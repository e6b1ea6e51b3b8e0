package supervise

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const (
	tailLines = 200
	tailBytes = 64 << 10
)

// logFile takes the program's stdout and stderr.
type logFile struct {
	out       *os.File // for the program; in append mode, in case it opens its output again
	file      *os.File // the same file, to read it and to overwrite secrets
	temporary bool
}

// openLog creates or empties the file. Only its owner may read it, because it may contain secrets
// until the program has ended.
func openLog(path string) (*logFile, error) {
	l := &logFile{temporary: path == ""}
	var err error
	if l.temporary {
		l.file, err = os.CreateTemp("", "parity-*.log")
	} else {
		l.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("its log: %w", err)
	}
	if l.out, err = os.OpenFile(l.file.Name(), os.O_WRONLY|os.O_APPEND, 0); err != nil {
		l.file.Close()
		return nil, fmt.Errorf("its log: %w", err)
	}
	return l, nil
}

func (l *logFile) close() {
	l.out.Close()
	l.file.Close()
	if l.temporary {
		os.Remove(l.file.Name())
	}
}

// tail overwrites the secrets in the log and returns its last lines. Of a line that was redrawn
// with carriage returns, such as a progress bar, it keeps the last state.
func (l *logFile) tail(secrets []string) []string {
	if err := mask(l.file, secrets); err != nil {
		return []string{fmt.Sprintf("(the log is not shown, secrets could not be removed from it: %v)", err)}
	}
	size, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil
	}
	from := max(0, size-tailBytes)
	text, _ := io.ReadAll(io.NewSectionReader(l.file, from, size-from)) // whatever can be read
	if i := bytes.IndexByte(text, '\n'); from > 0 && i >= 0 {
		text = text[i+1:] // the rest of a line that began before the window
	}
	lines := strings.Split(strings.TrimRight(string(text), "\r\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		lines[i] = strings.ToValidUTF8(line, "\uFFFD")
	}
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines
}

// mask overwrites each byte of a secret in the file with an asterisk.
func mask(f *os.File, secrets []string) error {
	secrets = bySize(secrets)
	if len(secrets) == 0 {
		return nil
	}
	const step = 1 << 20
	window := make([]byte, step+len(secrets[0])-1) // a secret that begins in a step ends in its window
	for from := int64(0); ; from += step {
		n, err := f.ReadAt(window, from)
		if err != nil && err != io.EOF {
			return err
		}
		found := false
		for _, s := range secrets {
			for rest := window[:n]; ; {
				i := bytes.Index(rest, []byte(s))
				if i < 0 {
					break
				}
				found = true
				copy(rest[i:], strings.Repeat("*", len(s)))
				rest = rest[i+len(s):]
			}
		}
		if found {
			if _, err := f.WriteAt(window[:n], from); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// MaskFile overwrites each byte of a secret in a file with an asterisk, so that nothing in it
// moves.
func MaskFile(path string, secrets []string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("supervise: secrets could not be removed: %w", err)
	}
	if err := errors.Join(mask(f, secrets), f.Close()); err != nil {
		return fmt.Errorf("supervise: secrets could not be removed from %s: %w", path, err)
	}
	return nil
}

// Redact replaces the secrets in a text with ***.
func Redact(text string, secrets []string) string {
	for _, s := range bySize(secrets) {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}

// bySize sorts secrets, the longest first, so that nothing is left of a secret that begins with
// another one. It leaves out empty ones.
func bySize(secrets []string) []string {
	s := slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return s == "" })
	slices.SortFunc(s, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return s
}
