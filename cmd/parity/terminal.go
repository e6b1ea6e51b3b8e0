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
// respected). The report lies in file.
func textOptions(w io.Writer, verbose bool, file string) report.TextOptions {
	opt := report.TextOptions{Verbose: verbose, File: file, All: "all with -v"}
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

// worthALine is how many bytes are compared before one could read how far it is.
const worthALine = 1 << 30

// progress shows how far a comparison is, on terminals only.
type progress struct {
	w     io.Writer // nil where nothing is shown
	least int64     // of a total that is worth a line
	text  func(total, percent int64) string
	mu    sync.Mutex
	line  string
	at    int64 // per cent
}

// newProgress is that of a comparison of more than a gigabyte.
func newProgress(w io.Writer) *progress {
	if _, ok := terminal(w); !ok {
		w = nil
	}
	return &progress{w: w, least: worthALine, text: func(total, percent int64) string {
		return fmt.Sprintf("comparing %.1f GB: %d %%", float64(total)/1e9, percent)
	}}
}

// newReplaying is that of pieces that are replayed.
func newReplaying(w io.Writer) *progress {
	p := newProgress(w)
	p.least, p.text = 0, func(total, percent int64) string { return fmt.Sprintf("replaying %d tensors: %d %%", total, percent) }
	return p
}

func (p *progress) set(done, total int64) {
	if p.w == nil || total < p.least {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := 100 * done / total; at > p.at { // workers report out of order
		p.at, p.line = at, p.text(total, at)
		fmt.Fprintf(p.w, "\r%s", p.line)
	}
	if done >= total {
		p.clear()
	}
}

// done clears the line.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) clear() {
	if p.line != "" {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", len(p.line)))
		p.line = ""
	}
}
