package report_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/internal/weights"
)

// allOfIt is a report in which every part has something to say.
func allOfIt() *report.Report {
	f := func(v report.Float) *report.Float { return &v }
	r := failing()
	r.Layers = slices.DeleteFunc(r.Layers, func(l report.Layer) bool { return l.Status == report.StatusInherited && l.Order > 6 })
	r.Kind, r.Package, r.NotJudged = "local", "example.com/user/model", []string{"text of case talk", "tokens"}
	d := r.FirstDivergence
	d.Text, d.Evidence, d.Reference, d.Candidate = "the layer computes something else", []string{"its inputs agree"}, "x.py:12 a * b", "llama.py:88 MLP"
	d.Piece = &report.Piece{Error: 0.02, RowError: 0.03, Noise: 1e-7, From: []string{"layers.0-output", "layers.1.up-output"}}
	r.Causes[0].Proven, r.Causes[0].Next, r.Causes[0].NextFit = false, "norm/eps", 0.017
	for i := range 7 {
		d.Growth = append(d.Growth, report.Growth{Layer: fmt.Sprint("layers.", i), Error: report.Float(i+1) / 1000, Alone: nan()})
		d.Evidence = append(d.Evidence, fmt.Sprint("evidence ", i))
		r.Coverage.Open = append(r.Coverage.Open, fmt.Sprint("layers.", i, " was not compared"), fmt.Sprint("layers.", i, ".norm was not compared"))
	}
	r.Texts = []report.Prompt{{Case: "talk", Path: "chat", Status: report.StatusPass, First: -1}, {Case: "talk", Path: "completion", Status: report.NotJudged, Text: "no text"}}
	r.Weights = []weights.Result{{Status: "equal", Reference: "a.weight"}, {Status: "equal", Reference: "b.weight"}}
	r.Tokens = report.StatusPass
	r.Paths = alongPaths().Paths
	at := 3
	r.Generations = []report.Generation{
		{Case: "b", Verdict: "tie", At: &at, Text: "a tie at token 3", Incremental: true, Tokens: 8, Agree: 7, Ties: 1, Flat: 0.25, DType: "float32", Logits: "lm_head", Growth: nan()},
		{Case: "a", Verdict: "diverged", At: &at, Text: "token 3 is another", Tokens: 8, Agree: 3, Flat: 0.125, DType: "float32", Logits: "lm_head", KL: 0.5, RelL2: 0.25, Row: 0.375,
			RowMost: 1e-3, Growth: 3, Golden: 2, Actual: 4, Reference: "and so on", Own: "or not",
			Positions: []report.Token{{Reference: 6, Candidate: 7, Choice: "diverged", Gap: 100, OwnGap: -3, KL: 1}}}}
	r.Serving = served(report.Fail)
	r.Serving.Probes, r.Serving.Notes = []string{"the first case alone"}, []string{"the server tells no log-probabilities"}
	r.Costs = []report.Cost{{Layer: "layers.1", Seconds: 0.25, PeakBytes: 3 << 20}, {Layer: "layers.1.up", Seconds: 0.125, PeakBytes: 1 << 20}}
	for i := range r.Layers {
		if l := &r.Layers[i]; l.Layer == "layers.0" || l.Layer == "layers.1" {
			l.Quantisation = &report.Quantisation{Cost: 0.05, RowCost: 0.1, Activations: f(0.0001)}
			l.Standard.Costs = &report.Costs{Cost: 0.4, RowCost: 0.7}
			l.Tolerance.Criteria = compare.Criteria{compare.Cost: 3}
			l.Injected, l.LocalL2, l.InheritedL2 = metrics(0.03, 12), f(0.5), f(0.25)
		}
	}
	benign := row("layers.9", 50, report.StatusPass, metrics(1, 448))
	benign.Benign, benign.Note = true, "what it means is the same"
	unexpected := row("layers.9.extra", 51, report.StatusUnexpected, nil)
	r.Layers = append(r.Layers, benign, unexpected)
	for i := range 12 {
		r.Unmatched.Golden = append(r.Unmatched.Golden, report.Lone{Name: fmt.Sprint("lone.", i), Shape: []int{i}, Hint: fmt.Sprint("hint ", i, "\n")})
		r.Notes = append(r.Notes, fmt.Sprint("note ", i))
	}
	r.Stretches = []report.Stretch{{Case: "hello", Ports: []string{"a-output"}, Text: "written in another way"}}
	r.Source.Live = true
	return r
}

// What a full report says in each form: of every part, with all limits of what is shown.
func TestAll(t *testing.T) {
	r := allOfIt()
	var out bytes.Buffer
	for _, form := range []struct {
		name  string
		write func() error
	}{
		{"text", func() error { return report.Text(&out, r, report.TextOptions{Width: 120, File: "report.json"}) }},
		{"verbose", func() error { return report.Text(&out, r, report.TextOptions{Width: 120, Verbose: true}) }},
		{"below failing tests", func() error {
			return r.Document(report.View{Tested: true, Told: true}).Text(&out, report.TextOptions{})
		}},
		{"verification", func() error { return r.Verification(report.Injected).Text(&out, report.TextOptions{Width: 160}) }},
		{"modes", func() error { return r.Modes().Text(&out, report.TextOptions{Width: 120}) }},
		{"markdown", func() error { return report.Markdown(&out, r, "report.json") }},
	} {
		fmt.Fprintf(&out, "======== %s\n", form.name)
		require.NoError(t, form.write(), form.name)
	}
	toy.Kept(t, "all.txt", out.String())
}
