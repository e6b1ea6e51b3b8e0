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

// progress returns what shows how far something is, and what clears its line. Totals below least are not worth one.
// Nothing is shown where there is no terminal.
func progress(w io.Writer, what string, least int64) (set func(done, total int64), end func()) {
	if _, ok := terminal(w); !ok {
		return nil, func() {}
	}
	var mu sync.Mutex
	line, shown := "", int64(0)
	show := func(text string) {
		fmt.Fprintf(w, "\r%s\r%s", strings.Repeat(" ", len(line)), text)
		line = text
	}
	set = func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		switch at := 100 * done / total; {
		case total < least || at <= shown: // workers report out of order
		case done >= total:
			show("")
		default:
			shown = at
			show(fmt.Sprintf("%s: %d %%", what, at))
		}
	}
	end = func() {
		mu.Lock()
		defer mu.Unlock()
		show("")
	}
	return set, end
}
