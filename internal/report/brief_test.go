package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
)

func briefRow(layer string, status report.Status) report.Layer {
	return report.Layer{Layer: layer, Port: "output", Kind: "output", Case: "hello", Step: "0", Status: status,
		Standard:  &report.Metrics{N: 448, Finite: 448, RelL2: 0.02, RowRelL2: 0.03, Cosine: 1},
		Tolerance: &report.Tolerance{Criteria: compare.Criteria{compare.RelL2: 1e-4}, Source: "default for float32"}}
}

// between is a run of tests with a wrong activation between two layers.
func between() *report.Report {
	wrong := briefRow("layers.1", report.StatusFail)
	wrong.Test = "TestModel/layers.1/hello.0"
	return &report.Report{Fixture: "minilm", Package: "example.com/user/model", Verdict: report.Fail, Kind: "between",
		FirstDivergence: &report.Divergence{Layer: "layers.1", Port: "input_0", Case: "hello", Step: "0",
			After: "layers.1.up", Before: "layers.1.down", Proven: true,
			Text:     "the code of layers.1 between layers.1.up and layers.1.down computes something else",
			Evidence: []string{report.AlsoWrong("layers.3.norm") + "whose output is off by relative L2 0.5 on the golden inputs"}},
		Frontier: []string{"layers.1", "layers.3.norm"},
		Causes: []report.Cause{
			{ID: "activation/gelu-tanh", Layer: "layers.1", Proven: true, Fit: 2.3e-7, FitGolden: 0.0201,
				Text: "the tanh approximation of GELU in place of the exact one"},
			{ID: "norm/eps", Layer: "layers.3.norm", Proven: true, Fit: 1e-7, FitGolden: 0.5, Text: "eps is 1e-6 in place of 1e-5"},
		},
		Coverage:  &report.Coverage{Compared: 27, Outputs: 30, Open: []string{"the final output lm_head output was not compared"}},
		NotJudged: []string{"text (completion) that run.json of the candidate brings for case hello"},
		Layers:    []report.Layer{briefRow("layers.0", report.StatusPass), wrong}}
}

func open() *report.Report {
	return &report.Report{Fixture: "ref", Verdict: report.Fail, Kind: "local",
		FirstDivergence: &report.Divergence{Layer: "layers.2", Port: "output", Case: "hello", Step: "1", After: "layers.0",
			Place: "in layers.2, or between layers.0 and layers.2", Uncaptured: []string{"layers.1"},
			Text: "in layers.2, or between layers.0 and layers.2: layers.2 gives the first wrong output, and no input of it was compared"},
		Frontier: []string{"layers.2"}, Causes: []report.Cause{{ID: "value/factor", Layer: "layers.2", Fit: report.Float(math.NaN()),
			FitGolden: 0.3, Text: "it is 1.5 times the golden"}},
		Coverage: &report.Coverage{Compared: 3, Outputs: 4}, Layers: []report.Layer{briefRow("layers.2", report.StatusFail)}}
}

func briefPassing() *report.Report {
	return &report.Report{Fixture: "ref", Verdict: report.Pass, Coverage: &report.Coverage{Compared: 1, Outputs: 1},
		Layers: []report.Layer{briefRow("layers.0", report.StatusPass)}}
}

// Both forms, word for word: docs/report.md says what they mean, and programs read them.
func TestBriefs(t *testing.T) {
	incomplete := briefPassing()
	incomplete.Verdict, incomplete.Coverage.Open = report.Incomplete, []string{"no output of layers.1 was compared"}
	failed := &report.Report{Fixture: "ref", Verdict: report.Error, Error: "nothing could be compared: one dump is empty"}
	along := open()
	along.Kind, along.FirstDivergence.Row = "path", &report.Row{Path: "decode:4", Pass: 1, Position: 10}
	along.Layers[0].Stage = report.StagePaths
	briefAlong(along)
	var b bytes.Buffer
	for _, r := range []*report.Report{between(), open(), briefPassing(), incomplete, failed, along} {
		x := report.BriefOf(r, "out/report.json")
		b.Write(x.Text())
		b.WriteByte('\n')
		b.Write(x.JSON())
		b.WriteByte('\n')
	}
	toy.Kept(t, "briefs.txt", b.String())
}

