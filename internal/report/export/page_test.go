package export_test

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
	"github.com/goparity/goparity/internal/toy"
)

func write(t *testing.T, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, export.HTML(&b, r, "report.json"))
	return b.String()
}

func TestPage(t *testing.T) {
	r := toy.DeepReport(77, 20) // 1,000 layers
	r.Costs = []report.Cost{{Layer: "m.0.attn", Seconds: 0.25, PeakBytes: 3 << 20, Entropy: []report.Entropy{{Nats: 1, Part: 0.5}}}}
	html := write(t, r)
	assert.Less(t, len(html), 3<<20, "small enough to attach to anything")
	for _, want := range []string{"<span class=\"word\">FAIL</span>", "first divergence model.layers.20.self_attn",
		"rope/layout", "proven", "max 26.7.0, gpu",
		`<code>m.0.attn</code> 3 MiB, 0.25 s, 1 nats, 0.50 of ln n`} {
		assert.Contains(t, html, want)
	}
	assert.NotRegexp(t, regexp.MustCompile(`(?i)<(link|img|iframe|object|embed|base)\b|\bsrc=|\burl\(|@import`),
		withoutScripts(html), "nothing is loaded")
	assert.NotContains(t, html, "ZgotmplZ", "the template dropped something")

	r.Kind, r.FirstDivergence.Text, r.FirstDivergence.Piece = "between", "it computes something else", &report.Piece{}
	assert.Contains(t, write(t, r), "between: It computes something else.", "what replay found says what the kind means")

	empty := write(t, &report.Report{Verdict: report.Error, Error: "the file ends early"})
	assert.Contains(t, empty, "the file ends early")
}

// The picture of path × depth has its metrics in the data, and a table says the same in words.
func TestPaths(t *testing.T) {
	html := write(t, toy.ReportAlong(77, 20))
	for _, want := range []string{"decode:8 and chunked:4 fail alike at model.layers.20.self_attn: state/position", "chunked:4:</b> 41 forward passes, 48 rows",
		"first divergence model.layers.20.self_attn, pass 1, sequence 0, position 4</li>", `{"n":"one pass","e":[`, `"t":"first divergence model.layers.20.self_attn, pass 1`} {
		assert.Contains(t, html, want)
	}
	assert.Less(t, len(html), 1<<20)
	assert.NotContains(t, write(t, toy.DeepReport(2, 0)), "h-paths", "runs of one pass only")
}

// What the script draws, and the tokens, which the template draws.
func TestPageData(t *testing.T) {
	f := func(v report.Float) *report.Float { return &v }
	r := toy.ReportAlong(2, 1)
	l := &r.Layers[3]
	l.Layer, l.Tolerance, l.Golden.Name = "", nil, strings.Repeat("long ", 300)
	l.LocalL2, l.InheritedL2, l.LocalInheritedCosine = f(0.123456), f(2), f(-1)
	l.Rows, l.Histogram = &report.Rows{N: 2000, RelL2: make([]report.Float, 1000)}, &report.Histogram{Equal: 3, Exponent: -4, Counts: make([]int, 1000)}
	l.Violations, l.Detail = []string{"violated"}, strings.Fields(strings.Repeat("detail ", 40))
	r.Layers[4].Benign, r.Layers[4].Note, r.Layers[4].Step = true, "means the same", "2"
	r.Layers[5].Standard.MSE, r.Layers[5].Actual = report.Float(math.Inf(1)), nil
	r.PathDepth.Runs = append(r.PathDepth.Runs, report.PathError{Path: "decode:8", Case: "other", Errors: []report.Float{0, report.Float(math.NaN()), 9}})
	r.Paths = append(r.Paths, report.Path{Path: "decode:8", Case: "other", First: &report.Place{Layer: "nowhere"}})
	at := 1
	token := func(gap, own, kl report.Float) report.Token {
		return report.Token{Choice: "same", Gap: gap, OwnGap: own, KL: kl}
	}
	r.Generations = []report.Generation{{Case: "a", At: &at, Text: "it is", Positions: []report.Token{token(1, 1, 1e-6), token(0.01, 0, 1e-12), token(1e6, 1e9, 10),
		token(0, -1, 0), token(report.Float(math.NaN()), report.Float(math.NaN()), report.Float(math.NaN())), token(30, 1e-3, 100)}}, {Case: "none"}}
	r.Generations[0].Positions[5].Choice = "diverged"
	html := write(t, r)
	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(html)
	require.NotNil(t, data)
	got := bytes.NewBufferString(strings.ReplaceAll(data[1], "},{", "},\n{"))
	got.WriteString("\n" + strings.Join(regexp.MustCompile(`(?s)<svg class="tokens".*?</svg>`).FindAllString(html, -1), "\n") + "\n")
	toy.Kept(t, "page.txt", got.String())
}

