package live

import (
	"context"
	"fmt"
	"os"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/gpu"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/internal/transformers"
)

// Run does a job when its device is free. say is told in a line each what a person should know: the GPU, who holds the device, warnings.
//
// Errors: those of engine.Run, gpu.Pick and supervise.Lock.
func Run(ctx context.Context, job engine.Job, opt engine.Options, say func(line string)) (*engine.Result, error) {
	lock := job.Device + ":0"
	if job.Device == engine.GPU {
		device, err := gpu.Pick(ctx, gpu.System())
		if err != nil {
			return nil, err
		}
		say("runs on " + device.String())
		lock = fmt.Sprintf("%s:%d", engine.GPU, device.Index)
		if opt.Env == nil {
			opt.Env = os.Environ()
		}
		opt.Env = device.Environ(opt.Env)
	}
	if len(opt.Program) == 0 {
		overlay, err := transformers.Find(".")
		if err != nil {
			return nil, err
		}
		if overlay != nil {
			say(overlay.String())
			if opt.Env == nil {
				opt.Env = os.Environ()
			}
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
	r, err := engine.Run(ctx, job, opt)
	if err != nil {
		return nil, err
	}
	for _, w := range r.Warnings {
		say(job.Engine + ": " + w)
	}
	return r, nil
}
