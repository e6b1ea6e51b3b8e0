package report_test

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
)

// agreement is of runs whose worst row is off by rel, 0 for bit for bit.
func agreement(holds bool, rel float64) *report.Agreement {
	return &report.Agreement{Holds: holds, BitForBit: rel == 0, Outputs: 3, Layer: "model.a", Port: "output", Step: "1", RowRelL2: report.Float(rel)}
}

func place(path, layer string, pass, position int) *report.Place {
	return &report.Place{Layer: layer, Port: "output", Step: "1", Row: report.Row{Path: path, Pass: pass, Position: position}}
}

// alongPaths is a report in which three paths show one fault, and one another.
func alongPaths() *report.Report {
	first := place("decode:8", "model.a", 1, 8)
	one := agreement(true, 1e-7)
	r := &report.Report{Verdict: report.Fail, Kind: "path", FirstDivergence: &report.Divergence{Layer: "model.a", Port: "output", Step: "1", Row: &first.Row},
		Paths: []report.Path{
			{Path: "repeat:2", Passes: 2, Rows: 6, Matches: agreement(true, 0), OnePass: one, Repeats: agreement(true, 0)},
			{Path: "prefix", Passes: 2, Rows: 4, Matches: agreement(false, 0.5), OnePass: one, First: place("prefix", "model.b", 1, 2), Cause: "state/slot"},
			{Path: "decode:8", Passes: 3, Rows: 10, Matches: agreement(false, 0.5), OnePass: one, Consistent: agreement(false, 0.5), First: first, Cause: "state/position"},
			{Path: "chunked:4", Passes: 1, Rows: 1, Matches: agreement(false, 0.5), OnePass: one, First: place("chunked:4", "model.a", 1, 4), Cause: "state/position"},
			{Path: "batch", Passes: 2, Rows: 8, Matches: agreement(false, 0.5), OnePass: one, First: place("batch", "model.a", 0, 1), Cause: "state/position"},
		}}
	return r
}

// Runs along paths say in every form which pass and row is the first that is wrong, several that
// fail alike are one finding, and JSON keeps all of it.
func TestPath(t *testing.T) {
	r := alongPaths()
	var text, markdown, file bytes.Buffer
	require.NoError(t, report.Text(&text, r, report.TextOptions{Width: 160}))
	require.NoError(t, report.Markdown(&markdown, r, "report.json"))
	for _, out := range []string{text.String(), markdown.String()} {
		out = strings.Join(strings.Fields(out), " ") // less the line breaks of paragraphs
		assert.Contains(t, out, "right in one pass, wrong along decode:8, chunked:4 and batch alike: first divergence model.a, pass 1, sequence 0, position 8")
		assert.Contains(t, out, "decode:8, chunked:4 and batch fail alike at model.a: state/position")
		assert.Contains(t, out, "prefix fails at model.b: state/slot")
		assert.Equal(t, 1, strings.Count(out, "one pass matches the golden: 3 outputs"), "said once")
		assert.Contains(t, out, "model.a, pass 0, sequence 0, position 1")
	}
	assert.Contains(t, text.String(), "chunked:4: 1 forward pass, 1 row; matches the golden: no, 3 outputs, worst row rel. L2 0.5 at model.a")
	assert.Contains(t, markdown.String(), "- **repeat:2:** 2 forward passes, 6 rows; matches the golden: 3 outputs, bit for bit; equal to its first run: 3 outputs, bit for bit\n")
	require.NoError(t, report.Write(&file, r))
	assert.Contains(t, file.String(), `"position": 8`)
	back, err := report.Read(&file)
	require.NoError(t, err)
	assert.Equal(t, r.FirstDivergence, back.FirstDivergence)
	assert.Equal(t, r.Paths, back.Paths)
}

func TestAgreement(t *testing.T) {
	for _, tt := range []struct {
		a    report.Agreement
		want string
	}{
		{report.Agreement{Holds: true}, "nothing was compared"},
		{report.Agreement{Holds: true, BitForBit: true, Outputs: 1}, "1 output, bit for bit"},
		{*agreement(true, 1e-7), "3 outputs, worst row rel. L2 1e-7 at model.a output, pass 1"},
		{*agreement(false, 0.5), "no, 3 outputs, worst row rel. L2 0.5 at model.a output, pass 1"},
	} {
		assert.Equal(t, tt.want, tt.a.String())
	}
}

