package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

func floats(t *testing.T, shape []int, values ...float32) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return x
}

func TestMetricsOf(t *testing.T) {
	g := floats(t, []int{2, 1, 3}, 1, 2, 3, 4, 5, 6)
	a := floats(t, []int{2, 1, 3}, 1, 2, 3.5, 4, 5, 5)
	r, err := compare.Tensors(g, a, compare.Tolerance{Atol: 0.1})
	require.NoError(t, err)
	m := report.MetricsOf(r, g)
	assert.Equal(t, 6, m.N)
	assert.Equal(t, 6, m.Finite)
	assert.Equal(t, 2, m.Mismatches)
	assert.Equal(t, []int{0, 0, 2}, m.FirstMismatchIndex, "element 2")
	assert.Equal(t, []int{1, 0, 2}, m.MaxAbsIndex, "element 5")
	assert.Equal(t, []report.Float{1, 6, 5}, []report.Float{m.MaxAbs, m.MaxAbsGolden, m.MaxAbsActual})
	assert.Equal(t, []int{0, 0, 2}, m.MaxRelIndex, "1/6 and 0.5/3 are equal, the first counts")
	assert.InDelta(t, 1.25/6, float64(m.MSE), 1e-15)
	assert.InDelta(t, math.Sqrt(1.25/91), float64(m.RelL2), 1e-15)
	assert.Equal(t, 1, *m.MaxAbsRow)
	assert.InDelta(t, 1-float64(m.Cosine), float64(m.CosineDistance), 1e-12)
}

func TestMetricsOfCorners(t *testing.T) {
	nan := float32(math.NaN())
	type metrics = map[string]any
	for _, c := range []struct {
		g, a   *tensor.Tensor
		want   metrics
		reason string
	}{
		{floats(t, nil, 1), floats(t, nil, 2), metrics{"max_abs_index": []any{}, "row_index": 0.0}, "a scalar: no axes, one row"},
		{floats(t, []int{2}, 1, 2), floats(t, []int{2}, 1, 2), metrics{"snr_db": "Infinity", "first_mismatch_index": nil},
			"equal: an infinity is a string"},
		{floats(t, []int{2}, nan, 1), floats(t, []int{2}, nan, nan), metrics{"max_abs_index": nil, "max_rel_index": nil, "n_finite": 0.0,
			"bad_non_finite": 2.0, "nan_actual": 2.0, "first_mismatch_index": []any{0.0}}, "no finite pair: no place to name"},
		{floats(t, []int{0, 3}), floats(t, []int{0, 3}), metrics{"n": 0.0, "max_abs_index": nil, "row_index": nil, "max_abs_row": nil},
			"empty: nothing"},
	} {
		r, err := compare.Tensors(c.g, c.a, compare.Tolerance{})
		require.NoError(t, err)
		data, err := json.Marshal(report.MetricsOf(r, c.g))
		require.NoError(t, err)
		var got metrics
		require.NoError(t, json.Unmarshal(data, &got))
		for key, want := range c.want {
			assert.Equal(t, want, got[key], "%s: %s", key, c.reason)
		}
	}
}

func TestToleranceOf(t *testing.T) {
	const half = 0.5
	for _, c := range []struct {
		name   string
		c      compare.Criteria
		want   string
		reason string
	}{
		{"within", compare.Criteria{compare.Atol: 1e-5}, `{"atol":0.00001,"rtol":0,"source":"x"}`,
			"the other part of the tolerance is 0"},
		{"default", compare.Default(tensor.F32, tensor.BF16), `{"rel_l2":0.03,"row_rel_l2":0.08,"source":"x"}`,
			"what was not asked for is left out"},
		{"all", compare.Criteria{compare.Cosine: half, compare.MSE: half, compare.ULP: half, compare.SNR: half,
			compare.KL: half, compare.Noise: half, compare.TopK: 3, compare.EqualNaN: 1},
			`{"cosine":0.5,"mse":0.5,"ulp":0.5,"snr_db":0.5,"kl":0.5,"noise":0.5,"top_k":3,"equal_nan":true,"source":"x"}`, "each has its field"},
	} {
		data, err := json.Marshal(report.ToleranceOf(c.c, "x"))
		require.NoError(t, err, c.reason)
		assert.JSONEq(t, c.want, string(data), "%s: %s", c.name, c.reason)
		var back report.Tolerance
		require.NoError(t, json.Unmarshal(data, &back))
		assert.Equal(t, *report.ToleranceOf(c.c, "x"), back, "%s: read back", c.name)
	}
}

