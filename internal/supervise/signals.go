package supervise

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signals returns a context that the first SIGINT or SIGTERM cancels, so that a running program is
// stopped gracefully. After that both signals have their default effect: a second Ctrl-C ends this
// process at once, and then the watchdog ends the program.
//
// stop must be called when the work is done. If there was a signal, stop raises it again and does
// not return: the process ends by that signal, which shells show as exit code 130 or 143. Signals
// that were ignored when this process started stay ignored.
func Signals(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	came := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	var got os.Signal
	done := make(chan struct{})
	go func() {
		defer close(done)
		if got = <-came; got != nil {
			signal.Stop(came)
			cancel(&signalError{got})
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(came)
		close(came) // one that has just arrived is still received
		<-done
		cancel(nil)
		if got != nil {
			raise(got)
		}
	})
}

type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "signal: " + e.signal.String() }
func (e *signalError) Unwrap() error { return context.Canceled }
