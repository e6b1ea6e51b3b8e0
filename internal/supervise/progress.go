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

// pipe is what a program writes to, and this process reads.
type pipe struct {
	w   *os.File // for the program
	end func()   // waits until everything is read
}

// newPipe opens a pipe and starts to read it: until all who hold the other end are dead, or the deadline.
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

// progress reads the lines that the program writes to its progress pipe.
type progress struct {
	*pipe
	last string // valid after finish
}

// newProgress opens the pipe and starts to read it.
func newProgress(line func([]byte)) (p *progress, err error) {
	p = &progress{}
	p.pipe, err = newPipe(func(r io.Reader) { p.last = readLines(r, line) })
	return p, err
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