// briefAlong makes decode:4 and chunked:4 fail alike, and batch at another layer.
func briefAlong(r *report.Report) {
	for i, path := range []string{"batch", "decode:4", "chunked:4"} {
		p := report.Path{Path: path, First: &report.Place{Layer: "layers.2", Row: report.Row{Path: path, Pass: i}}}
		if path == "batch" {
			p.First.Layer, p.Cause = "layers.7", "state/slot"
		}
		r.Paths = append(r.Paths, p)
	}
}

func TestSecond(t *testing.T) {
	for _, tt := range []struct {
		change       func(r *report.Report)
		layer, cause string
		reason       string
	}{
		{func(*report.Report) {}, "layers.3.norm", "norm/eps", "another cause is proven there"},
		{func(r *report.Report) { r.Causes = r.Causes[:1] }, "layers.3.norm", "", "on the frontier, and of another kind"},
		{func(r *report.Report) { r.Frontier = r.Frontier[:1] }, "layers.3.norm", "norm/eps", "a proof is enough"},
		{func(r *report.Report) { r.Frontier, r.Causes = r.Frontier[:1], r.Causes[:1] }, "", "", "nothing else is wrong"},
		{func(r *report.Report) { r.Causes[1].ID = r.Causes[0].ID }, "", "", "the same mistake in another layer"},
		{func(r *report.Report) { r.Causes[1].Proven = false; r.Frontier[1] = "layers.2" }, "", "", "a block that is built alike"},
		{func(r *report.Report) {
			r.FirstDivergence.Layer, r.Causes = "encoder.0.Attention", nil
			r.Frontier = []string{"decoder.1.cross.Attention"}
		}, "", "", "a layer of the same name"},
		{func(r *report.Report) {
			r.FirstDivergence.Layer, r.Causes = "layers.0.input_norm", nil
			r.Frontier = []string{"layers.0.post_norm"}
		}, "", "", "two norms may have one mistake"},
		{func(r *report.Report) { r.Causes = nil; r.Frontier[1] = "layers.1.down" }, "", "", "the end of the interval"},
		{func(r *report.Report) { r.Causes = nil; r.Frontier[1] = "layers.1.norm" }, "", "", "inside the place"},
		{func(r *report.Report) {
			r.FirstDivergence.Layer, r.Causes = "layers.1.up", nil
			r.Frontier[1] = "layers.1"
		}, "", "", "around the place"},
		{func(r *report.Report) { r.Layers = append(r.Layers, briefRow("layers.3.norm", report.StatusInherited)) }, "", "", "inherited"},
		{func(r *report.Report) { r.Kind = "drift" }, "", "", "of the whole run"},
		{func(r *report.Report) { r.Kind = "unordered"; r.FirstDivergence.Layer = "" }, "", "", "no place"},
	} {
		r := between()
		tt.change(r)
		s := report.BriefOf(r, "x").Second
		if tt.layer == "" {
			assert.Nil(t, s, tt.reason)
			continue
		}
		require.NotNil(t, s, tt.reason)
		assert.Equal(t, tt.layer, s.Layer, tt.reason)
		if tt.cause == "" {
			assert.Nil(t, s.Cause, tt.reason)
		} else if assert.NotNil(t, s.Cause, tt.reason) {
			assert.Equal(t, tt.cause, s.Cause.ID, tt.reason)
		}
	}
}

