package report_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
)

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
		{[]report.Generation{forced("logits", at(3)), incremental("diverged", at(3))}, served(3), [3]report.Status{fail, fail, fail}, "graph", "what is behind it follows"},
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
