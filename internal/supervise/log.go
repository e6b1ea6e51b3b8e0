package supervise

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/sanitize"
)

// pipe is what a program writes to, and this process reads.
type pipe struct {
	w   *os.File // for the program
	end func()   // waits until everything is read
}

// newPipe opens a pipe and starts to read it: until all who hold the other end are dead, or
// drainTime after the end of the program.
func newPipe(read func(r io.Reader)) (*pipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		read(r)
	}()
	return &pipe{w, sync.OnceFunc(func() {
		w.Close()
		r.SetReadDeadline(time.Now().Add(drainTime)) // no effect on Windows, where all holders are dead
		<-done
		r.Close()
	})}, nil
}

// readLines calls line for each line that is not empty, without its end, and returns the last one.
// It always reads to the end, because the program would block on a full pipe.
func readLines(r io.Reader, line func([]byte)) (last string) {
	in := bufio.NewReaderSize(r, maxLine)
	long := false // reading the rest of a line that is too long
	for {
		b, err := in.ReadSlice('\n')
		text := bytes.TrimRight(b, "\r\n")
		if !long && len(text) > 0 {
			last = string(text)
			if line != nil {
				line(text)
			}
		}
		long = err == bufio.ErrBufferFull
		if err != nil && !long {
			return last
		}
	}
}

// logFile takes the program's stdout and stderr. What the program writes comes through a pipe, so
// that no secret reaches the disk.
type logFile struct {
	*pipe
	file *os.File
}

// openLog creates or empties the file, and begins to read what the program will write. Only its
// owner may read the file.
func openLog(path string, secrets *sanitize.Secrets) (*logFile, error) {
	l := &logFile{}
	var err error
	if l.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, fmt.Errorf("its log: %w", err)
	}
	l.pipe, err = newPipe(func(r io.Reader) {
		to := secrets.Writer(&deaf{l.file})
		io.Copy(to, r)
		to.Close()
	})
	if err != nil {
		l.file.Close()
		return nil, fmt.Errorf("its log: %w", err)
	}
	return l, nil
}

func (l *logFile) close() {
	l.end()
	l.file.Close()
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
