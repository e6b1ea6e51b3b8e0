package supervise

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signals is a context that the first SIGINT or SIGTERM cancels, so that a running program is
// stopped in order. From then on both signals do what they do by default: a second Ctrl-C ends this
// process at once, and the watchdog the program.
//
// stop must be called when the work is done. If a signal came, stop raises it anew and does not
// return: the process ends by that signal, which shells show as exit code 130 or 143. Signals that
// this process was started to ignore stay ignored.
func Signals(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	came := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	var got os.Signal
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case got = <-came:
			signal.Stop(came)
			cancel(&signalError{got})
		case <-quit:
		}
	}()
	return ctx, sync.OnceFunc(func() {
		close(quit)
		<-done
		signal.Stop(came)
		cancel(nil)
		select {
		case got = <-came: // it came with stop
		default:
		}
		if got != nil {
			raise(got)
		}
	})
}

type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "signal: " + e.signal.String() }
func (e *signalError) Unwrap() error { return context.Canceled }
