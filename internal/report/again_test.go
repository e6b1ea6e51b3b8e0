package report_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/internal/weights"
	"github.com/goparity/goparity/tensor"
)

func TestChanges(t *testing.T) {
	of := func(rows ...report.Layer) *report.Report {
		return &report.Report{Schema: 1, Verdict: report.Pass, Layers: rows}
	}
	input := row("a", 0, report.StatusFail, metrics(1, 0))
	input.Kind = label.RoleInput.String()
	a := func(status report.Status, rel float64) *report.Report {
		return of(row("a", 0, status, metrics(rel, 0)))
	}
	const pass, fail = report.StatusPass, report.StatusFail
	for _, c := range []struct {
		old, new *report.Report
		want     report.Class
		reason   string
	}{
		{a(pass, 1e-6), a(pass, 1.9e-6), "", "not even twice"},
		{a(pass, 1e-6), a(pass, 2.1e-6), report.Worse, "more than twice"},
		{a(pass, 2.1e-6), a(pass, 1e-6), report.Better, "less than half"},
		{a(pass, 1e-8), a(pass, 4e-7), "", "less than 8 units of rounding mean nothing"},
		{a(pass, 1e-4), a(fail, 1.01e-4), report.Worse, "over the limit"},
		{a(report.StatusInherited, 1), a(pass, 1e-6), report.Better, "passes now"},
		{a(pass, 1e-6), of(), report.Gone, "not there any more"},
		{a(pass, 1e-6), a(report.StatusIgnored, 1e-6), report.Gone, "not judged any more"},
		{a(pass, 1e-6), of(row("a", 0, report.StatusMissing, nil)), report.Worse, "missing"},
		{of(), a(pass, 1e-6), report.New, "new"},
		{of(), of(input), "", "an input is evidence"},
	} {
		changed(t, c.old, c.new, c.want, c.reason)
	}
}

// changed wants a change of a class, or none.
func changed(t *testing.T, old, now *report.Report, want report.Class, reason string) {
	t.Helper()
	var classes []report.Class
	for _, c := range report.Changes(old, now) {
		classes = append(classes, c.Class)
	}
	if want == "" {
		assert.Empty(t, classes, reason)
	} else {
		assert.Equal(t, []report.Class{want}, classes, reason)
	}
}

func TestBaselineText(t *testing.T) {
	var b bytes.Buffer
	worse, err := report.Baseline(&b, passing(), failing(), report.TextOptions{})
	require.NoError(t, err)
	assert.True(t, worse)
	toy.Kept(t, "baseline.txt", b.String())
	worse, err = report.Baseline(&b, passing(), passing(), report.TextOptions{})
	require.NoError(t, err)
	assert.False(t, worse, "the same")
}

