package report_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
)

func encode(t testing.TB, r *report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, r))
	return b.Bytes()
}

func TestWriteFiles(t *testing.T) {
	toy.Kept(t, "pass.json", string(encode(t, passing())))
	toy.Kept(t, "fail.json", string(encode(t, failing())))
	toy.Kept(t, "error.json", string(encode(t, broken())))
}

func TestFloat(t *testing.T) {
	for _, c := range []struct {
		value  float64
		want   string
		reason string
	}{
		{0, "0", "plain"},
		{math.Copysign(0, -1), "-0", "the sign of zero stays"},
		{0.1, "0.1", "shortest digits that read back"},
		{1e-300, "1e-300", "exponent"},
		{math.SmallestNonzeroFloat64, "5e-324", "subnormal"},
		{math.MaxFloat64, "1.7976931348623157e+308", "all digits"},
		{math.NaN(), `"NaN"`, "Python: float('NaN')"},
		{math.Inf(1), `"Infinity"`, "Python: float('Infinity')"},
		{math.Inf(-1), `"-Infinity"`, "Python: float('-Infinity')"},
	} {
		data, err := json.Marshal(report.Float(c.value))
		require.NoError(t, err, c.reason)
		assert.Equal(t, c.want, string(data), c.reason)
		var back report.Float
		require.NoError(t, json.Unmarshal(data, &back), c.reason)
		if math.IsNaN(c.value) {
			assert.True(t, math.IsNaN(float64(back)), c.reason)
		} else {
			assert.Equal(t, math.Float64bits(c.value), math.Float64bits(float64(back)), c.reason)
		}
	}
	for _, bad := range []string{`"word"`, `""`, `true`, `[]`, `1e999`} {
		var f report.Float
		assert.ErrorContains(t, json.Unmarshal([]byte(bad), &f), bad)
	}
}

func TestReadRefuses(t *testing.T) {
	whole := string(encode(t, failing()))
	edited := func(from, to string) string { return strings.Replace(whole, from, to, 1) }
	for _, c := range []struct{ json, want, reason string }{
		{"", "ends before the report does", "the writer died before the first byte"},
		{whole[:len(whole)/2], "ends before the report does", "the writer died in the middle"},
		{whole + whole, "after top-level value", "two runs wrote one file"},
		{"PASS", "not a report.json", "a file of text"},
		{"[]", "not a report.json", "a list"},
		{`{"verdict":"pass"}`, "schema 0", "some other JSON"},
		{edited(`"schema": 1`, `"schema": 2`), "schema 2, this version reads 1", "written by a later version"},
		{edited(`"verdict": "fail"`, `"verdict": "ok"`), `unknown verdict "ok"`, "never taken for a pass"},
		{edited(`"status": "missing"`, `"status": "lost"`), `layers[1] (lm_head output): unknown status "lost"`, "the place is named"},
		{edited(`"verdict": "fail"`, `"verdict": "pass"`), `verdict pass, but layers[0] (layers.3.norm output)`, "edited by hand"},
		{`{"schema":1,"verdict":"pass","layers":[]}`, "nothing was compared", "a pass that compared nothing"},
		{edited(`"max_abs": 0.04`, `"max_abs": "much"`), `"much" is not a number`, "the value is quoted"},
	} {
		_, err := report.Read(strings.NewReader(c.json))
		assert.ErrorContains(t, err, c.want, c.reason)
	}
	_, err := report.Read(strings.NewReader(`{"schema":1,"verdict":"error","later":{"x":1},"layers":null}`))
	assert.NoError(t, err, "a later version of schema 1 may add fields")
}

// Whatever Read takes, every writer can write, and the JSON form is a fixed point.
func FuzzRead(f *testing.F) {
	for _, r := range []*report.Report{passing(), failing(), broken(), toy.DeepReport(1, 0)} {
		f.Add(encode(f, r))
	}
	f.Add([]byte(`{"schema":1,"verdict":"fail","layers":[{"status":"fail","standard":{"n":1}},{"status":"inherited"}],"first_divergence":{}}`))
	f.Add([]byte(`{"schema":1,"verdict":"fail","layers":[{"status":"fail","standard":{"mse":-1,"row_index":-5,"max_abs_index":[-1]},"golden":{"shape":[-1,0]},"rows":{"n":-3,"rel_l2":[]}}]}`))
	f.Add([]byte(`{"schema":1,"verdict":"fail","first_divergence":{},"layers":[{"status":"inherited","injected":{"mse":"NaN","n":-1},"tolerance":{"cosine":7}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := report.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		first := encode(t, r)
		back, err := report.Read(bytes.NewReader(first))
		require.NoError(t, err)
		require.Equal(t, string(first), string(encode(t, back)))
		require.NoError(t, report.Text(io.Discard, r, report.TextOptions{Verbose: true, Width: 1, Color: true}))
		require.NoError(t, report.Markdown(io.Discard, r, "report.json"))
		require.NoError(t, report.Annotations(io.Discard, r))
		for _, d := range []*report.Document{r.Verification(report.Standard), r.Verification(report.Injected), r.Modes()} {
			require.NoError(t, d.Text(io.Discard, report.TextOptions{}))
		}
		_, err = report.Baseline(io.Discard, r, r, report.TextOptions{})
		require.NoError(t, err)
		for _, c := range []compare.Criteria{{compare.RelL2: 1e-3}, {compare.Atol: 1e-3, compare.Rtol: 1e-3}, {compare.Cosine: 0.9}} {
			anew, err := report.Rejudge(r, c, "a test")
			require.NoError(t, err)
			require.NoError(t, report.Write(io.Discard, anew), "what was judged again is a report")
		}
	})
}

// What reaches a report in an error or a warning has no secrets.
func TestNoSecretsInAReport(t *testing.T) {
	const token = "hf_aB3dE5fG7hJ9kLmN1pQrStUvWxYz02468"
	r := &report.Report{Fixture: "x", Verdict: report.Error, Error: "the hub refuses " + token,
		Notes: []string{"fetched from https://me:word@example.com/"}}
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, r))
	require.NoError(t, report.Text(&b, r, report.TextOptions{}))
	require.NoError(t, report.Markdown(&b, r, "report.json"))
	require.NoError(t, report.Annotations(&b, r))
	assert.NotContains(t, b.String(), token)
	assert.NotContains(t, b.String(), "me:word")
	assert.Contains(t, b.String(), "the hub refuses ***")
	assert.Contains(t, r.Error, token, "the report itself stays as it is")
}
