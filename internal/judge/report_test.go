package judge_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// chain is a model of two layers, a and b; the candidate's tensors are scaled.
func chain(t *testing.T, inA, outA, inB, outB float64) *judge.Comparison {
	t.Helper()
	labels := []string{"m.a-input_0", "m.a-output", "m.b-input_0", "m.b-output"}
	var g, a []port
	for i, scale := range []float64{inA, outA, inB, outB} {
		g = append(g, port{labels[i], wave(t, 1, float64(i), 1, 6, 8)})
		a = append(a, port{labels[i], wave(t, scale, float64(i), 1, 6, 8)})
	}
	return compareRuns(t, run("torch", g...), run("max", a...))
}

func TestStatusOfRows(t *testing.T) {
	const pass, fail, ignored = report.StatusPass, report.StatusFail, report.StatusIgnored
	for _, c := range []struct {
		scale   [4]float64
		decide  []string // by the test; nil: all by the fixture's tolerances
		verdict report.Verdict
		status  [4]report.Status
		reason  string
	}{
		{[4]float64{1, 1, 1, 1}, nil, report.Pass, [4]report.Status{pass, pass, pass, pass}, "all is equal"},
		{[4]float64{1, 1, 1, 1.1}, nil, report.Fail, [4]report.Status{pass, pass, pass, fail}, "an output is wrong"},
		{[4]float64{1, 1, 1.1, 1}, nil, report.Pass, [4]report.Status{pass, pass, pass, pass},
			"an input never fails alone"},
		{[4]float64{1, 1, 1.1, 1.1}, nil, report.Fail, [4]report.Status{pass, pass, fail, fail},
			"next to a wrong output it is evidence"},
		{[4]float64{1, 1, 1, 1.1}, []string{"m.a"}, report.Pass, [4]report.Status{pass, pass, ignored, ignored},
			"no one asked for b"},
		{[4]float64{1, 1.1, 1.1, 1.1}, []string{"m.a"}, report.Fail, [4]report.Status{pass, fail, ignored, ignored},
			"a was asked for"},
		{[4]float64{1, 1, 1, 1}, []string{}, report.Error, [4]report.Status{ignored, ignored, ignored, ignored},
			"nothing was judged: no pass"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			cmp := chain(t, c.scale[0], c.scale[1], c.scale[2], c.scale[3])
			for _, l := range c.decide {
				for _, r := range cmp.Layers.Runs(l) {
					for _, p := range r.Judged {
						p.Decide(nil, "", false)
					}
				}
			}
			r := cmp.Report("toy", c.decide == nil)
			assert.Equal(t, c.verdict, r.Verdict)
			require.Len(t, r.Layers, 4)
			for i, l := range r.Layers {
				assert.Equal(t, c.status[i], l.Status, "%s %s", l.Layer, l.Port)
				assert.False(t, l.Status == ignored && l.Note == "", "an ignored row says why")
			}
			assert.Equal(t, c.verdict == report.Fail, r.FirstDivergence != nil)
			assert.NoError(t, report.Write(&bytes.Buffer{}, r))
		})
	}
}

// A test's criteria decide, not the fixture's; and a pass never hides a failure of another test.
func TestDecisions(t *testing.T) {
	for _, c := range []struct {
		atol   []float64
		want   report.Status
		source string
		reason string
	}{
		{[]float64{1.5}, report.StatusPass, "a_test.go:0", "wider than the default"},
		{[]float64{1e-9}, report.StatusFail, "a_test.go:0", "narrower"},
		{[]float64{1e-9, 1.5}, report.StatusFail, "a_test.go:0", "the failure first"},
		{[]float64{1.5, 1e-9}, report.StatusFail, "a_test.go:1", "the failure last"},
		{[]float64{1.5, 1.4}, report.StatusPass, "a_test.go:1", "of two passes the last"},
	} {
		cmp := chain(t, 1, 1, 1, 1.1)
		for i, atol := range c.atol {
			find(t, cmp, "m.b-output").Decide(within(atol), fmt.Sprintf("a_test.go:%d", i), false)
		}
		got := row(t, cmp.Report("toy", false), "m.b-output")
		assert.Equal(t, c.want, got.Status, c.reason)
		assert.Equal(t, c.source, got.Tolerance.Source, c.reason)
	}
}