// A page of many layers along paths has neighbours in one column, each with the worst of them.
func TestManyColumns(t *testing.T) {
	r := toy.ReportAlong(40, 20)
	columns := regexp.MustCompile(`"columns":\[([^]]*)\]`).FindStringSubmatch(write(t, r))
	require.NotNil(t, columns)
	n := len(strings.Split(columns[1], ","))
	each := (len(r.PathDepth.Layers) + 255) / 256
	assert.Greater(t, each, 1)
	assert.Equal(t, (len(r.PathDepth.Layers)+each-1)/each, n)
	assert.Contains(t, write(t, r), `"f":`+strconv.Itoa(slices.Index(r.PathDepth.Layers, "model.layers.20.self_attn")/each)+`,"t":"first divergence`)
}

// withoutScripts leaves what a browser parses as markup.
func withoutScripts(html string) string {
	return regexp.MustCompile(`(?s)<script[^>]*>.*?</script>`).ReplaceAllString(html, "")
}

// Names come from files that others wrote.
func TestHostileNames(t *testing.T) {
	const evil = `</script><img src=x onerror=alert(1)><!--"'` + "`&\u2028\x1b[31m\u202e"
	r := toy.ReportAlong(2, 0)
	r.Fixture, r.Kind = evil, evil
	for i := range r.Paths {
		r.Paths[i].Path, r.Paths[i].Case, r.Paths[i].Cause, r.PathDepth.Runs[i].Path, r.PathDepth.Layers[i] = evil, evil, evil, evil, evil
		*r.Paths[i].Matches = report.Agreement{Layer: evil, Port: evil, Step: evil, Outputs: 1}
	}
	r.Paths[0].First.Layer, r.Paths[0].First.Path = evil, evil
	r.FirstDivergence.Layer, r.FirstDivergence.Text, r.FirstDivergence.Port = evil, evil, evil
	r.FirstDivergence.Reference, r.FirstDivergence.Candidate, r.FirstDivergence.Piece = evil, evil, &report.Piece{From: []string{evil}}
	r.Layers[0].Status, r.Layers[0].Benign, r.Layers[0].Note = report.StatusPass, true, evil
	r.Frontier = []string{evil, evil}
	r.Causes[0].ID, r.Causes[0].Text = evil, evil
	r.Notes, r.NotJudged, r.Costs = []string{evil}, []string{evil}, []report.Cost{{Layer: evil}}
	r.Unmatched.Golden = []report.Lone{{Name: evil, Reason: evil, Nearest: evil}}
	r.Order = &report.Order{Differences: []string{evil}}
	r.Source.Actual.Name = evil
	r.Generations = []report.Generation{{Case: evil, Verdict: "diverged", Text: evil, Positions: make([]report.Token, 2)}}
	for i := range r.Layers {
		l := &r.Layers[i]
		l.Layer, l.Port, l.Case, l.Step, l.Note, l.Blame = evil, evil, evil, evil, evil, evil
		l.Golden.Name, l.Detail, l.Violations = evil, []string{evil}, []string{strings.Repeat(evil, 1000)}
		l.Tolerance.Source = evil
	}
	html := write(t, r)
	assert.NotContains(t, html, "<img")
	assert.Equal(t, 3, strings.Count(html, "</script>"), "the data and the two scripts")
	assert.NotContains(t, html, "\x1b")
	assert.NotContains(t, html, "\u202e", "no letters from right to left")
	assert.NotContains(t, html, "<!--")
}

func TestLargeReports(t *testing.T) {
	r := toy.DeepReport(1000, 900) // 14,003 rows
	html := write(t, r)
	assert.Contains(t, html, "are left out of this page")
	assert.Contains(t, html, `"l":"model.layers.999.mlp"`, "failing rows stay")
}

// A picture of a long text has the token that the verdict is about, and says which others.
func TestTokensShown(t *testing.T) {
	at := func(k int) *int { return &k }
	for _, c := range []struct {
		tokens      int
		at          *int
		first, last string
		says        string
		reason      string
	}{
		{3, nil, "token 0:", "token 2:", "IDENTICAL", "all of a short text"},
		{1000, nil, "token 0:", "token 255:", "IDENTICAL (the picture has tokens 0 to 255)", "nothing to look for"},
		{1000, at(500), "token 436:", "token 691:", "IDENTICAL (the picture has tokens 436 to 691)", "with what came before it"},
		{1000, at(990), "token 744:", "token 999:", "IDENTICAL (the picture has tokens 744 to 999)", "the end"},
		{1000, at(3), "token 0:", "token 255:", "IDENTICAL (the picture has tokens 0 to 255)", "the beginning"},
	} {
		g := report.Generation{Case: "a", Text: "IDENTICAL", At: c.at, Positions: make([]report.Token, c.tokens)}
		html := write(t, &report.Report{Verdict: report.Error, Error: "x", Generations: []report.Generation{g}})
		titles := regexp.MustCompile(`<title>(token \d+:)`).FindAllStringSubmatch(html, -1)
		assert.Equal(t, c.first, titles[0][1], c.reason)
		assert.Equal(t, c.last, titles[len(titles)-1][1], c.reason)
		assert.Contains(t, html, `<p class="soft">`+c.says+"</p>", c.reason)
	}
}
