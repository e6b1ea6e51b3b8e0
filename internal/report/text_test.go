package report_test

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
)

func text(t *testing.T, r *report.Report, opt report.TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, report.Text(&b, r, opt))
	return b.String()
}

func TestTextFiles(t *testing.T) {
	narrowed := failing()
	narrowed.FirstDivergence, narrowed.Kind, narrowed.Order, narrowed.Frontier, narrowed.Causes = nil, "", nil, nil, nil
	for _, c := range []struct {
		name   string
		r      *report.Report
		opt    report.TextOptions
		reason string
	}{
		{"pass.txt", passing(), report.TextOptions{}, "only the worst rows, the unmatched by reason"},
		{"pass-verbose.txt", passing(), report.TextOptions{Verbose: true}, "every row, all names"},
		{"fail.txt", failing(), report.TextOptions{}, "the place, causes, failing rows in order"},
		{"fail-color.txt", failing(), report.TextOptions{Color: true, Width: 140}, "colour does not move a column"},
		{"fail-narrow.txt", failing(), report.TextOptions{Width: 72}, "what does not fit goes below, nothing is lost"},
		{"fail-first-row.txt", narrowed, report.TextOptions{},
			"nothing localised: the first row that fails is the headline"},
		{"error.txt", broken(), report.TextOptions{}, "no rows at all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			toy.Kept(t, c.name, text(t, c.r, c.opt))
		})
	}
}

func TestTextWidth(t *testing.T) {
	for given, is := range map[int]int{0: 100, 1: 60, 59: 60} {
		assert.Equal(t, text(t, allOfIt(), report.TextOptions{Width: is}), text(t, allOfIt(), report.TextOptions{Width: given}), "%d", given)
	}
}

func TestTextPrintsNoControlCharacters(t *testing.T) {
	for _, opt := range []report.TextOptions{{}, {Verbose: true}} {
		got := text(t, hostile(20), opt)
		assert.NotContains(t, got, "\x1b")
		assert.NotContains(t, got, "\x00")
		assert.NotContains(t, got, "\u202e", "a mark that turns the line around")
		assert.NotContains(t, got, "\n::error")
	}
}

func TestNoWriterTakesAPassThatIsNone(t *testing.T) {
	empty := passing()
	empty.Layers = nil
	contradicting := passing()
	contradicting.Layers[3].Status = report.StatusFail
	zero := passing()
	for i := range zero.Layers {
		if zero.Layers[i].Standard != nil {
			zero.Layers[i].Standard.N = 0
		}
	}
	for name, r := range map[string]*report.Report{"no rows": empty, "a failing row": contradicting,
		"rows of no element": zero} {
		var b bytes.Buffer
		assert.Error(t, report.Text(&b, r, report.TextOptions{}), name)
		assert.Error(t, report.Markdown(&b, r, "report.json"), name)
		assert.Error(t, report.Annotations(&b, r), name)
		assert.Error(t, report.Write(&b, r), name)
		assert.Empty(t, b.String(), name)
	}
}

// The fault comes first, then what it made wrong, each in the order of the report's rows.
func TestFailingRows(t *testing.T) {
	r := &report.Report{Schema: 1, Verdict: report.Fail}
	for i, status := range []report.Status{report.StatusPass, report.StatusInherited, report.StatusFail,
		report.StatusInherited, report.StatusMissing, report.StatusError, report.StatusIgnored} {
		r.Layers = append(r.Layers, row(string(rune('a'+i)), i, status, metrics(0.5, 1)))
	}
	order := ""
	for _, l := range r.Failing() {
		order += l.Layer
	}
	assert.Equal(t, "cefbd", order)
}

// A text says where the place of an open verdict lies.
func TestOpenPlace(t *testing.T) {
	r := failing()
	r.Kind = "local"
	r.FirstDivergence = &report.Divergence{Layer: "layers.1", After: "layers.0", Port: "output", Case: "hello", Step: "0",
		Place: "in layers.1, or between layers.0 and layers.1", Uncaptured: []string{"input_0"},
		Text: "in layers.1, or between layers.0 and layers.1: layers.1 gives the first wrong output, and no input of it was compared"}
	r.Causes = []report.Cause{}
	assert.Equal(t, "first divergence layers.1, or between layers.0 and layers.1; compared 27 of 30 outputs", report.Headline(r))
	got := text(t, r, report.TextOptions{Width: 200})
	for _, want := range []string{"In layers.1, or between layers.0 and layers.1", "not recorded, so not compared: input_0", "none can be told from what was recorded"} {
		assert.Contains(t, got, want)
	}
}

// A row that passes by what it means is not among the worst, and its metrics do not speak against it.
func TestBenignRows(t *testing.T) {
	far := metrics(1, 448)
	far.BadNonFinite, far.InfActual = 3, 3
	same := row("mask", 0, report.StatusPass, far)
	same.Benign, same.Note = true, "the numbers differ, what the mask allows does not: golden -3.4028235e+38 and 0, candidate -Inf and 0"
	r := &report.Report{Schema: 1, Verdict: report.Pass, Layers: []report.Layer{same, row("lin", 1, report.StatusPass, metrics(1e-6, 0))}}
	assert.Contains(t, report.Headline(r), "lin")
	var b strings.Builder
	require.NoError(t, report.Text(&b, r, report.TextOptions{Width: 200}))
	assert.Contains(t, b.String(), "so they pass\n  1 the numbers differ, what the mask allows does not: golden -3.4028235e+38 and 0, candidate -Inf and 0")
	assert.NotContains(t, text(t, r, report.TextOptions{Verbose: true}), "so they pass", "the table of all rows has them")
	assert.NotContains(t, b.String(), "wrong pair")
	again, err := report.Rejudge(r, compare.Criteria{compare.RelL2: 1e-3}, "a test")
	require.NoError(t, err)
	assert.Equal(t, report.Pass, again.Verdict, "no tolerance had judged it")
}

