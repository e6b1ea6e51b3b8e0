package serving_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/serving/servingtest"
)

// choice is the only choice of an answer.
func choice(answer map[string]any) map[string]any {
	return answer["choices"].([]any)[0].(map[string]any)
}

// A server may know the prompts of the cases alone, or chats alone.
func TestServersThatKnowLittle(t *testing.T) {
	refs := servingtest.Cases(tokensOfCases)
	tables := &stub{Answer: func(w http.ResponseWriter, q *request, n, busy int) bool {
		if slices.ContainsFunc(refs, func(r *serving.Reference) bool { return slices.Equal(r.Prompt, q.Tokens) }) {
			return false
		}
		http.Error(w, "no such prompt", http.StatusNotFound)
		return true
	}}
	out := judge(t, tables, refs[:1], serving.Options{})
	assert.Equal(t, report.Pass, out.Verdict, out.Error)
	assert.Contains(t, strings.Join(out.Notes, "\n"), "not judged: case first as ids, prefix from token 3: /v1/completions: 404 Not Found: no such prompt")
	chats := &stub{Answer: func(w http.ResponseWriter, q *request, n, busy int) bool {
		if q.As != serving.AsChat {
			http.NotFound(w, nil)
		}
		return q.As != serving.AsChat
	}}
	out = judge(t, chats, refs[3:], serving.Options{})
	assert.Equal(t, report.Pass, out.Verdict, out.Error)
	assert.Len(t, planned(out), 1+1+4, "alone, refused as ids, and the same four times at once")
	out = judge(t, chats, refs, serving.Options{})
	assert.Equal(t, report.Error, out.Verdict, "the cases of the others have no answer")
	silent := writing(func([]int) string { return "\uFFFD" })
	silent.NoIDs, silent.NoLogProbs = true, true
	out = judge(t, silent, refs, serving.Options{})
	assert.Equal(t, report.Error, out.Verdict, "nothing to judge by is no pass")
	assert.Contains(t, out.Error, "no token ids and no log-probabilities")
}

// Of several models the one of the fixture is asked.
func TestModels(t *testing.T) {
	var asked []string
	s := &stub{Answer: func(w http.ResponseWriter, q *request, n, busy int) bool {
		asked = append(asked, q.Model)
		return false
	}}
	s.Models = []string{"other", "/models/mine"}
	for _, c := range []struct{ name, like, want, says string }{
		{"", "./mine", "/models/mine", "the server has 2 models, /models/mine is asked"},
		{"", "/models/mine", "/models/mine", "the server has 2 models"},
		{"", "x", "other", "the server has 2 models, other is asked"},
		{"", "", "other", "the server has 2 models"},
		{"other", "mine", "other", ""},
		{"mine", "mine", "", "the server has no model mine, but other, /models/mine"},
	} {
		asked = nil
		out, err := serving.Run(t.Context(), servingtest.Cases(1)[:1], serving.Options{URL: s.Start(t), Name: c.name, Like: c.like, Parallel: 1})
		require.NoError(t, err)
		if c.want != "" {
			assert.Equal(t, []string{c.want}, slices.Compact(asked), c.says)
		}
		assert.Equal(t, c.want == "", out.Verdict == report.Error, c.says)
		assert.Contains(t, strings.Join(append(out.Notes, out.Error), "\n"), c.says)
	}
	for _, status := range []int{http.StatusNotFound, http.StatusOK} { // no such list, and an empty answer
		mux := http.NewServeMux()
		mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		mux.Handle("/", s.Handler())
		server := httptest.NewServer(mux)
		defer server.Close()
		asked = nil
		out, err := serving.Run(t.Context(), servingtest.Cases(1)[:1], serving.Options{URL: server.URL, Like: "mine", Parallel: 1})
		require.NoError(t, err)
		assert.Equal(t, report.Pass, out.Verdict, out.Error)
		assert.Equal(t, []string{"mine"}, slices.Compact(asked))
		assert.Contains(t, strings.Join(out.Notes, "\n"), "/v1/models lists no models: mine is asked")
	}
}

