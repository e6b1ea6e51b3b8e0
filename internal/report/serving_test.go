package report_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
)

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