func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		change func(r *report.Report)
		want   []string
		reason string
	}{
		{func(*report.Report) {}, []string{"decode:8, chunked:4 and batch fail alike at model.a: state/position", "prefix fails at model.b: state/slot"},
			"that of the verdict first"},
		{func(r *report.Report) { r.Paths[3].Cause = "state/window" },
			[]string{"decode:8 and batch fail alike at model.a: state/position", "prefix fails at model.b: state/slot", "chunked:4 fails at model.a: state/window"},
			"another cause is another fault"},
		{func(r *report.Report) { r.Paths[2].Cause, r.Paths[3].Cause = "", "" },
			[]string{"decode:8 and chunked:4 fail alike at model.a, no cause is proven", "prefix fails at model.b: state/slot", "batch fails at model.a: state/position"},
			"what is not known is not the same"},
		{func(r *report.Report) { r.Paths[4].First = nil }, []string{"decode:8 and chunked:4 fail alike at model.a: state/position", "prefix fails at model.b: state/slot"},
			"one that is wrong in one pass, too"},
		{func(r *report.Report) { r.Paths[4].Path = "decode:8" },
			[]string{"decode:8 and chunked:4 fail alike at model.a: state/position", "prefix fails at model.b: state/slot"}, "another case of the path"},
		{func(r *report.Report) { r.Paths = r.Paths[:1] }, nil, "all hold"},
	} {
		r := alongPaths()
		tt.change(r)
		var got []string
		for _, f := range r.Findings() {
			got = append(got, f.String())
		}
		assert.Equal(t, tt.want, got, tt.reason)
	}
}

// near reports whether two numbers are the same but for rounding; NaN is NaN.
func near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-9
}

func TestUnits(t *testing.T) {
	limits := func(c compare.Criteria) func(*report.Layer) {
		return func(l *report.Layer) { l.Tolerance.Criteria = c }
	}
	within := math.Nextafter(1, 2)
	for _, tt := range []struct {
		status report.Status
		change func(l *report.Layer)
		want   float64
		reason string
	}{
		{report.StatusFail, func(*report.Layer) {}, 200, "the worst row is 0.02, its limit 1e-4"},
		{report.StatusPass, limits(compare.Criteria{compare.RelL2: 0.03, compare.RowRelL2: 0.1}), 0.5, "the tensor is nearer to its limit"},
		{report.StatusFail, limits(compare.Criteria{compare.RelL2: 0.01}), 2, "of rows, too"},
		{report.StatusPass, limits(compare.Criteria{compare.RowRelL2: 0.04}), 0.5, "no limit of the tensor"},
		{report.StatusFail, limits(compare.Criteria{compare.Atol: 1e-5, compare.Rtol: 0}), 200, "the default limit of float32"},
		{report.StatusPass, limits(compare.Criteria{compare.Atol: 1, compare.Rtol: 0}), 1, "a pass has no more"},
		{report.StatusFail, limits(compare.Criteria{compare.RelL2: 0.5, compare.Cosine: 1}), within, "a failure has more"},
		{report.StatusInherited, func(*report.Layer) {}, 200, "wrong all the same"},
		{report.StatusPass, func(l *report.Layer) {
			limits(compare.Criteria{compare.RelL2: 0.001, compare.Cost: 3})(l)
			l.Standard.Costs = &report.Costs{Cost: 1, RowCost: 1.5}
		}, 0.5, "what the encoding costs"},
		{report.StatusFail, func(l *report.Layer) { l.Standard.BadNonFinite = 1 }, math.Inf(1), "a NaN"},
		{report.StatusFail, func(l *report.Layer) { l.Golden.DType = "int64"; limits(compare.Criteria{compare.Atol: 0})(l) }, math.Inf(1), "other integers"},
		{report.StatusPass, func(l *report.Layer) { l.Standard = metrics(0, 0); limits(compare.Criteria{compare.Atol: 0})(l) }, 0, "equal"},
		{report.StatusMissing, func(l *report.Layer) { l.Standard = nil }, math.Inf(1), "it should be there"},
		{report.StatusError, func(l *report.Layer) { l.Standard = nil }, math.Inf(1), "of another shape"},
		{report.StatusIgnored, func(*report.Layer) {}, math.NaN(), "not judged"},
	} {
		l := row("a", 0, tt.status, metrics(0.02, 420))
		tt.change(&l)
		got := float64(l.Units())
		assert.True(t, near(tt.want, got), "%v, want %v: %s", got, tt.want, tt.reason)
		assert.Equal(t, tt.want > 1, got > 1, tt.reason)
	}
}

