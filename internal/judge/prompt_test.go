package judge_test

import (
	"context"
	"encoding/json"
	"strings"
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

// layers is a run of outputs of two numbers, the first of them v.
func layers(t *testing.T, info dump.Info, v float32, names ...string) *dump.Run {
	t.Helper()
	var entries []dump.Entry
	for i, layer := range names {
		x, err := tensor.Of([]float32{v, float32(i + 1)}, 1, 2)
		require.NoError(t, err)
		entries = append(entries, dump.Entry{Step: "0", Layer: layer, Port: "output", Seq: i, Tensor: x})
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
			c, err := judge.Compare(context.Background(), []judge.Case{{Name: "c", Golden: run(tt.golden, 1, tt.g),
				Actual: run(tt.actual, 1+wrong, tt.a)}}, judge.Options{})
			require.NoError(t, err)
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
			switch {
			case tt.wrongInput:
				require.NotNil(t, c.Verdict, tt.reason)
				assert.Equal(t, localise.KindInput, c.Verdict.Kind, tt.reason)
			case v == 7:
				require.NotNil(t, c.Verdict, tt.reason)
				assert.Equal(t, localise.KindLocal, c.Verdict.Kind, tt.reason)
			default:
				assert.Nil(t, c.Verdict, tt.reason)
			}
		}
	}
}

// A run on golden inputs is no run of the candidate, and no golden: no error adds up in it.
func TestInjectedInPlaceOfStandard(t *testing.T) {
	run := func(mode string) *dump.Run {
		return layers(t, dump.Info{Case: "c", Mode: mode}, 1, "model.lin")
	}
	for _, tt := range []struct {
		k           judge.Case
		who, reason string // no one: it is compared
	}{
		{judge.Case{Golden: run(dump.Standard), Actual: run(dump.Injected)}, "candidate's run", "as the candidate"},
		{judge.Case{Golden: run(dump.Injected), Actual: run(dump.Standard)}, "golden", "as the golden"},
		{judge.Case{Golden: run(dump.Standard), Actual: run(dump.Standard), Golden64: run(dump.Injected)}, "float64 golden",
			"as the golden in float64"},
		{judge.Case{Golden: run(dump.Standard), Actual: run(dump.Standard), Injected: run(dump.Injected)}, "", "where it belongs"},
	} {
		_, err := judge.Compare(context.Background(), []judge.Case{tt.k}, judge.Options{})
		if tt.who == "" {
			assert.NoError(t, err, tt.reason)
		} else {
			assert.ErrorContains(t, err, "the "+tt.who+" is a run on golden inputs", tt.reason)
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
	c, err := judge.Compare(context.Background(), []judge.Case{k}, judge.Options{Match: match.Options{Rules: rules}})
	require.NoError(t, err)
	assert.Contains(t, strings.Join(c.Notes, "\n"),
		`injected run: the rule model.b = model.other is left out: the candidate run has no layer "model.other"`)
}
