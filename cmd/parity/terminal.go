package main

import (
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/goparity/goparity/internal/report"
)

// textOptions: colour and the real width on a terminal, plain text elsewhere (NO_COLOR is respected).
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

// progress is a bar for comparisons of more than a gigabyte, on terminals only.
type progress struct {
	w   io.Writer
	mu  sync.Mutex
	bar *progressbar.ProgressBar
	at  int64
}

const worthABar = 1 << 30 // bytes; less is done before one could read it

func newProgress(w io.Writer) *progress {
	if _, ok := terminal(w); !ok {
		w = nil
	}
	return &progress{w: w}
}

func (p *progress) set(done, total int64) {
	if p.w == nil || total < worthABar {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.w), progressbar.OptionShowBytes(true),
			progressbar.OptionSetDescription("comparing"), progressbar.OptionClearOnFinish())
	}
	if done > p.at { // workers report out of order
		p.at = done
		p.bar.Set64(done)
	}
}

func (p *progress) done() {
	if p.bar != nil {
		p.bar.Clear()
	}
}
