package paths_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/match"
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

var (
	whole  = [][]dump.PassItem{{part(0, 0, 5)}}
	decode = [][]dump.PassItem{{part(0, 0, 3)}, {part(0, 3, 4)}, {part(0, 4, 5)}}
)

// A forward pass of one token is measured against all tokens: in one pass it would be one of many. Along a path with
// goldens of its own the reference may have lost something: who computes there what it does in one pass is right as
// well. And a candidate of 16 bits is judged by what they cost the reference, along that path and in one pass.
func TestGatesAlongPaths(t *testing.T) {
	const cost = 0.4 // of bfloat16, far beyond the usual limits
	golden := gate(t, "golden", "one-pass", "", whole, 0)
	own := paths.Runs{Golden: standard(gate(t, "golden", "decode:2", "", decode, 0.5)), OnePassGolden: standard(golden),
		OnePass: []*dump.Run{gate(t, "actual1", "one-pass", "", whole, 0)}}
	costly := paths.Runs{Golden: standard(gate(t, "golden", "decode:2", "float32", decode, 0)),
		OnePassGolden: standard(gate(t, "golden1", "one-pass", "float32", whole, 0)),
		OnePass:       []*dump.Run{gate(t, "actual1", "one-pass", "bfloat16", whole, cost)}}
	told := costly
	told.Golden.Encoded = []*dump.Run{gate(t, "encoded", "decode:2", "bfloat16", decode, cost)}
	told.OnePassGolden.Encoded = []*dump.Run{gate(t, "encoded1", "one-pass", "bfloat16", whole, cost)}
	for _, tt := range []struct {
		runs     paths.Runs
		off      float32
		encoding string
		want     report.Verdict
		reason   string
	}{
		{paths.Runs{Golden: standard(golden)}, 1e-5, "", report.Pass, "1 % of a row near zero, 6e-6 of the others"},
		{paths.Runs{Golden: standard(golden)}, 1e-2, "", report.Fail, "0.6 % of the others"},
		{own, 0.5, "", report.Pass, "as the reference along the path"},
		{own, 0, "", report.Pass, "as the reference in one pass"},
		{own, 1e-4, "", report.Pass, "nearly so, as the tolerances allow"},
		{own, 0.25, "", report.Fail, "neither"},
		{told, cost, "bfloat16", report.Pass, "what 16 bits cost the reference, too"},
		{costly, cost, "bfloat16", report.Fail, "nobody knows what they cost"},
	} {
		tt.runs.Actual, tt.runs.Measured = []*dump.Run{gate(t, "decode", "decode:2", tt.encoding, decode, tt.off)}, true
		p, err := paths.Compare(t.Context(), tt.runs, judge.Options{})
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, p.Report("gate").Verdict, tt.reason)
	}
}

// The cause along a path is looked for where the path is what is wrong.
func TestCausesAlongPaths(t *testing.T) {
	var own paths.Own
	for _, tt := range []struct {
		own    float32
		looked bool
		reason string
	}{
		{0, true, "right in one pass"},
		{0.5, false, "wrong in one pass, which the report is about"},
		{0, true, "right again, and another run than the one that is known"},
	} {
		p, err := paths.Compare(t.Context(), paths.Runs{Own: &own, Golden: standard(gate(t, "golden", "one-pass", "", whole, 0)),
			OnePass: []*dump.Run{gate(t, "actual1", "one-pass", "", whole, tt.own)}, Actual: []*dump.Run{gate(t, "decode", "decode:2", "", decode, 0.5)},
			Measured: true}, judge.Options{})
		require.NoError(t, err, tt.reason)
		assert.Equal(t, report.Fail, p.Report("gate").Verdict, tt.reason)
		assert.Equal(t, tt.looked, p.Along.Causes() != nil, tt.reason)
		assert.NotNil(t, p.Report("gate").Causes, tt.reason)
		const about = "about that, and not about the path; along decode:2 the first divergence is model.gate, or before it, pass 1"
		assert.Equal(t, !tt.looked, strings.Contains(strings.Join(p.Report("gate").Notes, "; "), about), "%s: %v", tt.reason, p.Report("gate").Notes)
	}
}