func TestWhatCannotBeCompared(t *testing.T) {
	short := wave(t, 1, 0, 1, 4)
	for _, c := range []struct {
		golden, actual []port
		want           string
		reason         string
	}{
		{[]port{{"a-output", short}}, []port{{"b.c-output", wave(t, 1, 0, 3, 5)}},
			"no port of the golden (a output …) matches one of the candidate (b.c output …)", "no name in common"},
		{[]port{{"a-output", wave(t, 1, 0, 1, 0)}}, []port{{"a-output", wave(t, 1, 0, 1, 0)}},
			"nothing could be compared", "only empty tensors"},
	} {
		_, err := judge.Compare(context.Background(),
			[]judge.Case{{Name: "short", Golden: run("torch", c.golden...), Actual: run("max", c.actual...)}},
			judge.Options{})
		assert.ErrorIs(t, err, judge.ErrNothing, c.reason)
		assert.ErrorContains(t, err, c.want, c.reason)
	}

	g := run("torch", port{"m.a-output", short}, port{"m.b-output", wave(t, 1, 1, 2, 4)})
	a := run("max", port{"m.a-output", short}, port{"m.b-output", wave(t, 1, 1, 2, 5)})
	c := compareRuns(t, g, a)
	r := c.Report("toy", true)
	assert.Equal(t, report.Fail, r.Verdict, "a wrong shape is a failure")
	l := row(t, r, "m.b-output")
	assert.Equal(t, report.StatusError, l.Status)
	assert.Contains(t, l.Note, "5")

	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := judge.Compare(canceled, []judge.Case{{Name: "short", Golden: g, Actual: a}}, judge.Options{})
	assert.ErrorIs(t, err, context.Canceled)
}

// The report is the same on one core and on many, and tests may decide while another reads.
func TestParallel(t *testing.T) {
	build := func() []byte {
		var g, a []port
		for i := range 40 {
			label := fmt.Sprintf("m.layers.%d-output", i)
			g = append(g, port{label, wave(t, 1, float64(i), 1, 6, 8)})
			a = append(a, port{label, wave(t, 1+float64(i%3)/1000, float64(i), 1, 6, 8)})
		}
		c := compareRuns(t, run("torch", g...), run("max", a...))
		var wg sync.WaitGroup
		for i, p := range c.Ports {
			wg.Go(func() {
				if j := p.Decide(within(1e-3), "x_test.go:1", false); j.Row.Status == report.StatusFail {
					j.Explain()
				}
				p.Decide(nil, "", false)
			})
			if i%10 == 0 {
				wg.Go(func() { c.Report("toy", false) })
				wg.Go(func() { c.Layers.Missing("m.layers.0") })
			}
		}
		wg.Wait()
		var b bytes.Buffer
		require.NoError(t, report.Write(&b, c.Report("toy", true)))
		return b.Bytes()
	}
	many := build()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := build()
	assert.Equal(t, string(one), string(many))
}

// A failing row of the report says which rows of its tensor are wrong.
func TestExplainedRows(t *testing.T) {
	g := wave(t, 1, 0, 16, 64)
	wrong := change(t, g, func(r, c int) float64 {
		if r >= 10 {
			return -g.At(64*r + c)
		}
		return g.At(64*r + c)
	})
	c := compareRuns(t, run("torch", port{"m.a-output", g}), run("max", port{"m.a-output", wrong}))
	l := c.Report("toy", true).Layers[0]
	require.NotNil(t, l.Rows)
	assert.Equal(t, 16, l.Rows.N)
	require.Len(t, l.Rows.RelL2, 16)
	assert.Zero(t, l.Rows.RelL2[9])
	assert.InDelta(t, 2, float64(l.Rows.RelL2[10]), 1e-9)
	require.NotNil(t, l.Histogram)
	assert.GreaterOrEqual(t, l.Histogram.Equal, 640)
	assert.Contains(t, l.Detail, "wrong: all rows from 10 on, of 16; off by 2 or more there, by 0 at most elsewhere")
}

// layers is a run of outputs of two numbers, the first of them v.
func layers(t *testing.T, info dump.Info, v float32, names ...string) *dump.Run {
	t.Helper()
	var entries []dump.Entry
	for i, layer := range names {
		entries = append(entries, dump.Entry{Step: "0", Layer: layer, Port: "output", Seq: i, Tensor: toy.Of(t, []float32{v, float32(i + 1)}, 1, 2)})
	}
	return dump.New("x", info, dump.OrderRunFile, entries)
}