// What a server refuses is left out, for as little as that takes.
func TestForms(t *testing.T) {
	ids := func(b map[string]any) bool { return b["return_token_ids"] != nil }
	several := func(b map[string]any) bool { p, ok := b["logprobs"].(float64); return ok && p > 1 }
	scores := func(b map[string]any) bool { return b["logprobs"] != nil }
	number := func(b map[string]any) bool { _, isBool := b["logprobs"].(bool); return scores(b) && !isBool }
	for _, c := range []struct {
		refuses func(body map[string]any) bool
		message string
		want    string // what is asked in the end
		reason  string
	}{
		{func(map[string]any) bool { return false }, "", "logprobs=5 return_token_ids=true", "knows all"},
		{ids, "return_token_ids: Extra inputs are not permitted", "logprobs=5", "says which key"},
		{ids, "Value error.", "logprobs=5", "does not say which key"},
		{several, "`logprobs` must be in [0, 1], was 5.", "logprobs=1 return_token_ids=true", "knows one alternative"},
		{scores, "Log probabilities are not supported with the overlap scheduler.", "return_token_ids=true", "knows no log-probabilities"},
		{func(b map[string]any) bool { return scores(b) || ids(b) }, "Value error.", "", "knows neither"},
		{number, "logprobs must be of type bool", "logprobs=true return_token_ids=true top_logprobs=5", "completions are asked as chats are"},
	} {
		var heard atomic.Value // the last body; requests come at once, too
		s := &stub{Refuses: func(body map[string]any) string {
			if body["stream"] == nil {
				heard.Store(body)
			}
			if c.refuses(body) {
				return c.message
			}
			return ""
		}}
		out := judge(t, s, servingtest.Cases(2)[:1], serving.Options{})
		last := heard.Load().(map[string]any)
		assert.Equal(t, report.Pass, out.Verdict, "%s: %s", c.reason, out.Error)
		var keys []string
		for _, k := range []string{"logprobs", "return_token_ids", "top_logprobs"} {
			if last[k] != nil {
				text, _ := json.Marshal(last[k])
				keys = append(keys, k+"="+string(text))
			}
		}
		assert.Equal(t, c.want, strings.Join(keys, " "), c.reason)
		assert.Equal(t, c.reason != "knows all", strings.Contains(strings.Join(out.Notes, "\n"), "/v1/completions refuses"), c.reason)
	}
	s := &stub{Refuses: func(map[string]any) string { return "no" }}
	out := judge(t, s, servingtest.Cases(2)[:1], serving.Options{})
	assert.Equal(t, report.Error, out.Verdict)
	assert.Contains(t, out.Error, "400 Bad Request: no")
}

// A server may name other tokens than it chose, where it is asked for several alternatives: then it is asked for one.
func TestMisnamedTokens(t *testing.T) {
	for _, tt := range []struct {
		always bool // it does so of one alternative, too
		notes  string
		reason string
	}{
		{false, "it is asked for one alternative", "one alternative is the token that it chose"},
		{true, "they were left out", "its texts are right"},
	} {
		s := &stub{NoIDs: true, Change: func(q *request, answer map[string]any, n, busy int) {
			c := choice(answer)
			scores := c["logprobs"].(map[string]any)["token_logprobs"].([]float64)
			var content []any
			for i, word := range strings.Fields(c["text"].(string)) {
				id, _ := strconv.Atoi(word[1:])
				if several, _ := q.LogProbs.(float64); several > 1 || tt.always {
					id++
				}
				content = append(content, map[string]any{"token": "x", "id": id, "logprob": scores[i]})
			}
			c["logprobs"] = map[string]any{"content": content}
		}}
		out := judge(t, s, servingtest.Cases(4)[:1], serving.Options{Model: known(t)})
		assert.Contains(t, strings.Join(out.Notes, "\n"), tt.notes, tt.reason)
		assert.Equal(t, report.Pass, out.Verdict, "%s: %s", tt.reason, out.Error)
	}
}
