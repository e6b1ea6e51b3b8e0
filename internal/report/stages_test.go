package report_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
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
		assert.Equal(t, first.stage, r.FirstStage(report.StatusFail))
		for _, then := range parts[i+1:] {
			for _, order := range [][2]func(*report.Report){{first.add, then.add}, {then.add, first.add}} {
				r := tensors(false)
				order[0](r)
				order[1](r)
				assert.Equal(t, report.Fail, r.Verdict)
				assert.Contains(t, report.Headline(r), heads[first.stage], "%s before %s", first.stage, then.stage)
				assert.Equal(t, first.stage, r.FirstStage(report.StatusFail))
				assert.Equal(t, report.StatusInherited, statuses(r)[then.stage], "%s after %s", then.stage, first.stage)
			}
		}
		r = tensors(true)
		first.add(r)
		want := report.StageTensors
		if i < 2 {
			want = first.stage
		}
		assert.Equal(t, want, r.FirstStage(report.StatusFail))
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
		assert.Equal(t, p.stage, got.FirstStage(report.StatusFail))
		assert.NoError(t, report.Write(t.Output(), got), p.stage)
	}
}

// The part at fault is the first way of running the tokens that is wrong, if those before it are
// known to be right.
func TestBisect(t *testing.T) {
	at := func(k int) *int { return &k }
	forced := func(verdict string, k *int) report.Generation {
		return report.Generation{Case: "a", Verdict: verdict, At: k, Tokens: 8}
	}
	incremental := func(verdict string, k *int) report.Generation {
		g := forced(verdict, k)
		g.Incremental = true
		return g
	}
	served := func(k int) *report.Serving {
		return &report.Serving{Verdict: report.Fail, First: &report.ServingPlace{Case: "a", Token: k}}
	}
	const pass, fail, not = report.StatusPass, report.StatusFail, report.NotJudged
	for _, tt := range []struct {
		generations []report.Generation
		serving     *report.Serving
		want        [3]report.Status
		fault       string
		reason      string
	}{
		{[]report.Generation{forced("diverged", at(3))}, nil, [3]report.Status{fail, not, not}, "graph", "one pass is wrong"},
		{[]report.Generation{forced("logits", at(3)), incremental("diverged", at(3))}, served(3), [3]report.Status{fail, fail, fail}, "graph", "what is after it follows"},
		{[]report.Generation{forced("identical", nil), incremental("diverged", at(3))}, nil, [3]report.Status{pass, fail, not}, "decode state", "right in one pass alone"},
		{[]report.Generation{forced("diverged", at(5)), incremental("diverged", at(3))}, nil, [3]report.Status{pass, fail, not}, "decode state", "one pass is wrong later"},
		{[]report.Generation{incremental("diverged", at(3))}, nil, [3]report.Status{not, fail, not}, "", "no one ran it in one pass"},
		{[]report.Generation{incremental("tie", at(2))}, served(3), [3]report.Status{not, pass, fail}, "harness", "the model's own run is right, a tie is no fault"},
		{nil, served(3), [3]report.Status{not, not, fail}, "", "nothing but the server was asked"},
		{[]report.Generation{incremental("identical", nil)}, served(9), [3]report.Status{not, not, fail}, "", "the model's own run was shorter"},
	} {
		for token, want := range []string{"harness", "harness", ""} { // the rows of the first two passes are right
			r := &report.Report{Serving: served(token)}
			for step := range 2 {
				l := row("lm_head", 0, report.StatusPass, metrics(1e-7, 0))
				l.Case, l.Step = "a", strconv.Itoa(step)
				r.Layers = append(r.Layers, l)
			}
			var text bytes.Buffer
			require.NoError(t, r.Document(report.View{}).Text(&text, report.TextOptions{}))
			assert.Equal(t, want != "", strings.Contains(text.String(), "the harness is at fault"), text.String())
			assert.Equal(t, token == 0, strings.Contains(text.String(), "in one pass: pass"), "only the first token is one of the prompt's pass")
		}
		r := &report.Report{Verdict: report.Fail, Kind: report.StageGeneration, Generations: tt.generations, Serving: tt.serving}
		var out bytes.Buffer
		require.NoError(t, report.Write(&out, r), tt.reason)
		var back struct{ Bisect *report.Bisect }
		require.NoError(t, json.Unmarshal(out.Bytes(), &back), tt.reason)
		if assert.NotNil(t, back.Bisect, tt.reason) {
			b := back.Bisect
			assert.Equal(t, tt.want, [3]report.Status{b.Forced, b.Incremental, b.Served}, tt.reason)
			assert.Equal(t, tt.fault, b.Fault, tt.reason)
			assert.NotEmpty(t, b.Next, tt.reason)
		}
	}
	r := &report.Report{Verdict: report.Fail, Kind: report.StageGeneration, Generations: []report.Generation{incremental("identical", nil)}}
	var out bytes.Buffer
	require.NoError(t, report.Write(&out, r))
	assert.NotContains(t, out.String(), `"bisect"`, "no token is wrong")
}
