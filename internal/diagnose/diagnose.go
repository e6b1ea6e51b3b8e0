package diagnose

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/goparity/goparity/compare"
)

// Diagnose looks for the cause at one place, until ctx ends. The user's hypotheses are tried first.
// The causes come best first; the first may be proven.
func Diagnose(ctx context.Context, s *Scene, hypotheses []Hypothesis, users ...Hypothesis) []Cause {
	var causes []Cause
	s.ctx = ctx
	for _, h := range users {
		if !s.Late() {
			causes = append(causes, s.tryUsers(h)...)
		}
	}
	for _, h := range hypotheses {
		if !s.Late() {
			causes = append(causes, s.try(h)...)
		}
	}
	floor := compare.Limits{}
	if s.Target != nil {
		floor = s.Target.Floor
	}
	return rank(causes, floor.RelL2)
}

// try judges the predictions of one hypothesis. One that panics predicts nothing: it must not take
// the report with it, nor must a file that was truncated under a mapped tensor.
func (s *Scene) try(h Hypothesis) (causes []Cause) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil {
			s.fail(fmt.Errorf("a hypothesis failed: %v", e))
		}
	}()
	for _, p := range h.Predict(s) {
		if c, ok := s.judge(p); ok {
			causes = append(causes, c)
		}
	}
	return causes
}

func (s *Scene) fail(err error) {
	if err != nil && s.Failed != nil {
		s.Failed(err)
	}
}

// tryUsers tries a hypothesis of the user in a goroutine and on a scene of its own: one that never
// ends is left alone when the time is over.
func (s *Scene) tryUsers(h Hypothesis) []Cause {
	type result struct {
		causes []Cause
		err    error
	}
	own := &Scene{Run: s.Run, Kind: s.Kind, Case: s.Case, Step: s.Step, Layer: s.Layer,
		After: s.After, Before: s.Before, Target: s.Target, ctx: s.ctx}
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
		r.err = fmt.Errorf("a hypothesis of yours, %T, did not end within the time for causes: "+
			"those that are built in were not all tried", h)
	}
	s.fail(r.err)
	return r.causes
}