// Of two dumps that are there the command repeats all that they were compared by.
func TestNext(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"ref", "cand", "a b", "c.yaml", "-by"} {
		require.NoError(t, os.WriteFile(name, nil, 0o644))
	}
	made := func(r *report.Report) *report.Report {
		r.Package = ""
		r.Made = &report.Made{Command: "compare", Dir: dir, Inputs: report.Inputs{Golden: "ref", Actual: "cand"}}
		return r
	}
	lonely := func(r *report.Report) *report.Report {
		r.Unmatched = report.Unmatched{Golden: []report.Lone{{Name: "a output"}}, Actual: []report.Lone{{Name: "b output"}}}
		return r
	}
	change := func(r *report.Report, f func(*report.Report)) *report.Report { f(r); return r }
	for _, tt := range []struct {
		r      *report.Report
		want   string
		reason string
	}{
		{between(), `go test example.com/user/model -run '^TestModel$/^layers\.1$/^hello\.0$' -count=1`, "the subtest of the place"},
		{change(between(), func(r *report.Report) { r.FirstDivergence.Layer = "layers.0" }),
			`go test example.com/user/model -run '^TestModel$' -count=1`, "the test of another row"},
		{change(between(), func(r *report.Report) { r.Layers = nil }), `go test example.com/user/model -count=1`, "no row knows its test"},
		{made(between()), "parity compare --golden ref --actual cand", "a proven cause was mended"},
		{change(made(between()), func(r *report.Report) {
			r.Made.Inputs = report.Inputs{Golden: "ref", Actual: "a b", Injected: "cand", Injection: "nested", Golden64: "ref", Noise: "ref",
				Weights: []string{"ref", "cand"}, Config: "ref", PadMask: "ref", Names: "c.yaml", Scope: []string{"x.*", "y"},
				Encoding: "bfloat16", Raw: "f32:2", FP8: "f8_e4m3", Within: []string{"atol=1e-05", "equal_nan"}, Reshape: true}
		}), `parity compare --golden ref --actual 'a b' --also injected=cand --injection nested --also golden64=ref --also noise=ref --weights ref ` +
			`--weights cand --config ref --assume pad-mask=ref --names c.yaml --scope 'x.*' --scope y --assume encoding=bfloat16 --assume raw=f32:2 --assume fp8=` +
			`f8_e4m3 --within atol=1e-05 --within equal_nan --allow-reshape`, "everything that was given"},
		{change(made(between()), func(r *report.Report) { r.Made.Actual = "gone" }), "parity report out", "a dump is gone"},
		{made(open()), "parity compare --golden ref --actual cand --scope layers.2 -v", "an open place"},
		{change(made(open()), func(r *report.Report) { r.FirstDivergence.Layer = "norm(2)*" }),
			`parity compare --golden ref --actual cand --scope 'norm(2)\*' -v`, "a name is no pattern"},
		{change(made(open()), func(r *report.Report) { r.FirstDivergence.Layer = "a..b" }), "parity compare --golden ref --actual cand", "a name that no pattern has"},
		{lonely(made(open())), "parity names --golden ref --actual cand -o names.yaml", "layers without a partner on both sides"},
		{lonely(made(between())), "parity compare --golden ref --actual cand", "a proof comes first"},
		{change(lonely(made(open())), func(r *report.Report) { r.Made.Names = "c.yaml" }),
			"parity compare --golden ref --actual cand --names c.yaml --scope layers.2 -v", "names were given"},
		{change(lonely(made(open())), func(r *report.Report) { r.Unmatched.Actual[0].Ignored = true }),
			"parity compare --golden ref --actual cand --scope layers.2 -v", "ignored"},
		{lonely(open()), "parity report out", "dumps that are not known"},
		{lonely(made(&report.Report{Verdict: report.Error, Error: "nothing could be compared"})),
			"parity names --golden ref --actual cand -o names.yaml", "nothing has the same name"},
		{made(&report.Report{Verdict: report.Error, Error: "damaged"}), "", "the error says what to do"},
		{change(briefPassing(), func(r *report.Report) { r.NotJudged = []string{"text"} }), "parity report out", "not all was judged"},
		{briefPassing(), "", "nothing is left"},
		{change(made(open()), func(r *report.Report) { r.FirstDivergence.Place, r.Causes = "", nil }), "parity compare --golden ref --actual cand", "diagnosis was off"},
		{change(open(), func(r *report.Report) { r.FirstDivergence.Place, r.Causes = "", []report.Cause{} }), "parity report out", "no cause was found"},
		{change(briefPassing(), func(r *report.Report) { r.Verdict, r.Coverage.Open = report.Incomplete, []string{"a"} }), "parity report out -v", "too little"},
		{change(between(), func(r *report.Report) {
			r.Layers, r.Settings = nil, &report.Settings{Tags: "gpu", Run: "cpu", Mode: "both"}
		}), "go test example.com/user/model -count=1 -tags=gpu -parity.run=cpu -parity.mode=both", "by the settings of the run"},
		{change(made(between()), func(r *report.Report) { r.Made.Tokens = new(int) }), "parity compare --golden ref --actual cand --tokens 0", "a generation"},
		{change(made(open()), func(r *report.Report) { r.Kind = "input"; r.FirstDivergence.Layer = "" }),
			"parity show ref && parity show cand", "other tokens"},
		{change(made(open()), func(r *report.Report) {
			r.Kind = "input"
			r.Layers[0].Golden, r.Layers[0].Actual = &report.Side{Name: "g-output"}, &report.Side{Name: "a-output"}
		}), "parity show ref --layer g-output && parity show cand --layer a-output", "another input"},
		{change(between(), func(r *report.Report) { // a proven cause along a path
			r.Kind, r.FirstDivergence.Row = "path", &report.Row{Path: "decode:4"}
			r.Paths = []report.Path{{Path: "decode:4", First: &report.Place{Layer: "layers.1"}}}
			r.Layers[1].Test = "TestModel/path:decode-4/layers.1/hello"
		}), `go test example.com/user/model -run '^TestModel$/^path:decode-4$' -count=1`, "the whole path, once it is mended"},
		{change(open(), func(r *report.Report) {
			r.Package, r.Kind, r.FirstDivergence.Row = "example.com/user/model", "path", &report.Row{Path: "decode:4"}
			briefAlong(r)
		}), `go test example.com/user/model -run '/^(path:decode-4|path:chunked-4)$' -count=1`, "paths that fail alike"},
		{change(made(open()), func(r *report.Report) { r.Kind = "path" }), "parity compare --golden ref --actual cand", "a path of dumps"},
		{change(between(), func(r *report.Report) { r.Package = "-exec=sh"; r.Layers = nil }), "go test ./-exec=sh -count=1", "no flag of go test"},
		{change(made(open()), func(r *report.Report) { r.Kind, r.Made.Golden = "input", "-by" }),
			"parity show ./-by && parity show cand", "no flag of parity"},
		{change(between(), func(r *report.Report) { r.Package = "a\x1b[31m" }), "parity report out", "not to be shown as it is"},
		{change(between(), func(r *report.Report) { r.Layers[1].Test = "Test" + strings.Repeat("x", 3000) }), "parity report out", "too long"},
	} {
		next := ""
		if n := report.BriefOf(tt.r, "out").Next; n != nil {
			next = *n
		}
		assert.Equal(t, tt.want, next, tt.reason)
		assert.NotEmpty(t, report.BriefOf(tt.r, "out").WhyNext, tt.reason)
	}
}