func TestMarkdownFiles(t *testing.T) {
	for name, r := range map[string]*report.Report{"pass.md": passing(), "fail.md": failing(), "error.md": broken()} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, report.Markdown(&b, r, "report.json"))
			toy.Kept(t, name, b.String())
		})
	}
}

func TestMarkdownOfAHostileReport(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.Markdown(&b, hostile(200), "report.json"))
	assert.Less(t, b.Len(), 1<<20, "GitHub shows nothing of a larger one")
	got := b.String()
	assert.NotContains(t, got, "\x1b")
	assert.NotContains(t, got, "\n::error", "no line that a runner takes for a command")
	rows := 0
	columns := 8
	for _, line := range strings.Split(got, "\n") {
		if strings.HasPrefix(line, "| ") {
			rows++
			bars := strings.Count(line, "|") - strings.Count(line, `\|`)
			assert.Equal(t, columns+1, bars, "a name must not open a cell: %s", line)
		}
	}
	assert.Equal(t, 21, rows, "the head and twenty rows")
	assert.Contains(t, got, "… and 184 more, all in report.json")
	own := regexp.MustCompile(`<details><summary>|</summary>|</details>`)
	outside := strings.Split(own.ReplaceAllString(got, ""), "`")
	for i := 0; i < len(outside); i += 2 {
		assert.NotRegexp(t, `(^|[^\\])<`, outside[i], "no HTML outside code")
	}
}

func TestAnnotations(t *testing.T) {
	annotations := func(r *report.Report) string {
		var b bytes.Buffer
		require.NoError(t, report.Annotations(&b, r))
		return b.String()
	}
	assert.Empty(t, annotations(passing()), "a pass has none")
	toy.Kept(t, "fail-annotations.txt", annotations(failing()))
	toy.Kept(t, "error-annotations.txt", annotations(broken()))

	lines := strings.Split(strings.TrimSuffix(annotations(hostile(20)), "\n"), "\n")
	assert.Len(t, lines, 10, "GitHub keeps ten a step")
	for _, line := range lines {
		assert.True(t, strings.HasPrefix(line, "::error title="), line)
		title, _, ok := strings.Cut(strings.TrimPrefix(line, "::error title="), "::")
		assert.True(t, ok)
		assert.NotContains(t, title, ":", "a colon ends the title")
		assert.NotContains(t, title, ",", "a comma begins another property")
		assert.Less(t, len(line), 2000)
	}
}

func TestNum(t *testing.T) {
	for _, c := range []struct {
		value        float64
		want, reason string
	}{
		{0, "0", "plain"},
		{1, "1", "plain"},
		{0.99812, "0.998", "three digits"},
		{0.0201, "0.0201", "no exponent above 1e-3"},
		{1e-4, "1e-4", "as people write it"},
		{1.4321e-6, "1.43e-6", "no leading zero in the exponent"},
		{-5.5e-10, "-5.5e-10", "no trailing zeros"},
		{1e-10, "1e-10", "the exponent's own zero stays"},
		{123456, "1.23e5", "no plus sign"},
		{9.9999e-4, "1e-3", "rounded up"},
		{math.NaN(), "NaN", "shown as it is"},
		{math.Inf(1), "inf", "shown as it is"},
		{math.Inf(-1), "-inf", "shown as it is"},
	} {
		assert.Equal(t, c.want, report.Num(report.Float(c.value)), "%v: %s", c.value, c.reason)
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		n, all       int
		want, reason string
	}{
		{0, 448, "0", "none"},
		{1, 1000000, "<0.1 %", "one is never none"},
		{420, 448, "93.8 %", "rounded"},
		{999999, 1000000, "99.9 %", "not quite all is never all"},
		{448, 448, "100 %", "all"},
		{0, 0, "0", "an empty tensor"},
	} {
		assert.Equal(t, c.want, report.Percent(c.n, c.all), c.reason)
	}
}

func TestSentence(t *testing.T) {
	for _, c := range []struct{ clause, want, reason string }{
		{"the code of a.b computes something else", "The code of a.b computes something else.", "a clause"},
		{"model.layers.3 gets the right inputs", "model.layers.3 gets the right inputs.", "names stay as they are"},
		{"embed gets the right inputs", "embed gets the right inputs.", "also names without a dot"},
		{"embed: gets the right inputs", "embed: gets the right inputs.", "with punctuation after"},
		{"rope_theta is 1e6", "rope_theta is 1e6.", "a key of a config"},
		{"3 rows differ", "3 rows differ.", "a number"},
		{"érable", "Érable.", "not only ASCII"},
		{"Done. Or not?", "Done. Or not?", "a sentence already"},
		{"", "", "nothing to say"},
	} {
		assert.Equal(t, c.want, report.Sentence(c.clause, "embed", ""), c.reason)
	}
}