func TestToleranceFromJSON(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   report.Tolerance
		err    string
		reason string
	}{
		{`{"mse":1,"later":2,"source":"a<b"}`,
			report.Tolerance{Criteria: compare.Criteria{compare.MSE: 1}, Source: "a<b"}, "",
			"a criterion of a later version is skipped"},
		{`{"equal_nan":false,"cosine":null}`, report.Tolerance{Criteria: compare.Criteria{}}, "",
			"what is not asked for"},
		{`{"snr_db":"forty"}`, report.Tolerance{}, `snr_db: "forty" is not a number`, "a word"},
		{`{"equal_nan":1}`, report.Tolerance{}, "equal_nan: ", "a number for a switch"},
		{`[]`, report.Tolerance{}, "cannot unmarshal array", "no object"},
	} {
		var got report.Tolerance
		err := json.Unmarshal([]byte(c.text), &got)
		if c.err != "" {
			assert.ErrorContains(t, err, c.err, c.reason)
			continue
		}
		require.NoError(t, err, c.reason)
		assert.Equal(t, c.want, got, c.reason)
	}
}

// What a failing row says of its two tensors.
func TestExplain(t *testing.T) {
	ints := func(values ...int64) *tensor.Tensor {
		x, err := tensor.Of(values, 2, 2)
		require.NoError(t, err)
		return x
	}
	four := func(values ...float32) *tensor.Tensor { return floats(t, []int{2, 2}, values...) }
	many := func(off float32) *tensor.Tensor {
		values := make([]float32, 600)
		for i := range values {
			values[i] = 1 + off*float32(i%7)
		}
		return floats(t, []int{600, 1}, values...)
	}
	inf := float32(math.Inf(1))
	within := compare.Criteria{compare.Atol: 0.25, compare.Rtol: 0}
	var out bytes.Buffer
	for _, tt := range []struct {
		golden, actual *tensor.Tensor
		c              compare.Criteria
		encoded        *tensor.Tensor
		outside        int
		reason         string
	}{
		{four(1, 2, 3, 4), four(1, 2, 3.5, 4), within, nil, 1, "one element"},
		{four(1, 2, 3, 4), four(1, 2, 3.5, 4), compare.Criteria{compare.RelL2: 1e-3}, nil, 1, "noise, where no elementwise tolerance is asked for"},
		{four(1, 2, 3, 4), four(1, 2, 3.5, 4), compare.Criteria{compare.Cost: 3}, four(1, 2, 3.02, 4), 1, "what the encoding costs"},
		{four(1, 2, 3, 4), four(0, 0, 0, 0), within, nil, 4, "zeros"},
		{four(1, 2, 3, 4), four(1, 2, inf, 4), within, nil, 1, "an infinity alone: no element is the worst"},
		{ints(1, 2, 3, 4), ints(1, 2, 3, 5), compare.Criteria{compare.Atol: 0}, nil, 1, "integers"},
		{four(0, -inf, 0, 0), four(0, 0, 0, 0), within, nil, 1, "a mask"},
		{four(1, 2, 3, 4), four(1, 2, 3.5, 4), compare.Criteria{compare.Rtol: 1e-9}, nil, 1, "no float32 can be as near"},
		{many(0), many(1e-3), compare.Criteria{compare.Atol: 1e-4}, nil, 514, "bins of rows"},
	} {
		v, err := tt.c.Judge(tt.golden, tt.actual, compare.References{Encoded: tt.encoded, Encoding: tensor.BF16})
		require.NoError(t, err)
		var l report.Layer
		assert.Equal(t, tt.outside, l.Explain(tt.golden, tt.actual, tt.c, v, tensor.F32, compare.Floor(tensor.F32)), tt.reason)
		fmt.Fprintf(&out, "%s:\n  %s\n  %d rows %.3g\n  %v\n", tt.reason, strings.Join(l.Detail, "\n  "), l.Rows.N, l.Rows.RelL2, l.Histogram)
	}
	toy.Kept(t, "explain.txt", out.String())
}
