package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
)

// What the candidate made of its prompts, and the causes that are known.
func TestPrompts(t *testing.T) {
	info := func(texts ...dump.Text) *dump.Info { return &dump.Info{Text: texts} }
	golden := info(dump.Text{Path: "completion", Prompt: "a", TokenIDs: []int{1, 4, 5}}, dump.Text{Path: "completion", Prompt: "b", TokenIDs: []int{1, 9, 8, 7}})
	rows, causes := report.PromptsOf("hello", golden, info(
		dump.Text{Path: "completion", Prompt: "a", TokenIDs: []int{1, 4, 5}}, dump.Text{Path: "completion", Prompt: "b", TokenIDs: []int{1, 9, 6, 7}},
		dump.Text{Path: "served", Prompt: "a", TokenIDs: []int{1, 1, 4, 5}}, dump.Text{Path: "served", Prompt: "c"}))
	var statuses []report.Status
	for _, r := range rows {
		statuses = append(statuses, r.Status)
		assert.Equal(t, "hello", r.Case)
	}
	assert.Equal(t, []report.Status{report.StatusPass, report.StatusFail, report.StatusFail, report.NotJudged}, statuses)
	assert.Equal(t, []int{-1, 2, 1, -1}, []int{rows[0].First, rows[1].First, rows[2].First, rows[3].First})
	require.Len(t, causes, 1, "of one nothing is known but that it differs")
	assert.Equal(t, "text/bos-twice", causes[0].ID)

	alone := &report.Report{}
	alone.SetPrompts(rows[:1], nil, true)
	assert.Equal(t, report.Pass, alone.Verdict, "a run of nothing else")
	assert.Equal(t, "1 text as the reference makes it; 0 layers, 0 tensors compared", report.Headline(alone))
	beside := &report.Report{}
	beside.SetPrompts(rows[:1], nil, false)
	assert.Empty(t, beside.Verdict, "layers decide, too")
	wrong := tensors(true)
	wrong.SetPrompts(rows, causes, false)
	assert.Equal(t, []string{"the tensors differ, too, first at a: that is judged once the text is right"}, wrong.Notes)
	assert.Equal(t, "text", wrong.Kind)
	assert.Equal(t, "the engine makes another text or other tokens of a prompt: text/bos-twice; 1 layer, 1 tensor compared", report.Headline(wrong))
	_, why := wrong.Next("")
	assert.Equal(t, "mend the tokenizer or the template (text/bos-twice, see docs/causes.md#text), not the model; the report has the details", why)
}

// Of several texts the worst is the headline.
func TestGenerations(t *testing.T) {
	of := func(verdict string) report.Generation {
		at := 1
		return report.Generation{Case: verdict, Verdict: verdict, Text: verdict + " it is", At: &at, Tokens: 8}
	}
	for _, tt := range []struct {
		all    []report.Generation
		want   string
		reason string
	}{
		{[]report.Generation{of("identical")}, "identical it is", "one"},
		{[]report.Generation{of("identical"), of("identical")}, "IDENTICAL: all 16 tokens of 2 texts", "all alike"},
		{[]report.Generation{of("identical"), of("tie"), of("identical")}, "case tie: tie it is", "the worst"},
		{[]report.Generation{of("diverged"), of("logits"), of("too flat")}, "case diverged: diverged it is; first divergence lm_head", "and its place"},
	} {
		r := &report.Report{Verdict: report.Pass, Made: &report.Made{}, Generations: tt.all}
		if tt.all[0].Verdict == "diverged" {
			r.Verdict, r.Kind, r.FirstDivergence = report.Fail, report.KindGeneration, &report.Divergence{Layer: "lm_head"}
		}
		assert.Equal(t, tt.want, report.Headline(r), tt.reason)
	}
}

// What is open is the headline of a run that holds.
func TestIncompleteHeadline(t *testing.T) {
	r := passing()
	r.Verdict = report.Incomplete
	r.Coverage.Open = []string{"a is open"}
	assert.Equal(t, "compared 13 of 15 outputs, which hold; a is open", report.Headline(r))
	r.Coverage.Open = append(r.Coverage.Open, "b", "c")
	assert.Equal(t, "compared 13 of 15 outputs, which hold; a is open (and 2 more)", report.Headline(r))
}

