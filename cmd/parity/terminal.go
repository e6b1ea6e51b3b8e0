package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/goparity/goparity/internal/report"
)

// textOptions: colour and the real width on a terminal, plain text elsewhere (NO_COLOR is
// respected).
func textOptions(w io.Writer, verbose bool) report.TextOptions {
	opt := report.TextOptions{Verbose: verbose, All: "all with -v"}
	if fd, ok := terminal(w); ok {
		opt.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(fd); err == nil {
			opt.Width = width
		}
	}
	return opt
}

func terminal(w io.Writer) (fd int, ok bool) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// progress shows how far a comparison of more than a gigabyte is, on terminals only.
type progress struct {
	w    io.Writer
	mu   sync.Mutex
	line string
	at   int64 // per cent
}

const worthALine = 1 << 30 // bytes; less is done before one could read it

func newProgress(w io.Writer) *progress {
	if _, ok := terminal(w); !ok {
		w = nil
	}
	return &progress{w: w}
}

func (p *progress) set(done, total int64) {
	if p.w == nil || total < worthALine {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := 100 * done / total; at > p.at { // workers report out of order
		p.at = at
		p.line = fmt.Sprintf("comparing %.1f GB: %d %%", float64(total)/1e9, at)
		fmt.Fprintf(p.w, "\r%s", p.line)
	}
}

// done clears the line.
func (p *progress) done() {
	if p.line != "" {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", len(p.line)))
	}
}
