package engine

import (
	"fmt"
	"sync"
	"time"
)

// Phases turns the events of an engine into what is shown of them. Its methods may be called at any
// time, by any goroutine.
type Phases struct {
	// Done is called for each phase that is over, with all its seconds: one that comes once per
	// case is over when another begins.
	Done func(phase string, seconds float64)
	// Still is called for the current phase each interval, with the time since it began, and a hint
	// why it may take long.
	Still func(phase string, since time.Duration, hint string)
	// End is called when nothing more comes; it may be nil.
	End func()

	mu      sync.Mutex
	phase   string
	seconds float64
	began   time.Time
	stop    chan struct{}
}

// Start begins to call Still at this interval.
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

// Stop ends the calls. ok says whether the engine did its work; else the last phase is not over.
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

// lineEvery is how often LogPhases reports a phase that goes on.
const lineEvery = 30 * time.Second

// LogPhases reports phases in lines, where there is no terminal: one at the end of each, and one
// each half minute.
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