func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, report.Save(dir, failing()))
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	assert.True(t, json.Valid(data))
	data, err = os.ReadFile(filepath.Join(dir, "report.txt"))
	require.NoError(t, err)
	assert.Equal(t, text(t, failing(), report.TextOptions{}), string(data))
	assert.Error(t, report.Save(dir, &report.Report{}), "no verdict")
}

func served(verdict report.Verdict) *report.Serving {
	tie := 2
	nan := report.Float(math.NaN())
	s := &report.Serving{Verdict: verdict, Causes: []report.Cause{}, Server: report.Server{URL: "http://127.0.0.1:8000", Model: "m", Parallel: 4},
		Requests: []report.ServedRequest{
			{Case: "a", As: "ids", Way: "alone", Status: report.StatusPass, Judged: []string{"tokens", "logprobs"}, Tokens: 4, Right: 3, Tie: &tie},
			{Case: "a", As: "ids", Way: "prefix", From: 2, Status: report.StatusPass, Judged: []string{"tokens"}, Tokens: 2, Right: 2, LogProb: nan}}}
	switch verdict {
	case report.Fail:
		s.Requests[1].Status, s.Requests[1].Text = report.StatusFail, "token 1 is 5, the reference's is 6"
		s.First = &report.ServingPlace{Case: "a", As: "ids", Way: "prefix", Token: 1, Text: s.Requests[1].Text}
		s.Causes = []report.Cause{{ID: "serving/cache", Proven: true, Fit: nan, FitGolden: nan, Text: "right after another prompt"}}
		s.Harness = "the model is right"
	case report.Error:
		s.Error, s.First = "no answer that can be judged", nil
	}
	return s
}

