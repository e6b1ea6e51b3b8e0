package session

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/report"
)

// demand is what a fixture.yaml asks for, and whether something judged it.
type demand struct {
	stage, key string
	call       string // of a test that judges it
	command    string // of the command line, with the fixture's folder; empty if all commands judge it
	judged     bool
}

func (d demand) String() string { return fmt.Sprintf("%s (%s in fixture.yaml)", d.stage, d.key) }

// unjudged lists what the fixture asks for, in the order of the stages, and none of its comparisons
// judged. What only a live run brings is asked of live runs alone.
func (f *Fixture) unjudged() (out []demand) {
	if f.yaml == nil {
		return nil
	}
	f.mu.Lock()
	compared, answered := f.compared, f.answered
	servers := len(f.served) > 0 || f.servedErr != nil || f.servedLater
	f.mu.Unlock()
	var tensors, weights, paths, texts bool
	for _, j := range compared {
		list, _ := j.c.Loaded()
		weights = weights || len(list) > 0
		tensors = tensors || j.c.Decided()
		for _, p := range j.probes.paths {
			paths = paths || p.judged.Load()
		}
		for _, g := range j.probes.texts {
			texts = texts || g.judged.Load()
		}
	}
	expects := false
	for _, y := range f.yaml.Cases {
		expects = expects || y.Expect != nil
	}
	for _, d := range []struct {
		asked bool
		demand
	}{
		{f.isLive() && f.yaml.Weights == fixture.WeightsHashes, demand{report.StageWeights, "weights", "parity.Weights(t).Check()", "", weights}},
		{len(compared) > 0, demand{report.StageTensors, "cases", "parity.All(t).Check()", "", tensors || paths || texts}},
		{expects && len(compared) > 0, demand{"answers", "expect", "parity.All(t).Check() of what returns logits", "", answered}},
		{len(f.yaml.Paths) > 0, demand{report.StagePaths, "paths", "parity.Paths(t).Check()", "", paths}},
		{f.yaml.Generation > 0, demand{report.StageGeneration, "generation", "parity.Generation(t).Check()", "", texts}},
		{f.yaml.Serve != nil, demand{report.StageServing, "serve", "parity.Served(t).Check()", "parity serve " + f.dir, servers}},
	} {
		if d.asked && !d.judged {
			out = append(out, d.demand)
		}
	}
	return out
}

// Unjudged says of each fixture that a test used what its fixture.yaml asks for and no test judged.
func (s *Session) Unjudged() (out []string) {
	for _, f := range s.fixtures {
		if !f.used.Load() {
			continue
		}
		var what, calls []string
		for _, d := range f.unjudged() {
			what, calls = append(what, d.String()), append(calls, d.call)
		}
		if len(what) > 0 {
			out = append(out, fmt.Sprintf("no test judged of %s: %s: call %s in a test, or take the key out", f.name,
				strings.Join(what, ", "), strings.Join(calls, ", ")))
		}
	}
	return out
}

// addUnjudged adds to a report what no test judged so far, or what no command did.
func (f *Fixture) addUnjudged(r *report.Report, byTests bool) {
	for _, d := range f.unjudged() {
		switch {
		case r.Error == report.NothingCompared && d.stage == report.StageTensors: // the verdict says it
		case byTests:
			r.NotJudged = append(r.NotJudged, d.String()+": no test judged it with "+d.call)
		case d.command != "":
			r.NotJudged = append(r.NotJudged, d.String()+": "+d.command+" judges it")
		}
	}
}