// A run that left no report has a brief all the same.
func TestBrokenBrief(t *testing.T) {
	b := report.BrokenBrief("minilm", "the engine died")
	assert.Equal(t, "minilm\nERROR: the engine died\n  stages: not judged: text, tokens, weights, tensors, paths, generation, serving\n", string(b.Text()))
	assert.Contains(t, string(b.JSON()), `"fixture":"minilm","verdict":"error","stage":"run"`)
}

// hostile strings, as names of layers and what engines say may be.
var hostileStrings = []string{"a|b`c`\x1b[31m\n::error::x<script>\u202e\u2028\"\\", "\xff\xfe", "…", "'", strings.Repeat(`"`, 3000),
	strings.Repeat("model.layers.11.self_attn.", 90) + "q_proj", strings.Repeat("\U0001F600", 900), "##[group]", "", " ", "x"}

// within checks what is promised of every brief.
func within(t *testing.T, r *report.Report, file string) {
	t.Helper()
	b := report.BriefOf(r, file)
	text, line := b.Text(), b.JSON()
	assert.LessOrEqual(t, len(text), 2048)
	assert.LessOrEqual(t, len(line), 2048)
	assert.True(t, utf8.Valid(text) && utf8.Valid(line))
	assert.Equal(t, 1, bytes.Count(line, []byte("\n")), "one line")
	assert.NotContains(t, string(text), "\x1b")
	assert.NotRegexp(t, `(?m)^\s*::error`, string(text), "nothing obeys it")
	var back report.Brief
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&back))
	assert.Equal(t, r.Verdict, back.Verdict)
	assert.Equal(t, len(r.Causes) > 0, back.Cause != nil)
	assert.Equal(t, r.FirstDivergence != nil, back.First != nil)
	if f, d := back.First, r.FirstDivergence; f != nil && len(d.Layer) < 40 && len(d.After) < 40 && len(d.Before) < 40 {
		for _, names := range [][2]string{{d.Layer, f.Layer}, {d.After, f.After}, {d.Before, f.Before}} {
			assert.Equal(t, report.Clean(string([]rune(names[0]))), names[1], "a place of usual length is never cut")
		}
	}
	if c := back.Cause; c != nil && len(r.Causes[0].ID) < 40 {
		assert.Equal(t, report.Clean(r.Causes[0].ID), c.ID)
	}
}