// Every stage has its changes: a server that became wrong beside an old failure is worse.
func TestStageChanges(t *testing.T) {
	served := func(status report.Status) *report.Report {
		return &report.Report{Serving: &report.Serving{Requests: []report.ServedRequest{{Case: "first", As: "ids", Way: "alone", Status: status}}}}
	}
	text := func(status report.Status) *report.Report {
		return &report.Report{Texts: []report.Prompt{{Case: "talk", Path: "chat", Status: status}}}
	}
	made := func(verdict string, tokens int) *report.Report {
		return &report.Report{Generations: []report.Generation{{Case: "a", Verdict: verdict, Tokens: tokens}}}
	}
	loaded := func(status string) *report.Report {
		return &report.Report{Weights: []weights.Result{{Reference: "w", Status: status}}}
	}
	along := func(holds bool) *report.Report {
		return &report.Report{Paths: []report.Path{{Case: "a", Path: "decode:8", Matches: &report.Agreement{Holds: holds, Outputs: 3}}}}
	}
	none := &report.Report{}
	for _, c := range []struct {
		old, now *report.Report
		want     report.Class
		reason   string
	}{
		{served(report.StatusPass), served(report.StatusFail), report.Worse, "a server"},
		{served(report.StatusFail), served(report.StatusPass), report.Better, "and the other way round"},
		{served(report.StatusPass), served(report.StatusError), report.Gone, "no answer"},
		{served(report.StatusPass), none, report.Gone, "no server was asked"},
		{none, served(report.StatusFail), report.Worse, "a new failure"},
		{none, served(report.StatusPass), report.New, "new"},
		{served(report.StatusFail), served(report.StatusFail), "", "wrong as before"},
		{text(report.StatusPass), text(report.StatusFail), report.Worse, "a tokenizer"},
		{text(report.StatusPass), text(report.NotJudged), report.Gone, "a text that is told no more"},
		{made("identical", 32), made("diverged", 32), report.Worse, "a generation"},
		{made("identical", 32), made("identical", 8), report.Gone, "fewer tokens"},
		{made("tie", 32), made("identical", 32), "", "a tie passes, too"},
		{made("identical", 32), made("too flat", 32), report.Gone, "nothing was decided"},
		{loaded("equal"), loaded("differs"), report.Worse, "a weight"},
		{along(true), along(false), report.Worse, "a path"},
		{&report.Report{Tokens: report.StatusPass}, &report.Report{Tokens: report.StatusFail}, report.Worse, "tokens"},
	} {
		changed(t, c.old, c.now, c.want, c.reason)
	}
	for _, c := range []struct {
		old, now *report.Report
		want     string
	}{
		{made("identical", 32), made("identical", 8), "generation a: pass of 32 → pass of 8"},
		{none, text(report.StatusPass), "text talk chat: not judged → pass"},
		{text(report.StatusPass), &report.Report{Texts: []report.Prompt{{Case: "talk", Path: "chat", Status: report.StatusFail, Text: "no BOS"}}},
			"text talk chat: pass → fail: no BOS"},
		{&report.Report{Layers: []report.Layer{row("a", 0, report.StatusPass, metrics(1e-7, 0))}},
			&report.Report{Layers: []report.Layer{row("a", 0, report.StatusMissing, nil)}}, "tensors a output hello.0: pass, worst row 1e-7 → missing"},
	} {
		assert.Equal(t, c.want, report.Changes(c.old, c.now)[0].String())
	}
	old, now := failing(), failing()
	old.Serving, now.Serving = served(report.StatusPass).Serving, served(report.StatusFail).Serving
	for _, r := range []*report.Report{old, now} {
		r.Serving.Verdict, r.Serving.Causes = report.Fail, []report.Cause{}
	}
	old.Serving.Verdict = report.Pass
	var b bytes.Buffer
	worse, err := report.Baseline(&b, old, now, report.TextOptions{})
	require.NoError(t, err)
	assert.True(t, worse)
	assert.Contains(t, b.String(), "1 worse")
	assert.Contains(t, b.String(), "serving first as ids, alone: pass → fail")
}

func TestRejudge(t *testing.T) {
	one := func(status report.Status, m *report.Metrics) *report.Report {
		return &report.Report{Schema: 1, Verdict: report.Fail, Layers: []report.Layer{row("a", 0, status, m)}}
	}
	const pass, fail, wrong = report.StatusPass, report.StatusFail, report.StatusError
	type criteria = compare.Criteria
	for _, c := range []struct {
		criteria criteria
		want     report.Status
		reason   string
	}{
		{criteria{compare.RelL2: 1e-3, compare.RowRelL2: 1e-3}, fail, "0.02 is more"},
		{criteria{compare.RelL2: 0.05}, pass, "of the tensor and of the worst row"},
		{criteria{compare.RelL2: 0.016}, fail, "enough for the tensor, not for its worst row"},
		{criteria{compare.RelL2: 0.016, compare.RowRelL2: 0.03}, pass, "the row has a limit of its own"},
		{criteria{compare.MSE: 1e-3}, pass, "4e-4"},
		{criteria{compare.SNR: 30}, pass, "36 dB"},
		{criteria{compare.SNR: 40}, fail, "36 dB"},
		{criteria{compare.Cosine: 0.99}, pass, "2·0.02² is less than 0.01"},
		{criteria{compare.Cosine: 0.9995}, wrong, "the tensor's holds; the worst row's may not"},
		{criteria{compare.Cosine: 0.9999}, fail, "the tensor's does not hold"},
		{criteria{compare.Atol: 0.041, compare.Rtol: 0}, pass, "no element is further off"},
		{criteria{compare.Atol: 0.01, compare.Rtol: 0}, fail, "the worst element alone decides"},
		{criteria{compare.Atol: 0.001, compare.Rtol: 0.04}, wrong, "neither extreme is outside, but others may be"},
		{criteria{compare.Atol: 1e-9, compare.Rtol: 0.0601}, pass, "no element is relatively further off"},
	} {
		got, err := report.Rejudge(one(report.StatusFail, metrics(0.02, 420)), c.criteria, "a test")
		require.NoError(t, err, c.reason)
		assert.Equal(t, string(c.want), string(got.Verdict), c.reason)
		assert.Equal(t, c.want, got.Layers[0].Status, c.reason)
	}
	nan := metrics(0.02, 420)
	nan.BadNonFinite = 1
	got, err := report.Rejudge(one(report.StatusFail, nan), compare.Criteria{compare.RelL2: 0.9}, "a test")
	require.NoError(t, err)
	assert.Equal(t, report.Fail, got.Verdict, "a NaN without its match fails whatever is asked")

	integers := one(report.StatusFail, metrics(0.02, 3))
	integers.Layers[0].Golden.DType, integers.Layers[0].Actual.DType = "int64", "int32"
	got, err = report.Rejudge(integers, compare.Criteria{compare.Atol: 10, compare.Rtol: 0}, "a test")
	require.NoError(t, err)
	assert.Equal(t, report.Fail, got.Verdict, "integers are compared exactly")

	for _, bad := range []compare.Criteria{{}, {compare.ULP: 1}, {compare.TopK: 1}, {compare.KL: 1},
		{compare.Noise: 1}, {compare.RelL2: -1}, {compare.MSE: math.NaN()}, {compare.Cosine: 1.1},
		{compare.SNR: math.Inf(1)}} {
		_, err := report.Rejudge(one(report.StatusFail, metrics(0.02, 420)), bad, "a test")
		assert.Error(t, err)
	}
}