// depthOf has a layer for each name, with these errors in units of the limit.
func depthOf(d *report.PathDepth, path string, steps ...[]report.Layer) {
	var rows []report.Layer
	for i, step := range steps {
		for _, l := range step {
			l.Step = strconv.Itoa(i)
			rows = append(rows, l)
		}
	}
	d.Add(path, "", rows)
}

func off(layer string, units float64) report.Layer {
	if units > 1 {
		return row(layer, 0, report.StatusFail, metrics(units*1e-4, 1))
	}
	return row(layer, 0, report.StatusPass, metrics(units*1e-4, 0))
}

// The layers of all runs stand in the reference's order, and each has the worst of all its passes.
func TestPathDepth(t *testing.T) {
	var d report.PathDepth
	input := off("c", 9)
	input.Port, input.Kind = "input_0", label.RoleInput.String()
	depthOf(&d, report.OnePass, []report.Layer{off("a", 0.5), off("c", 0.25), input})
	depthOf(&d, "decode", []report.Layer{off("a", 0.5), off("b", 0.125)}, []report.Layer{off("b", 2), off("c", 0), off("d", 4)})
	var late report.PathDepth
	depthOf(&late, "decode", []report.Layer{off("x", 1)})
	depthOf(&late, "batch", []report.Layer{off("b", 0.5), off("b2", 0.25), off("d", 8)})
	d.Join(&late)
	assert.Equal(t, []string{"a", "c", "b", "d", "b2"}, d.Layers, "a run that is there already is not added")
	none := math.NaN()
	want := [][]float64{{0.5, 0.25, none, none, none}, {0.5, 0, 2, 4, none}, {none, none, 0.5, 8, 0.25}}
	require.Len(t, d.Runs, len(want))
	for i, errors := range want {
		for k, e := range errors {
			assert.True(t, near(e, float64(d.Runs[i].Errors[k])), "%s %s: %v, want %v", d.Runs[i].Path, d.Layers[k], d.Runs[i].Errors[k], e)
		}
	}

	assert.Equal(t, "0 of 2 layers beyond the limit, the worst is off by 0.5 times it, at a", d.Runs[0].Text(d.Layers))
	assert.Equal(t, "2 of 4 layers beyond the limit, the worst is off by 4 times it, at d", d.Runs[1].Text(d.Layers))
	assert.Equal(t, "nothing was compared", d.Runs[2].Text(d.Layers[:2]))

	var r report.Report
	r.AddPath("decode", &report.Report{PathDepth: &d})
	r.AddPath("batch", &report.Report{})
	r.AddPath("late", &report.Report{PathDepth: &late})
	assert.Equal(t, d.Layers, r.PathDepth.Layers)
	assert.Len(t, r.PathDepth.Runs, 3)
}

