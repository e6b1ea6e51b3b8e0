package live

import (
	"fmt"
	"sync"
	"time"

	"github.com/goparity/goparity/internal/engine"
)

// Phases turns the events of an engine into what is shown of them. Its methods may be called at any time from any goroutine.
type Phases struct {
	// Done is told of each phase that is over, with all its seconds: a phase that comes once a case is over when another begins.
	Done func(phase string, seconds float64)
	// Still is told of the present phase each interval, with the time since it began, and with what to know about it.
	Still func(phase string, since time.Duration, hint string)
	// End is told that nothing more comes; nil if nobody needs to know.
	End func()

	mu      sync.Mutex
	phase   string
	seconds float64
	began   time.Time
	stop    chan struct{}
}

// Start begins to call Still each interval.
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
func (p *Phases) Event(e engine.Event) {
	if e.Phase == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Phase != p.phase {
		p.finish()
		p.phase, p.seconds = e.Phase, 0
	}
	if e.Seconds != nil {
		p.seconds, p.began = *e.Seconds, time.Time{}
		return
	}
	p.began = time.Now()
}

// Stop ends the calls. ok is whether the engine did its work: else the last phase is not over.
func (p *Phases) Stop(ok bool) {
	close(p.stop)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		p.finish()
	}
	p.phase = ""
	if p.End != nil {
		p.End()
	}
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

// lineEvery is how often a phase that goes on is told of where there is no terminal.
const lineEvery = 30 * time.Second

// Lines tells of phases in lines, for logs: one at the end of each, and one each half minute.
func Lines(say func(line string)) *Phases {
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