// A passing input is evidence; an inherited row stays so while its culprit fails; the report that
// was given is not changed.
func TestRejudgeRun(t *testing.T) {
	r := failing()
	in := row("layers.1", 1, report.StatusFail, metrics(0.5, 400))
	in.Port, in.Kind = "input_0", label.RoleInput.String()
	r.Layers = append(r.Layers, in)
	got, err := report.Rejudge(r, compare.Criteria{compare.RelL2: 1e-3, compare.RowRelL2: 1e-3}, "a test")
	require.NoError(t, err)
	assert.Equal(t, report.Fail, got.Verdict)
	assert.Equal(t, r.Summary.Status[report.StatusInherited], 0, "not counted in the sample")
	assert.Equal(t, 24, report.Count(got.Layers).Status[report.StatusInherited])
	assert.NotNil(t, got.FirstDivergence, "no tolerance decided the place")
	assert.Equal(t, report.StatusFail, got.Layers[len(got.Layers)-1].Status, "the input differs")

	ok := &report.Report{Schema: 1, Verdict: report.Fail, Kind: "local",
		FirstDivergence: &report.Divergence{Layer: "a"},
		Layers:          []report.Layer{row("a", 0, report.StatusFail, metrics(0.02, 420)), in}}
	got, err = report.Rejudge(ok, compare.Criteria{compare.RelL2: 0.1}, "a test")
	require.NoError(t, err)
	assert.Equal(t, report.Pass, got.Verdict)
	assert.Nil(t, got.FirstDivergence)
	assert.Equal(t, report.StatusIgnored, got.Layers[1].Status, "an input alone fails nothing")
	assert.Equal(t, report.StatusFail, ok.Layers[0].Status, "the report that was given is as it was")
}

// An input that is judged no more leaves nothing that was.
func TestRejudgeInputsAlone(t *testing.T) {
	in := row("a", 0, report.StatusFail, metrics(0.5, 400))
	in.Port, in.Kind = "input_0", label.RoleInput.String()
	got, err := report.Rejudge(&report.Report{Schema: 1, Verdict: report.Fail, Layers: []report.Layer{in}}, compare.Criteria{compare.RelL2: 0.9}, "a test")
	require.NoError(t, err)
	assert.Equal(t, report.Error, got.Verdict)
	assert.Equal(t, "nothing was compared", got.Error)
}

// What is wrong besides the metrics stays wrong.
func TestRejudgeKeepsOtherProblems(t *testing.T) {
	pass := []report.Layer{row("a", 0, report.StatusPass, metrics(1e-6, 0))}
	for _, r := range []*report.Report{
		{Schema: 1, Verdict: report.Fail, Notes: []string{"parity:stale: …"}, Layers: pass},
		{Schema: 1, Verdict: report.Error, Error: "interrupted", Layers: pass},
		{Schema: 1, Verdict: report.Fail, Kind: "input", FirstDivergence: &report.Divergence{Text: "other tokens"},
			Layers: []report.Layer{row("a", 0, report.StatusFail, metrics(0.02, 420))}},
	} {
		got, err := report.Rejudge(r, compare.Criteria{compare.RelL2: 0.1}, "a test")
		require.NoError(t, err)
		assert.Equal(t, r.Verdict, got.Verdict)
		assert.Equal(t, r.Error, got.Error)
		assert.Equal(t, r.Kind, got.Kind)
		assert.Equal(t, r.FirstDivergence, got.FirstDivergence)
	}
}

