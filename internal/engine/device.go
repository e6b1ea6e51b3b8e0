package engine

import (
	"context"
	"fmt"
	"os"

	"github.com/goparity/goparity/internal/gpu"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/internal/transformers"
)

// RunOnDevice runs a job as go test and the command do: on an existing device, alone on it, and
// with the module's edited copy of transformers if there is one. It passes to say, a line each,
// what a person should know: which GPU it uses, who holds the device, and warnings.
//
// Errors: those of [Run], gpu.Pick and supervise.Lock.
func RunOnDevice(ctx context.Context, job Job, opt Options, say func(line string)) (*Result, error) {
	if opt.Env == nil {
		opt.Env = os.Environ()
	}
	lock := job.Device + ":0"
	if job.Device == GPU {
		device, err := gpu.Pick(ctx, gpu.System())
		if err != nil {
			return nil, err
		}
		say("runs on " + device.String())
		lock = fmt.Sprintf("%s:%d", GPU, device.Index)
		opt.Env = device.Environ(opt.Env)
	}
	if len(opt.Program) == 0 {
		overlay, err := transformers.Find(".")
		if err != nil {
			return nil, err
		}
		if overlay != nil {
			say(overlay.String())
			opt.Env = overlay.Environ(opt.Env)
		}
	}
	unlock, err := supervise.Lock(ctx, lock, func(holder string) {
		say(fmt.Sprintf("waits for the %s, which %s uses", job.Device, holder))
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, err := Run(ctx, job, opt)
	if err != nil {
		return nil, err
	}
	for _, w := range r.Warnings {
		say(job.Engine + ": " + w)
	}
	return r, nil
}
