package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/foreign"
)

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
	fmt.Fprintf(c.w, "parity: %s\n", foreign.Line(line))
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
