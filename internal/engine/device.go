package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/goparity/goparity/internal/supervise"
)

// RunOnDevice runs a job as go test and the command do: on an existing device, alone on it, and
// with the module's edited copy of transformers if there is one. It passes to say, a line each,
// what a person should know: which GPU it uses, who holds the device and how long, what the engine does, and warnings.
//
// Errors: those of [Run] and of supervise.Lock.
func RunOnDevice(ctx context.Context, job Job, opt Options, say func(line string)) (*Result, error) {
	if opt.Env == nil {
		opt.Env = os.Environ()
	}
	job.Device = cmp.Or(job.Device, CPU)
	locks := []string{job.Device + ":0"}
	if job.Device == GPU {
		devices, err := PickGPUs(ctx, System(), opt.Env)
		if err != nil {
			return nil, &Error{Class: ClassInfra, Msg: err.Error(), Err: err}
		}
		locks = nil
		for _, d := range devices {
			say("runs on " + d.String())
			locks = append(locks, GPU+":"+d.ID())
		}
		opt.Env = EnvironOf(devices, opt.Env)
	}
	if len(opt.Program) == 0 {
		overlay, err := FindOverlay(".")
		if err != nil {
			return nil, err
		}
		if overlay != nil {
			say(overlay.String())
			opt.Env = overlay.Environ(opt.Env)
		}
	}
	unlock, waited, err := alone(ctx, job, locks, say)
	if err != nil {
		return nil, err
	}
	defer unlock()
	phases := LogPhases(func(line string) { say(job.Engine + ": " + line) })
	opt.Progress = phases.Event
	r, err := Run(ctx, job, opt)
	phases.Stop(err == nil)
	if err != nil {
		if waited != "" && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w; before that, %s", err, waited)
		}
		return nil, err
	}
	for _, w := range r.Warnings {
		say(job.Engine + ": " + w)
	}
	return r, nil
}

// lockKey switches the locks of devices off.
const lockKey = "PARITY_LOCK"

// alone waits until no other process of this user runs an engine on the devices of these locks.
// waited says for whom and how long, if that took time. torch, MAX and MLX take all cores and the
// memory that there is; another program, which may do anything, is kept from others on a GPU only. Nothing
// is locked if PARITY_LOCK is off.
func alone(ctx context.Context, job Job, locks []string, say func(string)) (unlock func(), waited string, err error) {
	switch v := os.Getenv(lockKey); v {
	case "", "on":
	case "off":
		return func() {}, "", nil
	default:
		return nil, "", &Error{Class: ClassUsage, Msg: fmt.Sprintf("%s is %q", lockKey, v), Hint: "want on or off"}
	}
	taken := []func(){}
	unlock = func() {
		for _, u := range taken {
			u()
		}
	}
	if Requirements[job.Engine] == "" && job.Device != GPU {
		return unlock, "", nil
	}
	began, first := time.Now(), ""
	waiting := func(holder string) {
		first = cmp.Or(first, holder)
		left := ""
		if deadline, ok := ctx.Deadline(); ok {
			left = fmt.Sprintf("; %s are left until the deadline of this test", time.Until(deadline).Round(time.Second))
		}
		say(fmt.Sprintf("waits for the %s, which %s uses%s (%s=off does not wait)", job.Device, holder, left, lockKey))
	}
	for _, name := range slices.Sorted(slices.Values(locks)) { // in one order: two processes never wait for each other
		u, err := supervise.Lock(ctx, name, waiting)
		if err != nil {
			unlock()
			return nil, "", fmt.Errorf("%w: %s=off does not wait", err, lockKey)
		}
		taken = append(taken, u)
	}
	if first != "" {
		waited = fmt.Sprintf("%s were spent waiting for the %s, held by %s", time.Since(began).Round(time.Second),
			job.Device, first)
		say(waited)
	}
	return unlock, waited, nil
}
