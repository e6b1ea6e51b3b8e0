package supervise

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

// maxLine is the longest line of progress in bytes; the rest of a longer one is dropped.
const maxLine = 64 << 10

// drainTime is how long Run waits for a pipe to end after the program has. Only a descendant that
// left the group can hold it.
const drainTime = 2 * time.Second

// progress reads the lines that the program writes to its progress pipe.
type progress struct {
	r, w *os.File
	last string // valid once done is closed
	done chan struct{}
	end  func()
}

// newProgress opens the pipe and starts to read it.
func newProgress(line func([]byte)) (*progress, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &progress{r: r, w: w, done: make(chan struct{})}
	p.end = sync.OnceFunc(func() {
		p.w.Close()
		p.r.SetReadDeadline(time.Now().Add(drainTime)) // has no effect on Windows, where all holders are dead by now
		<-p.done
		p.r.Close()
	})
	go func() {
		defer close(p.done)
		p.last = readLines(p.r, line)
	}()
	return p, nil
}

// readLines hands over each line without its end, but no empty ones, and returns the last one. It
// never stops reading before the end: the program would block.
func readLines(r io.Reader, line func([]byte)) (last string) {
	in := bufio.NewReaderSize(r, maxLine)
	long := false // in the rest of a line that is too long
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

// finish waits for the last line and returns it.
func (p *progress) finish() string {
	p.end()
	return p.last
}
