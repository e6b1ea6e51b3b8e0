package report_test

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
	"github.com/goparity/goparity/internal/weights"
)

// sentinel is a report in which each field that people read holds a word that stands nowhere else.
func sentinel() *report.Report {
	word := func(name string) string { return "zz" + name + "zz" }
	at := 1
	r := failing()
	r.Fixture, r.NotJudged, r.Notes = word("fixture"), []string{word("notjudged")}, []string{word("note")}
	r.Frontier, r.Order = []string{word("frontier"), "b"}, &report.Order{N: 2, Differences: []string{word("order")}}
	r.Coverage.Open = []string{word("open")}
	r.Source.Actual.Name = word("engine")
	d := r.FirstDivergence
	d.Evidence, d.Uncaptured, d.Text = []string{word("evidence")}, []string{word("uncaptured")}, word("text")
	d.Growth = []report.Growth{{Layer: word("growth"), Error: 0.1}, {Layer: "b", Error: 0.1}}
	d.Reference, d.Candidate, d.Piece = word("reference"), word("candidate"), &report.Piece{From: []string{word("from")}}
	r.Causes = []report.Cause{{ID: "rope/" + word("cause"), Layer: word("causelayer"), Proven: true, Fit: 1e-7, FitGolden: 0.1, Text: word("causetext")}}
	r.Texts = []report.Prompt{{Case: word("promptcase"), Status: report.StatusFail, Text: word("prompttext")}}
	r.Weights = []weights.Result{{Reference: word("weight"), Candidate: word("loaded"), Status: weights.Differs, Cause: "weights/zeros", Detail: word("weighttext")}}
	r.Unmatched = report.Unmatched{Golden: []report.Lone{{Name: word("lone"), Nearest: word("nearest"), Hint: word("hint")}},
		Actual: []report.Lone{{Name: word("own"), Reason: word("reason")}}}
	r.Costs = []report.Cost{{Layer: word("cost")}}
	r.Generations = []report.Generation{{Case: word("generationcase"), Verdict: "diverged", At: &at, Text: word("generation"), Tokens: 4, Logits: word("logits"),
		Reference: word("referencetext"), Own: word("owntext")}}
	r.Serving = &report.Serving{Server: report.Server{URL: word("url"), Model: word("served")}, Verdict: report.Fail, Harness: word("harness"), Notes: []string{word("servingnote")},
		First: &report.ServingPlace{Case: "c"}, Causes: []report.Cause{{ID: "serving/" + word("servingcause"), Text: word("servingtext")}},
		Requests: []report.ServedRequest{{Case: word("asked"), Status: report.StatusFail, Text: word("answer")}}}
	r.Paths = []report.Path{{Path: word("path"), Passes: 2, Matches: &report.Agreement{Outputs: 2, Layer: word("matches"), RowRelL2: 0.5},
		Consistent: &report.Agreement{Outputs: 2, Layer: word("consistent"), RowRelL2: 0.5}, Repeats: &report.Agreement{Outputs: 2, Layer: word("repeats"), RowRelL2: 0.5},
		OnePass: &report.Agreement{Outputs: 2, Layer: word("onepass"), RowRelL2: 0.5},
		First:   &report.Place{Layer: word("pathfirst")}, Cause: word("pathcause")},
		{Path: word("other"), First: &report.Place{Layer: "b"}}}
	failing := slices.IndexFunc(r.Layers, func(l report.Layer) bool { return l.Status == report.StatusFail && l.Layer == d.Layer })
	l := &r.Layers[failing]
	l.Layer, d.Layer = word("layer"), word("layer")
	l.Note, l.Violations, l.Detail = word("rownote"), []string{word("violation")}, []string{word("detail")}
	l.Quantisation = &report.Quantisation{Cost: 0.123456}
	same := *l
	same.Layer, same.Status, same.Benign, same.Note = word("benignlayer"), report.StatusPass, true, word("benign")
	r.Layers = append(r.Layers, same)
	return r
}

// Every form for people says all of what the report found.
func TestNothingIsLeftOut(t *testing.T) {
	data, err := json.Marshal(sentinel())
	require.NoError(t, err)
	words := regexp.MustCompile(`zz\w+zz`).FindAllString(string(data), -1)
	require.Greater(t, len(words), 50)
	for name, write := range map[string]func(io.Writer) error{
		"text": func(w io.Writer) error {
			return report.Text(w, sentinel(), report.TextOptions{Width: 300, File: "r.json"})
		},
		"markdown": func(w io.Writer) error { return report.Markdown(w, sentinel(), "r.json") },
		"html":     func(w io.Writer) error { return export.HTML(w, sentinel(), "r.json") },
	} {
		var b strings.Builder
		require.NoError(t, write(&b), name)
		for _, word := range append(words, "stages:", "12 %", "teacher-forced, in one pass", "docs/causes.md", "parity report") {
			if !strings.Contains(strings.ToLower(strings.ReplaceAll(b.String(), `\`, "")), word) {
				assert.Fail(t, fmt.Sprintf("%s does not say %s", name, word))
			}
		}
	}
}
