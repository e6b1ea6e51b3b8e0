package supervise

import (
	"context"
	"fmt"
	"time"
)

// WithDeadline returns ctx with a deadline at which an engine must be told to end, so that this can
// be reported before the alarm of go test -timeout, which ends the process at began + timeout; a
// timeout of 0 has none. With left = alarm − now, the deadline is
//
//	alarm − min(DefaultGrace + 1 s, left/4)
//
// so that the engine gets at least three quarters of a short timeout. The context's cause then names
// -timeout. A program that does not end by itself is killed (see [Run]) before the alarm.
func WithDeadline(ctx context.Context, timeout time.Duration, began time.Time) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	left := max(0, time.Until(began.Add(timeout)))
	room := min(DefaultGrace+time.Second, left/4)
	left -= room
	return context.WithDeadlineCause(ctx, time.Now().Add(left), &testTimeoutError{timeout, left, room})
}

// testTimeoutError says which deadline passed. There is room after it until go test's own alarm.
type testTimeoutError struct{ timeout, left, room time.Duration }

func (e *testTimeoutError) Error() string {
	return fmt.Sprintf("go test -timeout %s leaves %s for the engine: give it more, or -timeout 0 for no limit",
		e.timeout, e.left.Round(100*time.Millisecond))
}

func (e *testTimeoutError) Unwrap() error { return context.DeadlineExceeded }
