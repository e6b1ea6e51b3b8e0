package supervise

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

// drainTime is how long Run waits for the end of the pipe after the end of the program. Only a
// descendant that left the group can still hold it.
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
		p.r.SetReadDeadline(time.Now().Add(drainTime)) // no effect on Windows, where all holders are dead
		<-p.done
		p.r.Close()
	})
	go func() {
		defer close(p.done)
		p.last = readLines(p.r, line)
	}()
	return p, nil
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

// finish waits for the last line and returns it.
func (p *progress) finish() string {
	p.end()
	return p.last
}
