package paths_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/paths"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// gate is a run of one layer of one column, whose third token's row is near zero, and off by off there.
func gate(t *testing.T, name, path, encoding string, passes [][]dump.PassItem, off float32) *dump.Run {
	values := []float32{1, -2, 1.5, 1e-3, 2}
	ids, err := json.Marshal([][]int{{4, 8, 15, 16, 23}})
	require.NoError(t, err)
	var entries []dump.Entry
	for k, pass := range passes {
		rows := append([]float32{}, values[pass[0].From:pass[0].To]...)
		if at := 3 - pass[0].From; at >= 0 && at < len(rows) {
			rows[at] += off
		}
		x, err := tensor.Of(rows, len(rows), 1)
		require.NoError(t, err)
		entries = append(entries, dump.Entry{Step: strconv.Itoa(k), Layer: "model.gate", Port: "output", Tensor: x})
	}
	return dump.New(name, dump.Info{Schema: dump.Schema, Engine: "test", Case: "c", Mode: dump.Standard, TokenIDs: ids, Path: path, Passes: passes,
		Encoding: dump.Encoding{Compute: encoding}}, dump.OrderRunFile, entries)
}

// A forward pass of one token is measured against all tokens: in one pass it would be one of many.
func TestShortRowsAlongPaths(t *testing.T) {
	whole, decode := [][]dump.PassItem{{part(0, 0, 5)}}, [][]dump.PassItem{{part(0, 0, 3)}, {part(0, 3, 4)}, {part(0, 4, 5)}}
	for _, tt := range []struct {
		off    float32
		want   report.Verdict
		reason string
	}{
		{1e-5, report.Pass, "1 % of a row near zero, 6e-6 of the others"},
		{1e-2, report.Fail, "0.6 % of the others"},
	} {
		p, err := paths.Compare(t.Context(), paths.Runs{Golden: []*dump.Run{gate(t, "golden", "one-pass", "", whole, 0)},
			Actual: []*dump.Run{gate(t, "decode", "decode:2", "", decode, tt.off)}, Measured: true}, judge.Options{})
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, p.Report("gate").Verdict, tt.reason)
	}
}

// Along a path with goldens of its own the reference may have lost something: who computes there what it does in one pass
// is right as well.
func TestOwnGoldens(t *testing.T) {
	whole, decode := [][]dump.PassItem{{part(0, 0, 5)}}, [][]dump.PassItem{{part(0, 0, 3)}, {part(0, 3, 4)}, {part(0, 4, 5)}}
	for _, tt := range []struct {
		off    float32
		want   report.Verdict
		reason string
	}{
		{0.5, report.Pass, "as the reference along the path"},
		{0, report.Pass, "as the reference in one pass"},
		{0.25, report.Fail, "neither"},
	} {
		p, err := paths.Compare(t.Context(), paths.Runs{Golden: []*dump.Run{gate(t, "golden", "decode:2", "", decode, 0.5)},
			OnePassGolden: []*dump.Run{gate(t, "golden1", "one-pass", "", whole, 0)}, OnePass: []*dump.Run{gate(t, "actual1", "one-pass", "", whole, 0)},
			Actual: []*dump.Run{gate(t, "decode", "decode:2", "", decode, tt.off)}, Measured: true}, judge.Options{})
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, p.Report("gate").Verdict, tt.reason)
	}
}

// The cause along a path is looked for where the path is what is wrong.
func TestCausesAlongPaths(t *testing.T) {
	whole, decode := [][]dump.PassItem{{part(0, 0, 5)}}, [][]dump.PassItem{{part(0, 0, 3)}, {part(0, 3, 4)}, {part(0, 4, 5)}}
	for _, tt := range []struct {
		own    float32
		looked bool
		reason string
	}{
		{0, true, "right in one pass"},
		{0.5, false, "wrong in one pass, which the report is about"},
	} {
		p, err := paths.Compare(t.Context(), paths.Runs{Golden: []*dump.Run{gate(t, "golden", "one-pass", "", whole, 0)},
			OnePass: []*dump.Run{gate(t, "actual1", "one-pass", "", whole, tt.own)}, Actual: []*dump.Run{gate(t, "decode", "decode:2", "", decode, 0.5)},
			Measured: true}, judge.Options{})
		require.NoError(t, err, tt.reason)
		assert.Equal(t, report.Fail, p.Report("gate").Verdict, tt.reason)
		assert.Equal(t, tt.looked, p.Along().Causes() != nil, tt.reason)
	}
}

// Along a path with goldens of its own a candidate of 16 bits is judged by what they cost the reference
// along that path, and in one pass by what they cost it there.
func TestCostsAlongPaths(t *testing.T) {
	whole, decode := [][]dump.PassItem{{part(0, 0, 5)}}, [][]dump.PassItem{{part(0, 0, 3)}, {part(0, 3, 4)}, {part(0, 4, 5)}}
	const cost = 0.4 // of bfloat16, far beyond the usual limits
	runs := paths.Runs{
		Golden: []*dump.Run{gate(t, "golden", "decode:2", "float32", decode, 0)}, Encoded: []*dump.Run{gate(t, "encoded", "decode:2", "bfloat16", decode, cost)},
		OnePassGolden: []*dump.Run{gate(t, "golden1", "one-pass", "float32", whole, 0)}, OnePassEncoded: []*dump.Run{gate(t, "encoded1", "one-pass", "bfloat16", whole, cost)},
		Actual: []*dump.Run{gate(t, "actual", "decode:2", "bfloat16", decode, cost)}, OnePass: []*dump.Run{gate(t, "actual1", "one-pass", "bfloat16", whole, cost)},
		Measured: true,
	}
	p, err := paths.Compare(t.Context(), runs, judge.Options{})
	require.NoError(t, err)
	assert.Equal(t, report.Pass, p.Report("gate").Verdict)
	runs.Encoded, runs.OnePassEncoded = nil, nil
	p, err = paths.Compare(t.Context(), runs, judge.Options{})
	require.NoError(t, err)
	assert.Equal(t, report.Fail, p.Report("gate").Verdict, "nobody knows what it costs")
	assert.False(t, p.OnePassHolds())
}
