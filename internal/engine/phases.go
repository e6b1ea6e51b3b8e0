package engine

import (
	"fmt"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/sanitize"
)

// lineEvery is how often Phases reports a long phase: often enough to show that the engine is
// alive, rarely enough for a CI log.
const lineEvery = 30 * time.Second

// Phases reports the phases of an engine in lines: one at the end of each, with its seconds in all, and
// one every half minute during it. Its methods may be called at any time, by any goroutine.
type Phases struct {
	say     func(line string)
	mu      sync.Mutex
	phase   string
	seconds float64
	began   time.Time // zero once it is over
	stop    chan struct{}
}

// LogPhases begins to report.
func LogPhases(say func(line string)) *Phases {
	p := &Phases{say: say, stop: make(chan struct{})}
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

func (p *Phases) still() {
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

// Event takes an event of the engine. A phase that is repeated for each case is over when another phase
// begins.
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

// Stop ends the reports. The last phase counts as over only if ok, that is, if the engine succeeded.
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
		p.say(fmt.Sprintf("%s %.1f s", p.phase, p.seconds))
	}
}