// Two runs of different tokens are not two answers to one question, whatever layer shows it first.
func TestOtherPrompt(t *testing.T) {
	run := func(ids string, v float32, also dump.Info) *dump.Run {
		also.Case, also.Mode, also.TokenIDs = "c", dump.Standard, json.RawMessage(ids)
		return layers(t, also, v, "model.lin")
	}
	padded := dump.Info{PadMask: [][]int{{0, 1, 1}}}
	generation := dump.Info{Generation: &dump.Generation{From: 2, Tokens: []int{3}}}
	for _, tt := range []struct {
		golden, actual string
		g, a           dump.Info
		text, reason   string // no text: the prompts are the same
	}{
		{"[[1,2]]", "[[1,3]]", dump.Info{}, dump.Info{}, "token 1 of sequence 0 is 2 in the golden and 3 in the candidate", "other ids"},
		{"[[1,2]]", "[1,2,3]", dump.Info{}, dump.Info{}, "sequence 0 has 2 tokens in the golden and 3 in the candidate", "more ids, in another form"},
		{"[[1,2],[3]]", "[[1],[2,3]]", dump.Info{}, dump.Info{}, "sequence 0 has 2 tokens in the golden and 1 in the candidate", "cut elsewhere"},
		{"[[1],[2],[3]]", "[[1],[2]]", dump.Info{}, dump.Info{}, "the golden got 3 sequences, the candidate 2", "a sequence less"},
		{"[[1,2]]", "[1,2]", dump.Info{}, dump.Info{}, "", "the same ids in another form"},
		{"[[1,2],[3,4]]", "[1,2,3,4]", dump.Info{}, dump.Info{}, "", "a batch as a flat list"},
		{"[[0,1,2]]", "[[1,2]]", padded, dump.Info{}, "", "without padding"},
		{"[[1,2]]", "[[1,2,3,4]]", dump.Info{}, generation, "", "the prompt of a generation"},
		{"[[1,2]]", "[]", dump.Info{}, dump.Info{}, "", "an oracle that has no ids"},
		{"[[1,2]]", "", dump.Info{}, dump.Info{}, "", "a candidate that does not say"},
	} {
		for _, wrong := range []float32{0, 1} {
			c := compared(t, judge.Case{Name: "c", Golden: run(tt.golden, 1, tt.g),
				Actual: run(tt.actual, 1+wrong, tt.a)}, judge.Options{})
			r := c.Report("x", true)
			switch {
			case tt.text != "":
				require.NotNil(t, c.Verdict, tt.reason)
				assert.Equal(t, localise.KindInput, c.Verdict.Kind, tt.reason)
				assert.Contains(t, c.Verdict.Text, tt.text, tt.reason)
				assert.Empty(t, c.Verdict.Layer, "no layer is accused: "+tt.reason)
				assert.Equal(t, report.Fail, r.Verdict, "%s, %g off", tt.reason, wrong)
				assert.Contains(t, report.Headline(r), "not given the same input")
				again, err := report.Rejudge(r, compare.Criteria{compare.RelL2: 0.9}, "a test")
				require.NoError(t, err)
				assert.Equal(t, report.Fail, again.Verdict, "no tolerance makes it the same question: "+tt.reason)
			case wrong == 0:
				assert.Nil(t, c.Verdict, tt.reason)
				assert.Equal(t, report.Pass, r.Verdict, tt.reason)
			default:
				require.NotNil(t, c.Verdict, tt.reason)
				assert.Equal(t, localise.KindLocal, c.Verdict.Kind, tt.reason)
			}
		}
	}
}

// Another case whose prompts differ is not forgotten where a layer of the first one is wrong.
func TestOtherPromptOfAnotherCase(t *testing.T) {
	run := func(name, ids string, v float32) *dump.Run {
		return layers(t, dump.Info{Case: name, Mode: dump.Standard, TokenIDs: json.RawMessage(ids)}, v, "model.lin")
	}
	c, err := judge.Compare(context.Background(), []judge.Case{
		{Name: "a", Golden: run("a", "[[1]]", 1), Actual: run("a", "[[1]]", 2)},
		{Name: "b", Golden: run("b", "[[1]]", 1), Actual: run("b", "[[2]]", 1)}}, judge.Options{})
	require.NoError(t, err)
	assert.Equal(t, localise.KindLocal, c.Verdict.Kind)
	require.NotEmpty(t, c.Report("x", true).Notes)
	assert.Contains(t, c.Report("x", true).Notes[0], "case b: the two runs were not given the same input")
}

