package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
)

// What a failing test says of its port: the place and its cause first, as far as they are known.
func TestFailureText(t *testing.T) {
	fails := func(change func(l *report.Layer)) report.Layer {
		l := row("layers.1", 0, report.StatusFail, metrics(0.02, 420))
		l.Violations, l.Detail, l.Note = []string{"row_rel_l2 is 0.02", "rel_l2 is 0.01"}, []string{"all rows"}, "of two"
		change(&l)
		return l
	}
	nothing, unknown := &report.Report{Verdict: report.Fail}, failing()
	unknown.Causes = []report.Cause{}
	said := between()
	said.FirstDivergence.Reference, said.FirstDivergence.Candidate = "x.py:12 a * b", "llama.py:88 MLP"
	said.Causes[0].Text = `x.py:12 a * b: "b → c" reproduces the candidate`
	served := failing()
	served.Kind = report.KindServing
	for _, tt := range []struct {
		l      report.Layer
		found  *report.Report
		told   bool
		want   string
		reason string
	}{
		{fails(func(*report.Layer) {}), failing(), true,
			"layers.1 output: row_rel_l2 is 0.02; rel_l2 is 0.01; the first divergence is layers.1 (activation/gelu-tanh)\n", "told before"},
		{fails(func(*report.Layer) {}), unknown, true, "layers.1 output: row_rel_l2 is 0.02; rel_l2 is 0.01; the first divergence is layers.1\n", "no cause"},
		{fails(func(*report.Layer) {}), served, true, "layers.1 output: row_rel_l2 is 0.02; rel_l2 is 0.01; the first divergence is layers.1\n",
			"the cause is the server's"},
		{fails(func(*report.Layer) {}), said, false, `layers.1, between layers.1.up and layers.1.down: activation/gelu-tanh (proven)
  x.py:12 a * b: "b → c" reproduces the candidate. See docs/causes.md#activation.
  between: The code of layers.1 between layers.1.up and layers.1.down computes something else.
  candidate: llama.py:88 MLP
  layers.1 output: row_rel_l2 is 0.02
  rel_l2 is 0.01
  all rows
  tolerance: default for float32
  joined: of two
`, "the cause has the reference's code"},
		{fails(func(l *report.Layer) { l.Violations, l.Note = nil, "" }), unknown, false, `layers.1, between layers.1.up and layers.1.down
  between: layers.1.up agrees to 3.1e-7 and what layers.1.down was given is off by 2.0e-2.
  layers.1 output: FAIL
  all rows
  tolerance: default for float32
`, "a place without a cause"},
		{fails(func(l *report.Layer) {
			l.Status, l.Violations, l.Detail, l.Tolerance = report.StatusError, nil, nil, nil
		}), nothing, true,
			"layers.1 output: ERROR\n  of two\n", "it could not be compared"},
	} {
		assert.Equal(t, tt.want, tt.l.FailureText(tt.found, tt.told), tt.reason)
	}
}

func TestWhere(t *testing.T) {
	for _, tt := range []struct {
		d      report.Divergence
		want   string
		reason string
	}{
		{report.Divergence{Layer: "c"}, "c", "the layer"},
		{report.Divergence{Layer: "c", After: "a"}, "c, after a", "to its end"},
		{report.Divergence{Layer: "c", Before: "b"}, "c, before b", "from its begin"},
		{report.Divergence{Layer: "c", After: "a", Before: "b"}, "c, between a and b", "a part of it"},
		{report.Divergence{Layer: "c", Place: "in c, or between a and c", After: "a"}, "c, or between a and c", "it is open"},
		{report.Divergence{Layer: "c", Place: "in c, or between a and c", After: "a", Before: "b"}, "c, between a and b", "it is known better"},
		{report.Divergence{Layer: "c", Row: &report.Row{Pass: 1, Position: 7}}, "c, pass 1, sequence 0, position 7", "along a path"},
	} {
		assert.Equal(t, tt.want, tt.d.Where(), tt.reason)
	}
}

// The row of a place is that of its layer, else the one at its end, else the first that fails by itself.
func TestDivergentRow(t *testing.T) {
	for _, tt := range []struct {
		layer, before, test string
		want, marked        string
		reason              string
	}{
		{"layers.1", "layers.1.down", "TestX/layers.1", `^TestX$/^layers\.1$`, "\n> fail     layers.1 output", "the layer itself"},
		{"layers.9", "layers.1", "TestX/layers.1", `^TestX$/^layers\.1$`, "\n> fail     layers.1 output", "the layer at its end"},
		{"layers.9", "", "TestX/layers.1", "^TestX$", "\n> fail     layers.3.norm output", "another one: the whole test"},
	} {
		r := failing()
		r.Package, r.Causes = "example.com/x", nil
		r.FirstDivergence.Layer, r.FirstDivergence.Before = tt.layer, tt.before
		for i := range r.Layers {
			if r.Layers[i].Layer == "layers.1" {
				r.Layers[i].Test = tt.test
			}
		}
		command, _ := r.Next("report.json")
		assert.Equal(t, "go test example.com/x -run '"+tt.want+"' -count=1", command, tt.reason)
		var text strings.Builder
		require.NoError(t, report.Text(&text, r, report.TextOptions{}))
		assert.Contains(t, text.String(), tt.marked, tt.reason)
	}
}

func TestEvidence(t *testing.T) {
	for _, tt := range []struct {
		c      report.Cause
		want   string
		reason string
	}{
		{report.Cause{Fit: 1e-7, FitGolden: 0}, "fits the candidate, its NaN and infinities included, which the golden has not; the finite numbers are right", "NaN"},
		{report.Cause{Fit: 1e-7, FitGolden: 0.02, Proven: true}, "fits the candidate to 1e-7, the golden only to 0.02", "proven"},
		{report.Cause{Fit: 0.01, FitGolden: 0.02}, "fits the candidate to 0.01, the golden only to 0.02: it explains 75 % of the squared error", "a guess"},
		{report.Cause{Fit: 0.01, FitGolden: 0.1, Next: "norm/eps", NextFit: 0.2},
			"fits the candidate to 0.01, the golden only to 0.1: it explains 99 % of the squared error, the next best, norm/eps, 0 %", "the next one"},
		{report.Cause{Fit: 0.005, FitGolden: 0.1}, "fits the candidate to 0.005, the golden only to 0.1: it explains nearly all of the squared error", "99.75 %"},
		{report.Cause{Fit: nan(), FitGolden: nan(), Proven: true}, "proven without numbers: by what was recorded", "of a server"},
		{report.Cause{Fit: nan(), FitGolden: 0.5}, "unproven: it predicts no numbers; the golden fits the candidate to 0.5", "a pattern"},
		{report.Cause{Fit: nan(), FitGolden: nan()}, "unproven: it predicts no numbers", "nothing"},
	} {
		assert.Equal(t, tt.want, tt.c.Evidence(), tt.reason)
	}
}