// No report makes a brief of more than 2 kB.
func TestBriefBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	s := func() string {
		text := ""
		for range rnd.IntN(3) {
			text += hostileStrings[rnd.IntN(len(hostileStrings))]
		}
		if rnd.IntN(2) == 0 {
			return "a.b"
		}
		return text
	}
	list := func() (out []string) {
		for range rnd.IntN(40) {
			out = append(out, s())
		}
		return out
	}
	for i := range 60 {
		r := between()
		if i%3 == 0 {
			r.Kind = s()
		}
		r.Fixture, r.Package, r.Error, r.NotJudged, r.Frontier = s(), s(), s(), list(), list()
		r.Verdict = []report.Verdict{report.Fail, report.Error}[rnd.IntN(2)]
		r.Coverage.Open = list()
		r.FirstDivergence = &report.Divergence{Row: &report.Row{Path: s()}, Layer: s(), Port: s(), Case: s(), Step: s(), After: s(), Before: s(), Place: s(),
			Text: s(), Evidence: list()}
		if i%4 == 0 {
			r.Kind = "path"
			for range rnd.IntN(30) {
				r.Paths = append(r.Paths, report.Path{Path: s(), Cause: s(), First: &report.Place{Layer: s(), Row: report.Row{Path: s()}}})
			}
		}
		r.Causes = nil
		for range rnd.IntN(4) {
			r.Causes = append(r.Causes, report.Cause{ID: s(), Layer: s(), Text: s(), Proven: rnd.IntN(2) == 0})
		}
		r.Layers[1].Test, r.Layers[1].Layer = s(), r.FirstDivergence.Layer
		within(t, r, s())
		if t.Failed() {
			t.Fatalf("report %d", i)
		}
	}
}

// What was left out is counted.
func TestBriefShortened(t *testing.T) {
	r := between()
	for i := range 300 {
		r.NotJudged = append(r.NotJudged, fmt.Sprint("a text that was not judged, number ", i))
	}
	r.Causes[0].Text = strings.Repeat("words ", 100)
	line := report.BriefOf(r, "x").JSON()
	assert.Contains(t, string(line), `"layer":"layers.1","port":"input_0","case":"hello","step":"0"`)
	var back report.Brief
	require.NoError(t, json.Unmarshal(line, &back))
	kept, more := len(back.NotJudged)-1, 0
	_, err := fmt.Sscanf(back.NotJudged[kept], "… and %d", &more)
	require.NoError(t, err)
	assert.Positive(t, kept)
	assert.Equal(t, len(r.NotJudged), kept+more)
	r.Causes[0].Text = strings.Repeat("words ", 1000)
	assert.Regexp(t, `words .*…\+\d+….*words`, string(report.BriefOf(r, "x").JSON()))
}

func TestMadeHere(t *testing.T) {
	there, here := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(there, "ref"), filepath.Join(there, "cand"), filepath.Join(here, "ref")} {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	t.Chdir(here)
	for _, tt := range []struct {
		dir    string
		in     report.Inputs
		want   []string
		err    string
		reason string
	}{
		{there, report.Inputs{Golden: "ref", Actual: "cand"}, []string{"ref", filepath.Join(there, "cand")}, "",
			"the working folder first, then that of the report"},
		{there, report.Inputs{Golden: "ref", Actual: filepath.Join(there, "cand")}, []string{"ref", filepath.Join(there, "cand")}, "",
			"an absolute path stays"},
		{there, report.Inputs{Golden: "ref", Actual: "cand", Weights: []string{"ref", "gone"}}, nil, "gone, of which the report was made",
			"what is in neither is named"},
		{"", report.Inputs{Golden: "ref", Actual: "cand"}, nil, "cand, of which", "a report that does not say where it was made"},
		{"..", report.Inputs{Golden: "ref", Actual: "cand"}, nil, "cand, of which", "a folder that means something else here"},
		{there, report.Inputs{Golden: "ref"}, nil, "made says not which two dumps", "half a comparison"},
	} {
		m := report.Made{Command: "compare", Dir: tt.dir, Inputs: tt.in}
		in, err := m.Here()
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		var files []string
		for _, p := range in.Paths() {
			files = append(files, *p)
		}
		assert.Equal(t, tt.want, files, tt.reason)
	}
	in := report.Inputs{Noise: "n", Raw: "f32:2", Program: "p"}
	assert.Equal(t, "n", *in.Also()["noise"])
	*in.Also()["injected"] = "i"
	assert.Equal(t, []string{"--also", "injected=i", "--also", "noise=n", "--program", "p", "--assume", "raw=f32:2"}, in.Args())
	assert.Len(t, in.Also(), 6, "the further dumps")
	_, err := (&report.Made{Dir: there, Inputs: report.Inputs{Golden: "a", Actual: "b"}}).Here()
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
