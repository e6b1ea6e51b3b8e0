package engine

import (
	"fmt"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/sanitize"
)

// Phases turns the events of an engine into calls that show its progress. Its methods may be called
// at any time, by any goroutine.
type Phases struct {
	// Done is called when a phase is over, with its seconds in all. A phase that is repeated for
	// each case is over when another phase begins.
	Done func(phase string, seconds float64)
	// Still is called once per interval for the current phase, with the time since it began and a
	// hint why it may take long.
	Still func(phase string, since time.Duration, hint string)

	mu      sync.Mutex
	phase   string
	seconds float64
	began   time.Time
	stop    chan struct{}
}

// Start makes Phases call Still at this interval.
func (p *Phases) Start(interval time.Duration) {
	p.stop = make(chan struct{})
	go func(stop chan struct{}) {
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticks.C:
				p.mu.Lock()
				if p.phase != "" && !p.began.IsZero() {
					p.Still(p.phase, time.Since(p.began), hint(p.phase))
				}
				p.mu.Unlock()
			}
		}
	}(p.stop)
}

// Event takes an event of the engine.
func (p *Phases) Event(e Event) {
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

// Stop ends the calls. The last phase counts as over only if ok, that is, if the engine succeeded.
func (p *Phases) Stop(ok bool) {
	close(p.stop)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		p.finish()
	}
	p.phase = ""
}

func (p *Phases) finish() {
	if p.phase != "" && p.began.IsZero() {
		p.Done(p.phase, p.seconds)
	}
}

// hint says why a phase may take long; "" if there is nothing to say.
func hint(phase string) string {
	if phase == "compile" {
		return "a first compilation takes minutes, later ones come from the cache"
	}
	return ""
}

// lineEvery is how often LogPhases reports a long phase: often enough to show that the engine is
// alive, rarely enough for a CI log.
const lineEvery = 30 * time.Second

// LogPhases reports phases in lines, for output that is not a terminal: one at the end of each
// phase, and one every half minute during it.
func LogPhases(say func(line string)) *Phases {
	p := &Phases{
		Done: func(phase string, seconds float64) { say(fmt.Sprintf("%s %.1f s", phase, seconds)) },
		Still: func(phase string, since time.Duration, hint string) {
			if since < lineEvery/3 {
				return // it has only begun
			}
			if hint != "" {
				hint = " (" + hint + ")"
			}
			say(fmt.Sprintf("%s: %.0f s so far%s", phase, since.Seconds(), hint))
		},
	}
	p.Start(lineEvery)
	return p
}
