// Package each calls a function for many indices on all cores.
package each

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/goparity/goparity/internal/mapfile"
)

// Do calls f for 0 … n−1 on all cores, and joins the errors in that order. When ctx ends, it makes
// no further calls, and the cause of ctx is among the errors. A call that reads a file which cannot
// be read any more returns the [*mapfile.Fault].
func Do(ctx context.Context, n int, f func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				errs[i] = mapfile.Guard(func() error { return f(i) })
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, context.Cause(ctx))...)
}