func TestServingAlone(t *testing.T) {
	for _, c := range []struct {
		verdict       report.Verdict
		kind, head    string
		texts, absent []string
	}{
		{report.Pass, "", "2 answers of the server are the reference's, 1 until a tie",
			[]string{"a as ids, alone: 3 of 4 tokens right, a tie at 2, what follows is not judged (tokens, logprobs)",
				"a as ids, prefix from token 2: 2 of 2 tokens right (tokens)"}, []string{"Source", "Causes", "proven"}},
		{report.Fail, "serving", "the server answers wrong: case a as ids, prefix, token 1: serving/cache (proven); 1 of 2 answers are wrong",
			[]string{"a as ids, prefix from token 2: FAIL, token 1 is 5, the reference's is 6", "Right after another prompt. See docs/causes.md#serving.", "the model is right"}, []string{"a as ids, alone", "Source", "it predicts no numbers"}},
		{report.Error, "", "no answer that can be judged", nil, []string{"proven"}},
	} {
		r := &report.Report{Fixture: "f"}
		r.SetServing(served(c.verdict))
		assert.Equal(t, c.verdict, r.Verdict)
		assert.Equal(t, c.kind, r.Kind)
		assert.Equal(t, c.head, report.Headline(r))
		assert.Nil(t, r.FirstDivergence, "no layer is accused")
		var text, data bytes.Buffer
		require.NoError(t, report.Text(&text, r, report.TextOptions{Width: 300}))
		for _, want := range c.texts {
			assert.Contains(t, text.String(), want)
		}
		for _, not := range c.absent {
			assert.NotContains(t, text.String(), not)
		}
		require.NoError(t, report.Write(&data, r))
		again, err := report.Read(&data)
		require.NoError(t, err)
		assert.Equal(t, c.head, report.Headline(again))
		text.Reset()
		require.NoError(t, report.Markdown(&text, again, "report.json"))
		for _, want := range c.texts {
			assert.Contains(t, strings.NewReplacer(`\`, "", "&#39;", "'").Replace(text.String()), want)
		}
	}
}

func TestServingHeadline(t *testing.T) {
	for _, tt := range []struct {
		change func(s *report.Serving)
		want   string
		reason string
	}{
		{func(s *report.Serving) { s.Causes = nil }, "the server answers wrong: case a as ids, prefix, token 1; 1 of 2 answers are wrong", "no cause"},
		{func(s *report.Serving) { s.First = nil }, "2 answers of the server are the reference's, 1 until a tie", "a tie"},
		{func(s *report.Serving) { s.First, s.Requests = nil, s.Requests[1:] }, "1 answer of the server is the reference's", "none"},
	} {
		s := served(report.Fail)
		tt.change(s)
		assert.Equal(t, tt.want, s.Headline(), tt.reason)
	}
	ended := 2
	r := report.ServedRequest{Case: "a", As: "text", Way: "alone", Status: report.StatusPass, Judged: []string{"text"}, Tokens: 4, Right: 2, Ended: &ended}
	assert.Equal(t, "a as text, alone: 2 of 4 tokens right, then the text ends (text)", r.String())
}

// A report may not hold more than its serving.
func TestServingThatContradicts(t *testing.T) {
	r := &report.Report{Verdict: report.Pass, Serving: served(report.Fail)}
	assert.ErrorContains(t, report.Write(&bytes.Buffer{}, r), "verdict pass, but that of serving is fail")
	r = &report.Report{Verdict: report.Pass, Serving: &report.Serving{Verdict: report.Pass}}
	assert.ErrorContains(t, report.Write(&bytes.Buffer{}, r), "nothing was compared")
}

func TestCostString(t *testing.T) {
	for want, bytes := range map[string]int64{"1 MiB, 0 s": 1 << 20, "1.02e+03 KiB, 0 s": 1<<20 - 1024, "0.5 KiB, 0 s": 512} {
		assert.Equal(t, want, report.Cost{PeakBytes: bytes}.String())
	}
}

func TestCosts(t *testing.T) {
	r := toy.DeepReport(2, 1)
	r.Costs = []report.Cost{
		{Layer: "m.0", Seconds: 0.5, PeakBytes: 9 << 20},
		{Layer: "m.0.attn", Seconds: 0.25, PeakBytes: 3 << 20, Entropy: []report.Entropy{{Nats: 1, Part: 0.5}, {Nats: 2, Part: 1, Uniform: true}, {Nats: nan()}}},
		{Layer: "m.0.attn.q", Seconds: 0.125, PeakBytes: 512},
		{Layer: "m.0.mlp", Seconds: 0.125, PeakBytes: 4 << 20},
	}
	for _, tt := range []struct {
		verbose bool
		want    []string
		reason  string
	}{
		{false, []string{"m.0.mlp", "m.0.attn", "m.0.attn.q"}, "a container takes what is in it; most memory first"},
		{true, []string{"m.0", "m.0.attn", "m.0.attn.q", "m.0.mlp"}, "all, as they ran"},
	} {
		var out strings.Builder
		require.NoError(t, report.Text(&out, r, report.TextOptions{Width: 120, Verbose: tt.verbose}))
		_, text, found := strings.Cut(out.String(), "What the candidate's layers took")
		require.True(t, found, tt.reason)
		var got []string
		for _, line := range strings.Split(text, "\n")[1:] {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] == "…" {
				break
			}
			got = append(got, words[0])
		}
		assert.Equal(t, tt.want, got, tt.reason)
		assert.Contains(t, text, "3 MiB, 0.25 s, 1.5 nats, 0.75 of ln n, 1 of 3 heads uniform")
	}
}

// What a run's engine has measured, each layer once, with the attention that was recorded.
func TestCostsOf(t *testing.T) {
	weights := floats(t, []int{1, 1, 5, 2}, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
	run := &dump.Run{Entries: []dump.Entry{{Layer: "m.attn", Port: "output_1", Step: "0", Tensor: weights}, {Layer: "m.attn", Port: "output_0", Step: "0"},
		{Layer: "m.norm", Port: "output", Step: "0"}, {Layer: "m.mlp", Port: "output", Step: "0"}, {Layer: "m.mlp", Port: "output", Step: "1"}}}
	require.NoError(t, json.Unmarshal([]byte(`{"costs": {"m.attn": [0.5, 7], "m.mlp": [0.25, 9]}}`), &run.Info))
	assert.Equal(t, []report.Cost{
		{Case: "hello", Layer: "m.attn", Seconds: 0.5, PeakBytes: 7, Entropy: []report.Entropy{{Nats: report.Float(math.Ln2), Part: 1, Uniform: true}}},
		{Case: "hello", Layer: "m.mlp", Seconds: 0.25, PeakBytes: 9}}, report.CostsOf("hello", run))
	assert.Nil(t, report.CostsOf("hello", &dump.Run{Entries: run.Entries}), "nothing was measured")
}
