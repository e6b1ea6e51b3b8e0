package supervise

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goparity/goparity/internal/sanitize"
)

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
