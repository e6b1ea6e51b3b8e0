package supervise

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// WithDeadline returns ctx with a deadline at which an engine must be told to end, so that this can be reported before
// the alarm of go test -timeout. The alarm ends the process at started + testTimeout, where started is when
// the tests began (zero: they begin now); there is none for a testTimeout of 0. With left = alarm − now, the
// deadline is
//
//	alarm − min(grace + 1 s, left/4)
//
// so that the engine gets at least three quarters of a short timeout. When it has passed, the context's cause
// names -timeout and the time that it left. A program that does not end by itself is killed (see [Run]) before
// the alarm.
func WithDeadline(ctx context.Context, now time.Time, testTimeout time.Duration, started time.Time,
	grace time.Duration) (context.Context, context.CancelFunc) {
	if testTimeout <= 0 {
		return context.WithCancel(ctx)
	}
	if started.IsZero() {
		started = now
	}
	alarm := started.Add(testTimeout)
	left := max(0, alarm.Sub(now))
	left -= min(grace+time.Second, left/4)
	d := now.Add(left)
	return context.WithDeadlineCause(ctx, d, &testTimeoutError{testTimeout, left, alarm.Sub(d)})
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
