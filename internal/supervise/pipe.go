package supervise

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"sync"
	"time"
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
