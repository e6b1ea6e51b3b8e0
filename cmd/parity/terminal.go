package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
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

// progress shows how far a comparison of more than a gigabyte is, on terminals only.
type progress struct {
	w     io.Writer
	least int64 // of a total that is worth a line
	text  func(total, percent int64) string
	mu    sync.Mutex
	line  string
	at    int64 // per cent
}

const worthALine = 1 << 30 // bytes; less is done before one could read it

func newProgress(w io.Writer) *progress {
	if _, ok := terminal(w); !ok {
		w = nil
	}
	return &progress{w: w, least: worthALine, text: func(total, percent int64) string {
		return fmt.Sprintf("comparing %.1f GB: %d %%", float64(total)/1e9, percent)
	}}
}

// newReplaying is newProgress of pieces that are replayed.
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
		p.at = at
		p.line = p.text(total, at)
		fmt.Fprintf(p.w, "\r%s", p.line)
	}
}

// done clears the line.
func (p *progress) done() {
	if p.line != "" {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", len(p.line)))
	}
}

// console shows what an engine is doing: on a terminal one line that is redrawn each second,
// elsewhere a line at the end of each phase.
type console struct {
	*engine.Phases
	w      io.Writer
	width  int // of the terminal; 0 elsewhere
	mu     sync.Mutex
	status string
}

// newConsole shows the phases of an engine until Stop is called.
func newConsole(w io.Writer, name string) *console {
	c := &console{w: w}
	fd, ok := terminal(w)
	if !ok {
		c.Phases = engine.LogPhases(func(line string) { c.say(name + ": " + line) })
		return c
	}
	c.width = 80
	if width, _, err := term.GetSize(fd); err == nil && width > 0 {
		c.width = width
	}
	c.Phases = &engine.Phases{
		Done: func(phase string, seconds float64) {
			c.set("")
			c.say(fmt.Sprintf("%s: %s %.1f s", name, phase, seconds))
		},
		Still: func(phase string, since time.Duration, hint string) {
			if hint != "" {
				hint = " (" + hint + ")"
			}
			c.set(fmt.Sprintf("parity: %s: %s … %.0f s%s", name, phase, since.Seconds(), hint))
		},
		End: func() { c.set("") },
	}
	c.Start(time.Second)
	return c
}

// say prints a line for good.
func (c *console) say(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draw("")
	fmt.Fprintf(c.w, "parity: %s\n", sanitize.Line(line))
	c.draw(c.status)
}

// set changes the line that is redrawn.
func (c *console) set(status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
	c.draw(status)
}

func (c *console) draw(status string) {
	if c.width == 0 {
		return
	}
	if r := []rune(status); len(r) >= c.width {
		status = string(r[:c.width-1]) // a line that wraps cannot be redrawn
	}
	fmt.Fprintf(c.w, "\r%s\r%s", strings.Repeat(" ", c.width-1), status)
}

// consoles shows the engines that a session runs.
func consoles(w io.Writer) func(name string) (*engine.Phases, func(string)) {
	return func(name string) (*engine.Phases, func(string)) {
		c := newConsole(w, name)
		return c.Phases, c.say
	}
}
