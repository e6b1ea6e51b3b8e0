package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/session"
)

// inject runs the candidate of a job on golden inputs, in step 0 of each case. It returns the
// judgement of the candidate's two runs, and the injected run.
func inject(t *testing.T, interpreter string, j engine.Job, golden,
	actual *engine.Result) (*judge.Comparison, *engine.Result) {
	t.Helper()
	dir := t.TempDir()
	var cases []judge.Case
	j.Mode, j.Cases = dump.Injected, append([]engine.Case(nil), j.Cases...)
	for i, g := range golden.Runs {
		k := judge.Case{Name: g.Info.Case, Golden: g, Actual: actual.Runs[i]}
		var err error
		j.Cases[i].Golden, err = session.Injection(k, match.Options{}, dir)
		require.NoError(t, err)
		j.Cases[i].Steps, j.Cases[i].Forced = 1, nil
		cases = append(cases, k)
	}
	injected := run(t, interpreter, j)
	for i := range cases {
		cases[i].Injected = injected.Runs[i]
	}
	c, err := judge.Compare(t.Context(), cases, judge.Options{})
	require.NoError(t, err)
	return c, injected
}

// Tests with Full in their names compile graphs of their own: make live-full runs them, make live
// does not.

func TestLiveInjectedModule(t *testing.T)     { injectModule(t, "oracle.py") }    // max.nn
func TestFullLiveInjectedModule(t *testing.T) { injectModule(t, "oracle_v3.py") } // max.experimental.nn

func injectModule(t *testing.T, oracle string) {
	interpreter := live(t)
	j := engine.Job{Model: engine.Model{Task: "module", Oracle: filepath.Join("testdata", oracle)}, Cases: []engine.Case{
		{Name: "ids", TokenIDs: [][]int{{1, 5, 9, 2, 33, 60, 7}}},
	}}
	j.Engine = engine.Torch
	golden := run(t, interpreter, j)
	j.Engine = engine.MAX
	actual := run(t, interpreter, j)
	_, judged, failed := judgeRuns(t, golden, actual)
	assert.GreaterOrEqual(t, judged, 10)
	assert.Empty(t, failed)
	for _, r := range []*engine.Result{golden, actual} {
		_, tapped := r.Runs[0].Find("0", "hidden", "tap")
		assert.True(t, tapped || oracle != "oracle.py", "parity_tap in both engines")
	}
	c, injected := inject(t, interpreter, j, golden, actual)
	info := injected.Runs[0].Info
	assert.Equal(t, dump.Nested, info.Injection)
	assert.Len(t, info.Injected, 9, "norm, up, down and the block itself in two blocks, and the last norm")
	assert.NotEmpty(t, info.Left, "token ids are left alone")
	computed := 0
	for _, e := range injected.Runs[0].Entries {
		if strings.HasPrefix(e.Port, "computed_") {
			computed++
		}
	}
	assert.Equal(t, len(info.Injected), computed, "what was computed for each input that was replaced")
	for _, p := range c.Ports {
		if p.Joined() && p.Judged() {
			assert.Equal(t, report.StatusPass, p.Decide(nil, "", false).Row.Status, p.Layer)
		}
	}
}

// Two prompts of different lengths: the reference pads them, MAX does not, and computes the last
// rows only at the end.
func TestFullLivePaddedBatch(t *testing.T) {
	interpreter := live(t)
	j := engine.Job{Model: engine.Model{Path: tinyLlama(t, interpreter), Task: "text-generation"}, Cases: []engine.Case{
		{Name: "two", TokenIDs: [][]int{{72, 101, 108, 108, 111, 44, 32}, {84, 104, 101}}, Steps: 2},
	}}
	j.Engine = engine.Torch
	golden := run(t, interpreter, j)
	require.NotEmpty(t, golden.Runs[0].Info.PadMask)
	forced, err := golden.Generated(0)
	require.NoError(t, err)
	j.Engine, j.Cases[0].Forced = engine.MAX, forced
	actual := run(t, interpreter, j)
	c, judged, failed := judgeRuns(t, golden, actual)
	assert.Greater(t, judged, 50)
	assert.Empty(t, failed)
	assert.Nil(t, c.Verdict)
	for _, p := range c.Ports {
		if p.Layer == "model.lm_head" && p.Port == "output" {
			assert.True(t, p.Joined(), "the last row of each sequence, step %s", p.Step)
		}
	}
}

// Only captured ports become part of the graph.
func TestFullLiveCapture(t *testing.T) {
	interpreter := live(t)
	j := engine.Job{Engine: engine.MAX, Model: engine.Model{Task: "module", Oracle: "testdata/oracle.py"},
		Cases:   []engine.Case{{Name: "ids", TokenIDs: [][]int{{1, 5, 9}}}},
		Capture: engine.Capture{Layers: []string{"layers.1", "norm"}, Ports: []string{"output"}}}
	assert.ElementsMatch(t, []string{"model.layers.layers.1-output", "model.layers.layers.0.norm-output",
		"model.layers.layers.1.norm-output", "model.norm-output"}, labels(run(t, interpreter, j).Runs[0]))
}
