package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/supervise"
)

const (
	// minSelfCosine is what two right dumpers reach on a right model, in float32, at every layer.
	minSelfCosine = 0.999999
	// minSelfPorts is how many outputs the two engines have in common at least: a block has four.
	minSelfPorts = 4 * tinyLayers
	// selfSteps are a prefill and a decode step.
	selfSteps = 2
)

// selftest runs both dumpers on a tiny model made on the spot, whose two runs must agree. Until
// they do, no comparison means anything.
func selftest(ctx context.Context, stdout, stderr io.Writer) error {
	dir, remove, err := supervise.TempDir("", "parity-selftest-")
	if err != nil {
		return err
	}
	defer remove()
	model := filepath.Join(dir, "model")
	if err := tinyModel(model); err != nil {
		return fmt.Errorf("selftest: %w", err)
	}
	job := engine.Job{Engine: engine.Torch, Model: model, Local: true, Task: fixture.TextGeneration,
		Device: engine.CPU, Encoding: "float32",
		Cases: []engine.Case{{Name: "selftest", TokenIDs: [][]int{{72, 101, 108, 108, 111, 44, 32}}, Steps: selfSteps}}}
	golden, err := selfRun(ctx, job, dir, stdout, stderr)
	if err != nil {
		return err
	}
	defer golden.Close()
	if job.Cases[0].Forced, err = golden.Generated(0); err != nil {
		return fmt.Errorf("selftest: %w", err)
	}
	job.Engine = engine.MAX
	actual, err := selfRun(ctx, job, dir, stdout, stderr)
	if err != nil {
		return err
	}
	defer actual.Close()
	return selfCompare(ctx, golden, actual, stdout)
}

// selfRun runs one engine. Its error says which one it was, and what to do.
func selfRun(ctx context.Context, job engine.Job, dir string, stdout, stderr io.Writer) (*engine.Result, error) {
	job.Out = filepath.Join(dir, job.Engine)
	con := newConsole(stderr, job.Engine)
	logFile, err := engine.LogFile("selftest-" + job.Engine)
	if err != nil {
		return nil, err
	}
	r, err := engine.RunOnDevice(ctx, job, engine.Options{Progress: con.Event, LogFile: logFile}, con.say)
	con.Stop(err == nil)
	if err != nil {
		advice := "the engine does not run a model that it should: install it again, in the versions that parity " +
			"doctor lists"
		var infra *engine.InfraError
		if errors.As(err, &infra) {
			advice = "see parity doctor for what is missing"
		}
		return nil, fmt.Errorf("selftest: %s failed: %w: %s", job.Engine, err, advice)
	}
	fmt.Fprintf(stdout, "selftest: %s recorded %d tensors in %d steps\n", job.Engine, len(r.Runs[0].Entries),
		len(r.Runs[0].Steps()))
	return r, nil
}

// selfCompare judges the two runs.
func selfCompare(ctx context.Context, golden, actual *engine.Result, stdout io.Writer) error {
	c, err := judge.Compare(ctx, []judge.Case{{Name: "selftest", Golden: golden.Runs[0], Actual: actual.Runs[0]}},
		judge.Options{Match: match.Options{Generating: true}})
	if err != nil {
		return fmt.Errorf("selftest: the two dumps could not be compared: %w", err)
	}
	const advice = "a dumper records the wrong thing, or an engine is of a version that this one does not know: " +
		"compare no models before this passes"
	n, least, at := 0, 1.0, "all"
	fed := 0 // of the first inputs, and what the embeddings look up for them: equal bit by bit if the inputs are
	for _, p := range c.Ports {
		if !p.Joined() {
			continue
		}
		where := fmt.Sprintf("%s %s, step %s", p.Layer, p.Port, p.Step)
		if p.Err != nil {
			return fmt.Errorf("selftest: %s: %w", where, p.Err)
		}
		r := p.Base.Result
		if !p.Golden.DType().IsFloat() || p.Judged() && p.Layer == "model.model.embed_tokens" {
			if fed++; r.MaxAbs.Value != 0 || r.BadNonFinite != 0 {
				return fmt.Errorf("selftest: the first inputs differ: %s: the two engines were not given the same "+
					"input: %s", where, advice)
			}
		}
		if !p.Judged() {
			continue
		}
		n++
		switch cosine := r.Cosine(); {
		case !(cosine >= minSelfCosine) || r.BadNonFinite != 0:
			return fmt.Errorf("selftest: %s is the first that differs: cosine %.9f, want %v at least: %s", where,
				cosine, minSelfCosine, advice)
		case cosine < least:
			least, at = cosine, where
		}
	}
	if n < minSelfPorts*selfSteps || fed == 0 {
		return fmt.Errorf("selftest: the two dumps have %d outputs and %d first inputs in common, want %d and 1 at "+
			"least: %s", n, fed, minSelfPorts*selfSteps, advice)
	}
	fmt.Fprintf(stdout,
		"selftest: %d outputs compared, the least cosine is %.9f (%s), want %v; first inputs identical\n"+
			"selftest: ok\n", n, least, at, minSelfCosine)
	return nil
}
