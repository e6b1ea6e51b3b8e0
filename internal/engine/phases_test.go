package engine_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/engine"
)

func phaseBegins(phase string) engine.Event { return engine.Event{Phase: phase} }

func phaseEnds(phase string, s float64) engine.Event { return engine.Event{Phase: phase, Seconds: &s} }

// There is a line at the end of each phase, for all cases together, and one every half minute of a
// long phase.
func TestLogPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		p := engine.LogPhases(func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		})
		p.Event(phaseBegins("import"))
		p.Event(engine.Event{Warning: "no phase"})
		time.Sleep(3 * time.Second)
		p.Event(phaseEnds("import", 3))
		p.Event(phaseBegins("compile"))
		time.Sleep(65 * time.Second)
		p.Event(phaseEnds("compile", 65))
		for i := range 3 {
			p.Event(phaseBegins("forward"))
			time.Sleep(time.Second)
			p.Event(phaseEnds("forward", float64(i+1)))
		}
		p.End(true)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{
			"import 3.0 s",
			"compile: 27 s so far (a first compilation takes minutes, later ones come from the cache)",
			"compile: 57 s so far (a first compilation takes minutes, later ones come from the cache)",
			"compile 65.0 s",
			"forward 3.0 s",
		}, lines)
	})
}

// A phase in which the engine failed is not reported as done.
func TestLogPhasesOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		p := engine.LogPhases(func(line string) { lines = append(lines, line) })
		p.Event(phaseBegins("load"))
		p.Event(phaseEnds("load", 1))
		p.Event(phaseBegins("compile"))
		p.End(false)
		assert.Equal(t, []string{"load 1.0 s"}, lines)
	})
}
