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
// that no secret reaches the disk, and that an endless log does not fill it.
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
		c := &capped{w: l.file, left: logHead}
		to := secrets.Writer(c) // before the cap, which may cut a secret
		io.Copy(to, l.r)        // until all who hold the other end are dead, or the deadline
		to.Close()
		c.finish()
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

// capped passes on the beginning of what is written to it, and keeps the end. Errors of w are
// ignored: a full disk must not stop the program.
type capped struct {
	w    io.Writer
	left int // of the beginning
	tail []byte
	lost int64 // bytes between them
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.w.Write(p[:n])
	c.left -= n
	c.tail = append(c.tail, p[n:]...)
	if drop := len(c.tail) - logTail; drop > logTail {
		c.tail = append(c.tail[:0], c.tail[drop:]...)
		c.lost += int64(drop)
	}
	return len(p), nil
}

// finish passes on the end, and says what is left out.
func (c *capped) finish() {
	if drop := len(c.tail) - logTail; drop > 0 {
		c.tail = c.tail[drop:]
		c.lost += int64(drop)
	}
	if c.lost > 0 {
		fmt.Fprintf(c.w, "\n… %d bytes of this log are left out: it has the first %d MiB and the last %d …\n", c.lost,
			logHead>>20, logTail>>20)
	}
	c.w.Write(c.tail)
}

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
