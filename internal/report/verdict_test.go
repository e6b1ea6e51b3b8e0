package report_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/weights"
)

// parts are what each stage adds where it is wrong.
var parts = []struct {
	stage string
	add   func(r *report.Report)
}{
	{report.StageText, func(r *report.Report) {
		r.SetPrompts([]report.Prompt{{Case: "c", Path: "chat", Status: report.StatusFail, Text: "no BOS"}}, nil, false)
	}},
	{report.StageWeights, func(r *report.Report) {
		r.SetWeights([]weights.Result{{Reference: "w", Status: weights.Differs, Cause: "weights/zeros"}})
	}},
	{report.StagePaths, func(r *report.Report) {
		along := alongPaths()
		along.Layers = []report.Layer{row("model.a", 0, report.StatusFail, metrics(0.5, 1))}
		along.Layers[0].Stage = report.StagePaths
		r.AddPath("decode:8", along)
	}},
	{report.StageGeneration, func(r *report.Report) {
		at := 3
		wrong := row("lm_head", 0, report.StatusFail, metrics(0.5, 1))
		wrong.Stage = report.StageGeneration
		r.AddGeneration(&report.Report{Verdict: report.Fail, Kind: report.KindGeneration, Layers: []report.Layer{wrong},
			FirstDivergence: &report.Divergence{Layer: "lm_head", Port: "output"},
			Generations:     []report.Generation{{Case: "hello", Verdict: "diverged", At: &at, Tokens: 8, Text: "DIVERGED at token 3 of 8"}}})
	}},
	{report.StageServing, func(r *report.Report) { r.SetServing(served(report.Fail)) }},
}

// tensors is a report of one pass alone.
func tensors(wrong bool) *report.Report {
	if wrong {
		return &report.Report{Verdict: report.Fail, Kind: "local", FirstDivergence: &report.Divergence{Layer: "a", Port: "output"},
			Causes: []report.Cause{}, Layers: []report.Layer{row("a", 0, report.StatusFail, metrics(0.02, 420))}}
	}
	return &report.Report{Verdict: report.Pass, Layers: []report.Layer{row("a", 0, report.StatusPass, metrics(1e-7, 0))}}
}

func statuses(r *report.Report) map[string]report.Status {
	out := map[string]report.Status{}
	for _, s := range r.JudgedStages() {
		out[s.Stage] = s.Status
	}
	return out
}

// The verdict of two stages that are wrong is that of the first, in whichever order they are added; the other one
// follows from it, and what is right is said to be.
func TestTheFirstStageIsTheVerdict(t *testing.T) {
	heads := map[string]string{report.StageText: "another text or other tokens", report.StageWeights: "1 of 1 weight is not the reference's", report.StagePaths: "right in one pass, wrong along",
		report.StageGeneration: "DIVERGED at token 3", report.StageServing: "the server answers wrong", report.StageTensors: "first divergence a"}
	for i, first := range parts {
		r := tensors(false)
		first.add(r)
		assert.Equal(t, report.StatusPass, statuses(r)[report.StageTensors], "%s is wrong, the tensors are right", first.stage)
		assert.Equal(t, first.stage, r.FailedStage())
		for _, then := range parts[i+1:] {
			for _, order := range [][2]func(*report.Report){{first.add, then.add}, {then.add, first.add}} {
				r := tensors(false)
				order[0](r)
				order[1](r)
				assert.Equal(t, report.Fail, r.Verdict)
				assert.Contains(t, report.Headline(r), heads[first.stage], "%s before %s", first.stage, then.stage)
				assert.Equal(t, first.stage, r.FailedStage())
				assert.Equal(t, report.StatusInherited, statuses(r)[then.stage], "%s behind %s", then.stage, first.stage)
			}
		}
		r = tensors(true)
		first.add(r)
		want := report.StageTensors
		if i < 2 {
			want = first.stage
		}
		assert.Equal(t, want, r.FailedStage())
		assert.Contains(t, report.Headline(r), heads[want])
	}
}

// A run along a path alone says nothing of one pass, nor does a generation, nor a server.
func TestWhatWasNotJudgedIsNotSaidToPass(t *testing.T) {
	for _, p := range parts {
		r := &report.Report{Verdict: report.Error, Error: report.NothingCompared}
		p.add(r)
		if p.stage == report.StagePaths {
			for i := range r.Paths {
				r.Paths[i].OnePass = nil
			}
		}
		assert.Equal(t, report.NotJudged, statuses(r)[report.StageTensors], p.stage)
		assert.Equal(t, report.Fail, r.Verdict, "a fault is known, though no output was compared: %s", p.stage)
		assert.Empty(t, r.Error)
	}
	r := &report.Report{Verdict: report.Error, Error: report.NothingCompared}
	r.SetServing(served(report.Pass))
	assert.Equal(t, report.Pass, r.Verdict, "the server was judged, and is right")
}

// Wider limits for the layers excuse no other stage.
func TestRejudgedRowsExcuseNoOtherStage(t *testing.T) {
	for _, p := range parts {
		r := tensors(true)
		p.add(r)
		got, err := report.Rejudge(r, compare.Criteria{compare.RelL2: 0.9}, "a test")
		if p.stage == report.StagePaths || p.stage == report.StageGeneration {
			assert.ErrorContains(t, err, "no execution path and no token", "more than rows")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, report.Fail, got.Verdict, p.stage)
		assert.Equal(t, p.stage, got.FailedStage())
		assert.NoError(t, report.Write(t.Output(), got), p.stage)
	}
}
