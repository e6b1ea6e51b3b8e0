package session

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// Injection writes the golden inputs of a case into dir as the candidate lays them out, and returns
// what an injected run is told. The standard run of the case says which input of the candidate each
// golden one is. Only the first step is injected: a graph has one size for each input.
func Injection(k judge.Case, opt match.Options, dir string) (*engine.Golden, error) {
	res, err := k.Match(k.Actual, opt)
	if err != nil {
		return nil, err
	}
	g := &engine.Golden{File: filepath.Join(dir, k.Name+".safetensors"), Left: map[string]string{}}
	var named []tensor.Named
	first := k.Actual.Steps()[0]
	done := map[string]bool{}
	for _, pair := range res.Pairs {
		a := k.Actual.Entries[pair.Actual[0]]
		name := a.Label()
		if a.Step != first || !label.IsInput(a.Port) || done[name] {
			continue // the input of a fused layer belongs to several goldens, which are one
		}
		t, left := asCandidate(k, pair)
		if left != "" {
			g.Left[name] = left
			continue
		}
		done[name] = true
		delete(g.Left, name)
		named = append(named, tensor.Named{Name: name, Tensor: t})
		g.Inputs = append(g.Inputs, engine.GoldenInput{Label: name, Golden: k.Golden.Entries[pair.Golden[0]].Label()})
	}
	if len(g.Inputs) == 0 {
		return nil, fmt.Errorf("case %s: no golden input can be given to the candidate: no injected run", k.Name)
	}
	for _, u := range res.UnmatchedActual {
		if a := k.Actual.Entries[u.Index]; a.Step == first && label.IsInput(a.Port) && u.Reason != "" {
			g.Left[a.Label()] = u.Reason
		}
	}
	out, err := os.OpenFile(g.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	ranges, err := safetensors.WriteUnique(out, named, nil)
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, err
	}
	for i := range g.Inputs {
		g.Inputs[i].Name = ranges[i].Name
	}
	return g, nil
}

// asCandidate returns a pair's golden input as the candidate lays it out, or why it is left out.
func asCandidate(k judge.Case, pair match.Pair) (t *tensor.Tensor, left string) {
	golden, actual := k.Golden.Entries[pair.Golden[0]].Tensor, k.Actual.Entries[pair.Actual[0]].Tensor
	switch {
	case pair.Problem != "":
		return nil, pair.Problem
	case pair.Mask:
		return nil, "a mask: each engine has its own form of it"
	case !golden.DType().IsFloat():
		return nil, "integers select, they are not computed"
	case len(pair.Golden) > 1 || len(pair.Actual) > 1:
		return nil, "the golden has several tensors here"
	}
	if back, ok := pair.ActualView.Inverse(actual.Shape()); ok {
		t, err := pair.GoldenView.Apply(golden)
		if err == nil {
			t, err = back.Apply(t)
		}
		if err == nil && slices.Equal(t.Shape(), actual.Shape()) {
			return t, ""
		}
	}
	return nil, "the golden cannot be laid out like it"
}

// addInjected adds the candidate's run on golden inputs to each case: a live one if both modes are
// asked for, the recorded one with a replay.
func (f *Fixture) addInjected(cases []judge.Case) error {
	both := f.cfg.Mode == setting.ModeBoth
	if f.isLive() {
		if !both && !(f.cfg.Mode == setting.ModeCan && f.injects()) {
			return nil
		}
		return f.liveInjected(cases)
	}
	if f.replay != "" {
		if both {
			return fmt.Errorf("PARITY_REPLAY=%s is one run: -parity.mode=both needs a live run, or the fixture's recorded ones", f.replay)
		}
		return nil
	}
	if f.injected == nil && both {
		return fmt.Errorf("%s: replay: %s: there is no recorded injected run %s: record it with -parity.run=cpu -parity.mode=both -parity.record=%s",
			f.yaml.File, f.yaml.Replay, filepath.ToSlash(f.runDir(f.yaml.Replay)), f.yaml.Replay)
	}
	for i := range cases {
		for _, r := range f.injected {
			if r.Info.Case == cases[i].Name {
				cases[i].Injected = r
			}
		}
	}
	return nil
}

// injects reports whether the candidate's engine can run on golden inputs.
func (f *Fixture) injects() bool {
	e := f.yaml.Model.Engine
	return !f.yaml.Alone && e.Command == nil && cmp.Or(e.Name, engine.MAX) == engine.MAX
}

// runInputs returns what a recorded run depends on: an injected one also on the golden inputs that it was given.
func (f *Fixture) runInputs(run dump.Info) fixture.Inputs {
	base, _ := dump.CutPathCase(run.Case)
	in := f.yaml.RunInputs(base)
	if run.Mode == dump.Injected {
		if k := f.goldens.Find(f.yaml.Reference(run.Device), run.Case); k != nil {
			in["golden"] = k.Info.SHA256[k.Info.Order[0].File]
		}
	}
	return in
}

// liveInjected runs the candidate once more, each layer on golden inputs, and adds what it computed
// to the cases.
func (f *Fixture) liveInjected(cases []judge.Case) error {
	job, err := f.candidate(f.asked)
	if err != nil {
		return err
	}
	if f.yaml.Alone {
		return fmt.Errorf("%s: an injected run is given golden inputs, and reference: program has none: -parity.mode=standard", f.yaml.File)
	}
	if job.Engine != engine.MAX {
		return fmt.Errorf("%s: only MAX makes injected runs, the candidate is %s: -parity.mode=standard", f.yaml.File, job.Engine)
	}
	dir, err := f.tempDir()
	if err != nil {
		return err
	}
	job.Mode = dump.Injected
	for i := range job.Cases {
		c := &job.Cases[i]
		c.Steps, c.Forced = 1, nil
		if c.Golden, err = Injection(cases[i], f.compareOptions().Match, dir); err != nil {
			return err
		}
	}
	r, err := f.run(job)
	if err != nil {
		return fmt.Errorf("injected run: %w", err)
	}
	f.injected = r.Runs
	for i := range cases {
		cases[i].Injected = r.Runs[i]
	}
	return nil
}
