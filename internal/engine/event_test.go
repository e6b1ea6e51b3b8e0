package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/supervise"
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

func TestClassAndText(t *testing.T) {
	var tail []string
	for i := range 200 {
		tail = append(tail, fmt.Sprintf("line %d", i))
	}
	for _, tt := range []struct {
		err    error
		class  string
		log    int // number of lines that are shown
		reason string
	}{
		{&engine.Error{Class: "infra", Msg: "no torch"}, "infra", 0, "the machine"},
		{&engine.Error{Class: "infra", Msg: "it could not be started", Err: &supervise.StartError{Path: "x", Err: fs.ErrNotExist}},
			"infra", 0, "no program"},
		{&engine.Error{Class: "crash", Err: &supervise.ExitError{Name: "python", Signal: "SIGSEGV", Tail: tail}},
			"crash", 30, "the end of the log"},
		{&engine.Error{Class: "crash", Err: &supervise.ExitError{Name: "python", Code: 3, Tail: tail[:2]}}, "crash",
			2, "all lines of a short log"},
		{&engine.Error{Class: "crash", Err: &supervise.ExitError{Name: "python",
			Code: 3, Tail: []string{"line 0", "line " + strings.Repeat("x", 60000)}}}, "crash",
			0, "one endless line keeps its end"},
		{&engine.Error{Class: "crash", Err: &supervise.ExitError{Name: "python",
			Code: 3, Tail: []string{"line 0", "line " + strings.Repeat("x", 2999), "line 2"}}}, "crash",
			1, "what fits"},
		{fmt.Errorf("engine: %w", &supervise.ExitError{Name: "python", Tail: tail, Err: context.DeadlineExceeded}),
			"timeout", 30, "what the engine was doing"},
		{fmt.Errorf("supervise: stopped: %w", context.Canceled), "stopped", 0, "Ctrl-C"},
		{&engine.Error{Class: "model", Msg: "no weight"}, "model", 0, "the model"},
		{&engine.Error{Class: "usage", Msg: "token 5000"}, "usage", 0, "the job is impossible"},
		{errors.New("fixture.yaml:3: unknown key"), "fixture", 0, "anything else"},
	} {
		assert.Equal(t, tt.class, engine.Class(tt.err), tt.reason)
		text := engine.Text(tt.err)
		assert.Contains(t, text, tt.err.Error())
		assert.Equal(t, tt.log, strings.Count(text, "\n  line "), tt.reason)
		assert.Less(t, len(text), 4096)
	}
}
