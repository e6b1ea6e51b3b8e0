package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/sanitize"
)

// Event is one line of progress.
type Event struct {
	// Phase is import, load, compile, sanity, forward or write. It begins, or has ended if Seconds
	// is set.
	Phase   string      `json:"phase,omitempty"`
	Seconds *float64    `json:"seconds,omitempty"` // how long the phase took, over all cases so far
	Model   *eventModel `json:"model,omitempty"`   // sent at least once before the first forward pass
	Warning string      `json:"warning,omitempty"`
	Error   *eventError `json:"error,omitempty"`
}

// eventModel is the class of the model, and its source file.
type eventModel struct {
	Class string `json:"class"`
	File  string `json:"file"`
}

// eventError says what went wrong. An engine sends it before it exits.
type eventError struct {
	Class   string `json:"class"` // infra, model, usage or bug
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Where   string `json:"where,omitempty"`
	Case    string `json:"case,omitempty"` // that was being run
}

// eventReader takes the lines of a progress pipe. An engine may write any number of them.
type eventReader struct {
	secrets  *sanitize.Secrets
	to       func(Event) // may be nil
	events   int
	warnings []string
	said     *eventError // the last one
}

// line takes a line. A program may print other things than events.
func (h *eventReader) line(line []byte) {
	var e Event
	if json.Unmarshal(line, &e) != nil {
		return
	}
	e.clean(h.secrets)
	if e.Error != nil {
		h.said = e.Error
	}
	switch {
	case e.Warning == "":
	case len(h.warnings) < maxWarnings:
		h.warnings = append(h.warnings, e.Warning)
	case len(h.warnings) == maxWarnings:
		h.warnings = append(h.warnings, "there are more warnings, see the log")
	}
	if h.events++; h.to != nil && h.events <= maxEvents {
		h.to(e)
	}
}

// clean removes the secrets from all texts of an event, and shortens them.
func (e *Event) clean(secrets *sanitize.Secrets) {
	texts := []*string{&e.Phase, &e.Warning}
	if e.Model != nil {
		texts = append(texts, &e.Model.Class, &e.Model.File)
	}
	if e.Error != nil {
		texts = append(texts, &e.Error.Class, &e.Error.Message, &e.Error.Hint, &e.Error.Where, &e.Error.Case)
	}
	for _, t := range texts {
		if *t = secrets.Redact(*t); len(*t) > maxText {
			*t = strings.ToValidUTF8((*t)[:maxText], "") + "…"
		}
	}
}

// lineEvery is how often phases reports a long phase: often enough to show that the engine is
// alive, rarely enough for a CI log.
const lineEvery = 30 * time.Second

// phases reports the phases of an engine in lines: one at the end of each, with its seconds in all, and
// one every half minute during it. Its methods may be called at any time, by any goroutine.
type phases struct {
	say     func(line string)
	mu      sync.Mutex
	phase   string
	seconds float64
	began   time.Time // zero once it is over
	stop    chan struct{}
}

// logPhases begins to report.
func logPhases(say func(line string)) *phases {
	p := &phases{say: say, stop: make(chan struct{})}
	go func() {
		ticks := time.NewTicker(lineEvery)
		defer ticks.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-ticks.C:
				p.still()
			}
		}
	}()
	return p
}

func (p *phases) still() {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := time.Since(p.began)
	if p.phase == "" || p.began.IsZero() || since < lineEvery/3 {
		return // it has only begun
	}
	hint := ""
	if p.phase == "compile" {
		hint = " (a first compilation takes minutes, later ones come from the cache)"
	}
	p.say(fmt.Sprintf("%s: %.0f s so far%s", p.phase, since.Seconds(), hint))
}

// event takes an event of the engine. A phase that is repeated for each case is over when another phase
// begins.
func (p *phases) event(e Event) {
	if e.Phase == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if phase := sanitize.Line(e.Phase); phase != p.phase {
		p.finish()
		p.phase, p.seconds = phase, 0
	}
	if e.Seconds != nil {
		p.seconds, p.began = *e.Seconds, time.Time{}
		return
	}
	p.began = time.Now()
}

// end ends the reports. The last phase counts as over only if ok, that is, if the engine succeeded.
func (p *phases) end(ok bool) {
	close(p.stop)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		p.finish()
	}
	p.phase = ""
}

func (p *phases) finish() {
	if p.phase != "" && p.began.IsZero() {
		p.say(fmt.Sprintf("%s %.1f s", p.phase, p.seconds))
	}
}
