package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
	"github.com/goparity/goparity/internal/toy"
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

// Every report that Read accepts can be written by every writer, whatever it lacks: here all ways to
// put parts together, of which each is there or not.
func TestWhatIsAcceptedIsWritten(t *testing.T) {
	parts := [][]string{
		{`"verdict":"pass"`, `"verdict":"fail"`, `"verdict":"incomplete"`, `"verdict":"error"`},
		{``, `"kind":"text"`, `"kind":"input"`, `"kind":"weights"`, `"kind":"path"`, `"kind":"unordered"`, `"kind":"serving"`,
			`"kind":"local"`, `"kind":"drift"`},
		{``, `"first_divergence":{}`, `"first_divergence":{"layer":"a","port":"output","place":"in a","row":{}}`},
		{``, `"layers":[{"layer":"a","port":"output","status":"ignored"}]`, `"layers":[{"layer":"a","port":"output","status":"pass","standard":{}}]`,
			`"layers":[{"layer":"a","port":"output","status":"fail"}]`},
		{``, `"texts":[{"case":"c","status":"pass"}]`, `"texts":[{"case":"c","status":"fail"}],"causes":[{}]`},
		{``, `"serving":{"verdict":"pass","answers":[{"status":"pass"}]}`, `"generation":[{"case":"c","verdict":"diverged"}]`,
			`"paths":[{"path":"decode:3"}],"path_depth":{}`, `"weights":[{}]`, `"coverage":{"open":["x"]}`},
	}
	accepted := 0
	var put func(rest [][]string, keys []string)
	put = func(rest [][]string, keys []string) {
		if len(rest) > 0 {
			for _, key := range rest[0] {
				more := keys
				if key != "" {
					more = append(keys[:len(keys):len(keys)], key)
				}
				put(rest[1:], more)
			}
			return
		}
		data := "{" + strings.Join(append([]string{`"schema":1`}, keys...), ",") + "}"
		r, err := report.Read(strings.NewReader(data))
		if err != nil {
			return
		}
		if accepted++; accepted%7 == 0 { // no list of parts is as long: each part meets each other
			require.NotPanics(t, func() { writeAll(t, r) }, data)
		}
	}
	put(parts, nil)
	assert.Greater(t, accepted, 1000, "reports that are accepted")
}

func writeAll(t *testing.T, r *report.Report) {
	require.NoError(t, report.Text(io.Discard, r, report.TextOptions{Verbose: true}))
	require.NoError(t, report.Markdown(io.Discard, r, "report.json"))
	require.NoError(t, report.Annotations(io.Discard, r))
	require.NoError(t, r.Modes().Text(io.Discard, report.TextOptions{Width: 120}))
	require.NoError(t, report.Write(io.Discard, r))
	b := report.BriefOf(r, "report.json")
	assert.True(t, json.Valid(b.JSON()))
	assert.NotEmpty(t, b.Text())
	_, err := export.Attach([]byte(`<testsuite><testcase name="TestX/a"><failure/></testcase></testsuite>`), r, "x")
	require.NoError(t, err)
	require.NoError(t, export.HTML(io.Discard, r, "report.json"))
}
