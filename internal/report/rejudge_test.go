package report_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

func TestRejudge(t *testing.T) {
	one := func(status report.Status, m *report.Metrics) *report.Report {
		return &report.Report{Schema: 1, Verdict: report.Fail, Layers: []report.Layer{row("a", 0, status, m)}}
	}
	for _, c := range []struct {
		tolerance report.Tolerance
		verdict   report.Verdict
		status    report.Status
		reason    string
	}{
		{report.Tolerance{RelL2: f(1e-3), RowRelL2: f(1e-3)}, report.Fail, report.StatusFail, "0.02 is more"},
		{report.Tolerance{RelL2: f(0.05)}, report.Pass, report.StatusPass, "of the tensor and of the worst row"},
		{report.Tolerance{RelL2: f(0.016)}, report.Fail, report.StatusFail, "enough for the tensor, not for its worst row"},
		{report.Tolerance{RelL2: f(0.016), RowRelL2: f(0.03)}, report.Pass, report.StatusPass, "the row has a limit of its own"},
		{report.Tolerance{MSE: f(1e-3)}, report.Pass, report.StatusPass, "4e-4"},
		{report.Tolerance{SNR: f(30)}, report.Pass, report.StatusPass, "36 dB"},
		{report.Tolerance{SNR: f(40)}, report.Fail, report.StatusFail, "36 dB"},
		{report.Tolerance{Cosine: f(0.99)}, report.Pass, report.StatusPass, "2·0.02² is less than 0.01"},
		{report.Tolerance{Cosine: f(0.9995)}, report.Error, report.StatusError, "the tensor's holds; the worst row's may not"},
		{report.Tolerance{Cosine: f(0.9999)}, report.Fail, report.StatusFail, "the tensor's does not hold"},
		{report.Tolerance{Atol: f(0.041), Rtol: f(0)}, report.Pass, report.StatusPass, "no element is further off"},
		{report.Tolerance{Atol: f(0.01), Rtol: f(0)}, report.Fail, report.StatusFail, "the worst element alone decides"},
		{report.Tolerance{Atol: f(0.001), Rtol: f(0.04)}, report.Error, report.StatusError, "neither extreme is outside, but others may be"},
		{report.Tolerance{Atol: f(1e-9), Rtol: f(0.0601)}, report.Pass, report.StatusPass, "no element is relatively further off"},
	} {
		got, err := report.Rejudge(one(report.StatusFail, metrics(0.02, 420)), c.tolerance)
		require.NoError(t, err, c.reason)
		assert.Equal(t, c.verdict, got.Verdict, c.reason)
		assert.Equal(t, c.status, got.Layers[0].Status, c.reason)
	}
	nan := metrics(0.02, 420)
	nan.BadNonFinite = 1
	got, err := report.Rejudge(one(report.StatusFail, nan), report.Tolerance{RelL2: f(10)})
	require.NoError(t, err)
	assert.Equal(t, report.Fail, got.Verdict, "a NaN without its match fails whatever is asked")

	integers := one(report.StatusFail, metrics(0.02, 3))
	integers.Layers[0].Golden.DType, integers.Layers[0].Actual.DType = "int64", "int32"
	got, err = report.Rejudge(integers, report.Tolerance{Atol: f(10), Rtol: f(0)})
	require.NoError(t, err)
	assert.Equal(t, report.Fail, got.Verdict, "integers are compared exactly")

	for _, bad := range []report.Tolerance{{}, {ULP: f(1)}, {TopK: 1}, {KL: f(1)}, {Noise: f(1)}, {RelL2: f(-1)}, {MSE: f(math.NaN())}, {Cosine: f(1.1)}, {SNR: f(math.Inf(1))}} {
		_, err := report.Rejudge(one(report.StatusFail, metrics(0.02, 420)), bad)
		assert.Error(t, err)
	}
}

// A passing input is evidence; an inherited row stays so while its culprit fails; nothing is changed in the report that was given.
func TestRejudgeRun(t *testing.T) {
	r := failing()
	in := row("layers.1", 1, report.StatusFail, metrics(0.5, 400))
	in.Port, in.Kind = "input_0", report.PortInput
	r.Layers = append(r.Layers, in)
	got, err := report.Rejudge(r, report.Tolerance{RelL2: f(1e-3), RowRelL2: f(1e-3)})
	require.NoError(t, err)
	assert.Equal(t, report.Fail, got.Verdict)
	assert.Equal(t, r.Summary.Status[report.StatusInherited], 0, "not counted in the sample")
	assert.Equal(t, 24, report.Count(got.Layers).Status[report.StatusInherited])
	assert.NotNil(t, got.FirstDivergence, "no tolerance decided over the place")
	assert.Equal(t, report.StatusFail, got.Layers[len(got.Layers)-1].Status, "the input differs")

	ok := &report.Report{Schema: 1, Verdict: report.Fail, Kind: "local", FirstDivergence: &report.Divergence{Layer: "a"},
		Layers: []report.Layer{row("a", 0, report.StatusFail, metrics(0.02, 420)), in}}
	got, err = report.Rejudge(ok, report.Tolerance{RelL2: f(0.1)})
	require.NoError(t, err)
	assert.Equal(t, report.Pass, got.Verdict)
	assert.Nil(t, got.FirstDivergence)
	assert.Equal(t, report.StatusIgnored, got.Layers[1].Status, "an input alone fails nothing")
	assert.Equal(t, report.StatusFail, ok.Layers[0].Status, "the report that was given is as it was")
}

// What the figures decide is what the tensors decide.
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
		v, err := recorded.Judge(tg, ta, nil)
		require.NoError(t, err)
		limit := scale * math.Pow(10, 3*rnd.Float64()-1.5)
		cosine := max(1-limit*limit, -1)
		var asked compare.Criteria
		var tol report.Tolerance
		switch rnd.IntN(4) {
		case 0:
			asked.Within = &compare.Tolerance{Atol: limit, Rtol: limit * rnd.Float64()}
			tol.Atol, tol.Rtol = f(asked.Within.Atol), f(asked.Within.Rtol)
		case 1:
			asked.RelL2 = &limit
			tol.RelL2 = f(limit)
		case 2:
			asked.Cosine = &cosine
			tol.Cosine = f(cosine)
		case 3:
			asked.MSE = &limit
			tol.MSE = f(limit)
		}
		want, err := asked.Judge(tg, ta, nil)
		require.NoError(t, err)
		l := row("a", 0, report.StatusPass, report.MetricsOf(v.Result, tg.Shape()))
		l.Tolerance = report.ToleranceOf(recorded, "")
		got, err := report.Rejudge(&report.Report{Schema: 1, Verdict: report.Pass, Layers: []report.Layer{l}}, tol)
		require.NoError(t, err)
		if got.Verdict == report.Error {
			continue
		}
		wider := report.Float(2 * limit)
		again, err := report.Rejudge(got, report.Tolerance{Atol: &wider, Rtol: &wider})
		require.NoError(t, err)
		direct, err := report.Rejudge(&report.Report{Schema: 1, Verdict: report.Pass, Layers: []report.Layer{l}}, report.Tolerance{Atol: &wider, Rtol: &wider})
		require.NoError(t, err)
		require.Equal(t, direct.Verdict, again.Verdict, "what was judged in between changes nothing")
		decided++
		require.Equal(t, want.Pass, got.Verdict == report.Pass, "%+v", asked)
	}
	assert.Greater(t, decided, 2000)
}