// twice is a run of one column in one pass, and once more: each port is off by so much the second time.
func twice(t *testing.T, path string, off ...float32) *dump.Run {
	labels := []string{"model.a-output", "model.self_attn-input_0", "model.self_attn-output", "model.b-input_0", "model.b-output"}
	passes := [][]dump.PassItem{{part(0, 0, 3)}, again3}
	if off == nil {
		passes, off = passes[:1], make([]float32, len(labels))
	}
	var entries []dump.Entry
	for k := range passes {
		for i, name := range labels {
			e := float32(k) * off[i]
			x, err := tensor.Of([]float32{1 + e, -2 + e, 1.5 + e}, 3, 1)
			require.NoError(t, err)
			layer, port, _ := strings.Cut(name, "-")
			entries = append(entries, dump.Entry{Step: strconv.Itoa(k), Layer: layer, Port: port, Tensor: x})
		}
	}
	return dump.New("run", dump.Info{Schema: dump.Schema, Engine: "test", Case: "c", Mode: dump.Standard, TokenIDs: json.RawMessage("[[4,8,15]]"), Path: path,
		Passes: passes}, dump.OrderRunFile, entries)
}

func standard(runs ...*dump.Run) paths.Goldens { return paths.Goldens{Standard: runs} }

var again3 = []dump.PassItem{again(0, 3)}

// A later run of the same tokens that gives something else is not steady: what it was given says whether that is proven.
func TestUnsteady(t *testing.T) {
	const e = 1e-6 // within all tolerances
	for _, tt := range []struct {
		off    []float32
		layer  string // "": it is steady
		proven bool
		text   string
		reason string
	}{
		{[]float32{0, 0, 0, 0, 0}, "", false, "", "the same"},
		{[]float32{0, 0, 0, 0, e}, "model.b", true, ", though the layer was given the same, bit for bit", "given the same"},
		{[]float32{0, 0, 0, e, e}, "model.b", false, "", "given something else"},
		{[]float32{e, e, e, e, e}, "model.a", true, ", though all that was recorded before it is the same, bit for bit", "the first of all"},
		{[]float32{0, 0, e, 0, 0}, "model.self_attn", false, ", or the cache that it reads holds another content", "it reads a cache"},
	} {
		p, err := paths.Compare(t.Context(), paths.Runs{Golden: standard(twice(t, "one-pass")), Actual: []*dump.Run{twice(t, "repeat:2", tt.off...)}}, judge.Options{})
		require.NoError(t, err, tt.reason)
		r := p.Report("x")
		assert.Equal(t, tt.layer == "", r.Verdict == report.Pass, tt.reason)
		assert.Equal(t, tt.layer == "", r.Paths[0].Repeats.Holds, tt.reason)
		assert.Equal(t, []int{2, 6}, []int{r.Paths[0].Passes, r.Paths[0].Rows}, tt.reason)
		if tt.layer != "" {
			require.Len(t, r.Causes, 1, tt.reason)
			c := r.Causes[0]
			assert.Equal(t, []any{tt.layer, tt.proven, "another result than in the first run of the same tokens" + tt.text}, []any{c.Layer, c.Proven, c.Text}, tt.reason)
			assert.Equal(t, map[bool]string{true: c.ID}[tt.proven], r.Paths[0].Cause, tt.reason)
		}
	}
}

// What is ignored has to be there, and runs have to be along their paths.
func TestRefused(t *testing.T) {
	golden, along, short := standard(twice(t, "one-pass")), []*dump.Run{twice(t, "repeat:2", 0, 0, 0, 0, 0)}, []*dump.Run{twice(t, "repeat:2")}
	for _, tt := range []struct {
		runs                paths.Runs
		ignore, err, reason string
	}{
		{paths.Runs{Golden: golden, Actual: along}, "model.b", "", "a layer is ignored"},
		{paths.Runs{Golden: golden, Actual: along}, "model.b-output", "", "a port is"},
		{paths.Runs{Golden: golden, Actual: along}, "model.none", `ignore "model.none" matches no layer or port of the runs`, "nothing is"},
		{paths.Runs{Golden: golden, Actual: along}, "[", `ignore "["`, "no pattern"},
		{paths.Runs{Golden: golden, Actual: short}, "model.b", "run: path not taken: repeat:2", "one of two runs"},
		{paths.Runs{Golden: golden, Actual: short, Forced: true}, "model.b", "", "forced along a text, in whichever forward passes"},
		{paths.Runs{Golden: standard(twice(t, "repeat:3", 0, 0, 0, 0, 0)), Actual: along}, "model.b", "want a run of one pass", "a golden of another path"},
		{paths.Runs{Golden: golden, Actual: along, OnePass: along}, "model.b", "the candidate's own one pass: run was run along repeat:2", "its own of a path"},
	} {
		opt := judge.Options{Match: match.Options{Ignore: []match.Ignore{{Pattern: tt.ignore, Reason: "a test"}}}}
		_, err := paths.Compare(t.Context(), tt.runs, opt)
		if tt.err == "" {
			assert.NoError(t, err, tt.reason)
		} else {
			assert.ErrorContains(t, err, tt.err, tt.reason)
		}
	}
}