// What a path adds to a report of one pass: its verdict where all before holds, and rows that are
// not there yet.
func TestAddPath(t *testing.T) {
	good, wrong := row("a", 0, report.StatusPass, metrics(1e-7, 0)), row("a", 0, report.StatusFail, metrics(0.5, 1))
	wrong.Case = "c@decode"
	along := alongPaths()
	along.Layers, along.Notes = []report.Layer{good, wrong}, []string{"a note"}
	right := &report.Report{Verdict: report.Pass, Paths: []report.Path{{Path: "batch"}}, Layers: []report.Layer{good}}
	r := &report.Report{Verdict: report.Pass, Layers: []report.Layer{good}}
	r.AddPath("batch", right)
	assert.Equal(t, report.Pass, r.Verdict)
	r.AddPath("decode:8", along)
	assert.Equal(t, report.Fail, r.Verdict)
	assert.Equal(t, along.FirstDivergence, r.FirstDivergence)
	assert.Len(t, r.Layers, 2, "the row of one pass is there")
	assert.Len(t, r.Paths, 6)
	assert.Equal(t, []string{"path decode:8: a note"}, r.Notes)
	r.AddPath("later", &report.Report{Verdict: report.Error, Error: "it died"})
	assert.Equal(t, report.Fail, r.Verdict, "the first that is wrong")
}

// The verdict of several parts does not depend on their order, and what was compared before is kept.
func TestJoined(t *testing.T) {
	open := &report.Coverage{Compared: 20, Outputs: 29, Open: []string{"layers.4"}}
	part := func(v report.Verdict, cov *report.Coverage) *report.Report {
		return &report.Report{Verdict: v, Coverage: cov, Layers: []report.Layer{row("a", 0, report.StatusPass, metrics(1e-7, 0))}}
	}
	one := &report.Coverage{Compared: 1, Outputs: 1}
	for _, tt := range []struct {
		first, then *report.Report
		want        report.Verdict
		coverage    *report.Coverage
		reason      string
	}{
		{part(report.Error, nil), part(report.Fail, one), report.Fail, one, "a fault stands before what could not be judged"},
		{part(report.Fail, one), part(report.Error, nil), report.Fail, one, "in any order"},
		{part(report.Incomplete, open), part(report.Fail, one), report.Fail, open, "a later part compares another thing"},
		{part(report.Pass, one), part(report.Incomplete, open), report.Incomplete, &report.Coverage{Compared: 1, Outputs: 1, Open: open.Open},
			"what the later part leaves open is said"},
		{&report.Report{Verdict: report.Error, Error: report.NothingCompared}, part(report.Pass, one), report.Pass, one, "nothing came before"},
	} {
		for name, add := range map[string]func(r, other *report.Report){
			"path": func(r, other *report.Report) { r.AddPath("decode", other) }, "generation": (*report.Report).AddGeneration} {
			r := *tt.first
			add(&r, tt.then)
			assert.Equal(t, tt.want, r.Verdict, "%s: %s", name, tt.reason)
			assert.Equal(t, tt.coverage, r.Coverage, "%s: %s", name, tt.reason)
		}
	}
}

// A note on several paths stands once.
func TestPathNotes(t *testing.T) {
	r := &report.Report{Verdict: report.Pass, Notes: []string{"a note", "batch: a note"}}
	for _, name := range []string{"decode", "batch", "decode"} {
		r.AddPath(name, &report.Report{Verdict: report.Pass, Notes: []string{"a note"}})
	}
	r.AddPath("batch", &report.Report{Verdict: report.Pass, Notes: []string{"another"}})
	assert.Equal(t, []string{"a note", "batch: a note", "path decode, batch: a note", "path batch: another"}, r.Notes)
}

// What is wrong besides all that was judged fails a report that holds, and what can be trusted no more judges nothing.
func TestRefuseAndVoid(t *testing.T) {
	for verdict, want := range map[report.Verdict]report.Verdict{report.Pass: report.Fail, report.Incomplete: report.Fail, report.Error: report.Error} {
		r := &report.Report{Verdict: verdict, Notes: []string{"before"}}
		r.Refuse("it is stale")
		assert.Equal(t, want, r.Verdict, verdict)
		assert.Equal(t, []string{"it is stale", "before"}, r.Notes)
	}
	r := failing()
	r.Void(errors.New("a file has changed"))
	assert.Equal(t, "a file has changed", report.Headline(r))
	assert.Empty(t, r.Layers)
	assert.Nil(t, r.FirstDivergence)
	assert.Nil(t, r.Causes)
	assert.Equal(t, report.Error, r.Verdict)
}

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