// Ids are compared by value, whatever the type in which an engine has them: they do not become the
// verdict where a layer is wrong, and do where one of them is.
func TestIDsOfAnyType(t *testing.T) {
	for _, tt := range []struct {
		ids        *tensor.Tensor
		wrongInput bool
		reason     string
	}{
		{toy.Of(t, []int32{1, 2, 300}, 1, 3), false, "mlx has int32"},
		{toy.Of(t, []uint32{1, 2, 300}, 1, 3), false, "without a sign"},
		{toy.Of(t, []int16{1, 2, 300}, 3), false, "without a batch axis"},
		{toy.Of(t, []float32{1, 2, 300}, 1, 3), false, "as floats"},
		{toy.Of(t, []int32{1, 2, 301}, 1, 3), true, "another id"},
		{toy.Of(t, []float32{1, 2, 300.0001}, 1, 3), true, "nearly the id"},
	} {
		of := func(ids *tensor.Tensor, v float32) *dump.Run {
			return run("x", port{"model.embed_tokens-input_0", ids}, port{"model.embed_tokens-output", toy.Of(t, []float32{1, 2, 3, 4, 5, v}, 1, 3, 2)})
		}
		golden := toy.Of(t, []int64{1, 2, 300}, 1, 3)
		for _, v := range []float32{6, 7} {
			c := compareRuns(t, of(golden, 6), of(tt.ids, v))
			require.Len(t, c.Ports, 2, tt.reason)
			require.Truef(t, c.Ports[0].Joined(), "%s: %s", tt.reason, c.Ports[0].Problem)
			assert.Equal(t, !tt.wrongInput, c.Ports[0].Agrees, tt.reason)
			want := map[bool]string{true: localise.KindLocal}[v == 7]
			if tt.wrongInput {
				want = localise.KindInput
			}
			assert.Equal(t, want, cmp.Or(c.Verdict, &localise.Verdict{}).Kind, tt.reason)
		}
	}
}

// A run on golden inputs is no run of the candidate, and no golden: no error adds up in it. Another run of the reference
// that was given something else measures nothing.
func TestRunsInTheWrongPlace(t *testing.T) {
	of := func(path, mode, tokens string) *dump.Run {
		r := layers(t, dump.Info{Case: "c", Mode: mode, TokenIDs: json.RawMessage(tokens)}, 1, "model.lin")
		r.Path = path
		return r
	}
	golden, actual, injected := of("g", dump.Standard, "[[1,2]]"), of("a", dump.Standard, "[[1,2]]"), of("i", dump.Injected, "[[1,2]]")
	for _, tt := range []struct {
		k            judge.Case
		want, reason string // no error: it is compared
	}{
		{judge.Case{Golden: golden, Actual: injected}, "the candidate's run is a run on golden inputs", "as the candidate"},
		{judge.Case{Golden: injected, Actual: actual}, "the golden is a run on golden inputs", "as the golden"},
		{judge.Case{Golden: golden, Actual: actual, Golden64: injected}, "the float64 golden is a run on golden inputs", "as the golden in float64"},
		{judge.Case{Golden: golden, Actual: actual, Injected: injected}, "", "where it belongs"},
		{judge.Case{Golden: golden, Actual: actual, Unquantised: actual}, "it is the candidate's own run", "not the reference"},
		{judge.Case{Golden: golden, Actual: actual, Unquantised: of("o", dump.Standard, "[[1,3]]")},
			"token 1 of sequence 0 is 2 in the golden and 3 in the reference on the weights before quantisation", "other tokens"},
	} {
		_, err := judge.Compare(t.Context(), []judge.Case{tt.k}, judge.Options{})
		if tt.want == "" {
			assert.NoError(t, err, tt.reason)
		} else {
			assert.ErrorContains(t, err, tt.want, tt.reason)
		}
	}
}

// A rule for a layer that the injected run lacks is left out there, and that is said.
func TestInjectedWithoutALayer(t *testing.T) {
	run := func(mode string, names ...string) *dump.Run {
		return layers(t, dump.Info{Case: "c", Mode: mode}, 1, names...)
	}
	k := judge.Case{Name: "c", Golden: run(dump.Standard, "model.a", "model.b"), Actual: run(dump.Standard, "model.a", "model.other"),
		Injected: run(dump.Injected, "model.a")}
	rules := []match.Rule{{Golden: []string{"model.b"}, Candidate: []string{"model.other"}}}
	c := compared(t, k, judge.Options{Match: match.Options{Rules: rules}})
	assert.Contains(t, strings.Join(c.Notes, "\n"),
		`injected run: the rule model.b = model.other is left out: the candidate run has no layer "model.other"`)
}
