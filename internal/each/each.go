// Package each runs one function for many indices on all cores.
package each

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// Do calls f for 0 … n−1 on all cores, and joins the errors in that order. It begins nothing more
// when ctx ends, whose cause is then among the errors.
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
