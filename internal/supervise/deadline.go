package supervise

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Deadline returns when an engine must be told to end so that this can be reported before the alarm
// of go test -timeout. The alarm ends the process at started + testTimeout, where started is when
// the tests began (zero: they begin now). With left = alarm − now, the deadline is
//
//	alarm − min(grace + 1 s, left/4)
//
// so that the engine gets at least three quarters of a short timeout. It is now if the alarm is
// due. ok is false if there is no alarm (testTimeout 0).
func Deadline(now time.Time, testTimeout time.Duration, started time.Time,
	grace time.Duration) (deadline time.Time, ok bool) {
	if testTimeout <= 0 {
		return time.Time{}, false
	}
	if started.IsZero() {
		started = now
	}
	left := max(0, started.Add(testTimeout).Sub(now))
	return now.Add(left - min(grace+time.Second, left/4)), true
}

// WithDeadline returns ctx with the deadline of [Deadline]. When it has passed, the context's cause
// names -timeout and the time that it left. A program that does not end by itself after the deadline
// is killed (see [Run]) before the alarm.
func WithDeadline(ctx context.Context, now time.Time, testTimeout time.Duration, started time.Time,
	grace time.Duration) (context.Context, context.CancelFunc) {
	d, ok := Deadline(now, testTimeout, started, grace)
	if !ok {
		return context.WithCancel(ctx)
	}
	if started.IsZero() {
		started = now
	}
	return context.WithDeadlineCause(ctx, d, &testTimeoutError{testTimeout, d.Sub(now), started.Add(testTimeout).Sub(d)})
}

// testTimeoutError says which deadline passed. There is room after it until go test's own alarm.
type testTimeoutError struct{ timeout, left, room time.Duration }

func (e *testTimeoutError) Error() string {
	return fmt.Sprintf("go test -timeout %s leaves %s for the engine: give it more, or -timeout 0 for no limit",
		short(e.timeout), short(e.left))
}

func (e *testTimeoutError) Unwrap() error { return context.DeadlineExceeded }

// short formats d as people write it: 10m, 2m13s, 1.5s.
func short(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	s := d.Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
