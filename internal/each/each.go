// Package each calls a function for many indices on all cores.
package each

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// Do calls f for 0 … n−1 on all cores, and joins the errors in that order. When ctx ends, it makes
// no further calls, and the cause of ctx is among the errors.
func Do(ctx context.Context, n int, f func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				errs[i] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, context.Cause(ctx))...)
}
