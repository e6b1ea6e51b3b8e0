package diagnose

import (
	"errors"
	"fmt"
)

// tryExtra tries a hypothesis of the user in a goroutine and on a scene of its own: one that never ends is left alone when the time is over.
func (s *Scene) tryExtra(h Hypothesis) []Cause {
	type result struct {
		causes []Cause
		err    error
	}
	own := &Scene{Run: s.Run, Kind: s.Kind, Case: s.Case, Step: s.Step, Layer: s.Layer, After: s.After, Before: s.Before, Target: s.Target, ctx: s.ctx}
	done := make(chan result, 1)
	go func() {
		r := result{err: fmt.Errorf("a hypothesis of yours, %T, ended its goroutine", h)}
		defer func() { done <- r }()
		var failed error
		own.Failed = func(err error) { failed = errors.Join(failed, err) }
		r.causes = own.try(h)
		r.err = failed
	}()
	var r result
	select {
	case r = <-done:
	case <-s.ctx.Done():
		r.err = fmt.Errorf("a hypothesis of yours, %T, did not end within the time for causes: those that are built in were not all tried", h)
	}
	if r.err != nil && s.Failed != nil {
		s.Failed(r.err)
	}
	return r.causes
}
