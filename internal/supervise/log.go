package supervise

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/secret"
)

// logFile takes the program's stdout and stderr. What the program writes comes through a pipe, so
// that no secret reaches the disk.
type logFile struct {
	r, w      *os.File
	file      *os.File
	temporary bool
	end       func()
}

// openLog creates or empties the file, and begins to read what the program will write. Only its
// owner may read the file.
func openLog(path string, secrets *secret.Values) (*logFile, error) {
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
	if l.r, l.w, err = os.Pipe(); err != nil {
		l.file.Close()
		return nil, fmt.Errorf("its log: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		to := secrets.Writer(&deaf{l.file})
		io.Copy(to, l.r) // until all who hold the other end are dead, or the deadline
		to.Close()
	}()
	l.end = sync.OnceFunc(func() {
		l.w.Close()
		l.r.SetReadDeadline(time.Now().Add(drainTime)) // no effect on Windows, where all holders are dead
		<-done
		l.r.Close()
	})
	return l, nil
}

// out is for the program.
func (l *logFile) out() *os.File { return l.w }

func (l *logFile) close() {
	l.end()
	l.file.Close()
	if l.temporary {
		os.Remove(l.file.Name())
	}
}

// deaf ignores errors: a full disk must not stop the program.
type deaf struct{ w io.Writer }

func (d *deaf) Write(p []byte) (int, error) { d.w.Write(p); return len(p), nil }

// tail returns the last lines of the log. Of a line that was redrawn with carriage returns, such as
// a progress bar, it keeps the last state.
func (l *logFile) tail() []string {
	l.end()
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