// What the metrics decide is what the tensors decide.
func TestRejudgeAgreesWithTheTensors(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	decided := 0
	for range 3000 {
		n := 64 * (1 + rnd.IntN(3))
		g, a := make([]float64, n), make([]float64, n)
		scale := math.Pow(10, -6*rnd.Float64())
		for i := range g {
			g[i] = rnd.NormFloat64()
			a[i] = g[i] + scale*rnd.NormFloat64()*rnd.Float64()
		}
		tg, _ := tensor.Of(g, n/64, 64)
		ta, _ := tensor.Of(a, n/64, 64)
		recorded := compare.Default(tensor.F32, tensor.F32)
		v, err := recorded.Judge(tg, ta, compare.References{})
		require.NoError(t, err)
		limit := min(0.49, scale*math.Pow(10, 3*rnd.Float64()-1.5)) // twice that is asked as well
		cosine := 1 - limit*limit
		asked := []compare.Criteria{
			{compare.Atol: limit, compare.Rtol: limit * rnd.Float64()}, {compare.RelL2: limit},
			{compare.Cosine: cosine}, {compare.MSE: limit}, {compare.SNR: -20 * math.Log10(limit)},
		}[rnd.IntN(5)]
		want, err := asked.Judge(tg, ta, compare.References{})
		require.NoError(t, err)
		l := row("a", 0, report.StatusPass, report.MetricsOf(v.Result, tg))
		l.Tolerance = report.ToleranceOf(recorded, "")
		got, err := report.Rejudge(&report.Report{Schema: 1, Verdict: report.Pass, Layers: []report.Layer{l}}, asked,
			"a test")
		require.NoError(t, err)
		if got.Verdict == report.Error {
			continue
		}
		wider := 2 * limit
		again, err := report.Rejudge(got, compare.Criteria{compare.Atol: wider, compare.Rtol: wider}, "a test")
		require.NoError(t, err)
		direct, err := report.Rejudge(&report.Report{Schema: 1, Verdict: report.Pass, Layers: []report.Layer{l}},
			compare.Criteria{compare.Atol: wider, compare.Rtol: wider}, "a test")
		require.NoError(t, err)
		require.Equal(t, direct.Verdict, again.Verdict, "what was judged in between changes nothing")
		decided++
		require.Equal(t, want.Pass, got.Verdict == report.Pass, "%+v", asked)
	}
	assert.Greater(t, decided, 2000)
}

// A row that was judged by what the encoding costs shows how near the limit it is, and is judged again
// by another.
func TestRejudgeCost(t *testing.T) {
	near := metrics(0.02, 0)
	measured := compare.Result{Cost: &compare.Costs{Tensor: 0.4, Row: 2.5, WorstRow: 3, LeftOut: 1}}
	near.Costs = report.MetricsOf(measured, &tensor.Tensor{}).Costs
	l := row("a", 0, report.StatusPass, near)
	l.Tolerance = report.ToleranceOf(compare.Criteria{compare.Cost: 3}, "3 × what bfloat16 costs the reference (torch, eager)")
	r := &report.Report{Schema: 1, Verdict: report.Pass, Layers: []report.Layer{l}}
	assert.Equal(t, "cost 2.5 of 3", l.Limit())

	var b bytes.Buffer
	require.NoError(t, report.Write(&b, r))
	assert.Contains(t, b.String(), `"row_cost": 2.5`)
	assert.Contains(t, b.String(), `"row_cost_index": 3`)
	assert.Contains(t, b.String(), `"cost_left_out": 1`)
	r, err := report.Read(&b)
	require.NoError(t, err)
	assert.Equal(t, near.Costs, r.Layers[0].Standard.Costs)
	for limit, want := range map[float64]report.Verdict{2: report.Fail, 2.6: report.Pass} {
		got, err := report.Rejudge(r, compare.Criteria{compare.Cost: limit}, "a test")
		require.NoError(t, err)
		assert.Equal(t, want, got.Verdict, "%g", limit)
	}
	r.Layers[0].Standard.Costs = nil
	got, err := report.Rejudge(r, compare.Criteria{compare.Cost: 2}, "a test")
	require.NoError(t, err)
	assert.Equal(t, report.StatusError, got.Layers[0].Status, "nothing was measured")
	assert.Contains(t, got.Layers[0].Note, "not among the metrics")
}
