package serving_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
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

// Servers write the same answer in many ways.
func TestShapesOfAnswers(t *testing.T) {
	content := func(c map[string]any, ids []int, id bool) {
		p, _ := c["logprobs"].(map[string]any)["token_logprobs"].([]float64)
		if p == nil {
			return
		}
		var list []any
		for i := range p {
			one := map[string]any{"token": fmt.Sprintf(" t%d", ids[i]), "logprob": p[i], "bytes": nil,
				"top_logprobs": []any{map[string]any{"token": "x", "logprob": p[i]}}}
			if id {
				one["id"] = ids[i]
			}
			list = append(list, one)
		}
		c["logprobs"] = map[string]any{"content": list}
	}
	for _, c := range []struct {
		change func(q *servingtest.Request, answer map[string]any)
		judged string // of the first request
		reason string
	}{
		{func(_ *servingtest.Request, a map[string]any) { delete(choice(a), "finish_reason") }, "prompt, tokens, text, logprobs", "no finish_reason"},
		{func(_ *servingtest.Request, a map[string]any) {
			choice(a)["finish_reason"] = nil
			choice(a)["stop_reason"] = nil
			a["usage"] = nil
			a["system_fingerprint"] = "x"
		}, "prompt, tokens, text, logprobs", "null where nothing is to be said"},
		{func(q *servingtest.Request, a map[string]any) {
			delete(choice(a), "prompt_token_ids")
			a["prompt_token_ids"] = q.Tokens
		}, "prompt, tokens, text, logprobs", "the prompt's ids beside the choices"},
		{func(q *servingtest.Request, a map[string]any) { choice(a)["prompt_token_ids"] = [][]int{q.Tokens} }, "prompt, tokens, text, logprobs",
			"the prompt's ids in a list of prompts"},
		{func(q *servingtest.Request, a map[string]any) { choice(a)["prompt_token_ids"] = nil }, "tokens, text, logprobs", "no ids of the prompt"},
		{func(q *servingtest.Request, a map[string]any) { choice(a)["prompt_token_ids"] = []int{} }, "tokens, text, logprobs", "empty ids of the prompt"},
		{func(q *servingtest.Request, a map[string]any) { choice(a)["token_ids"] = nil }, "prompt, text, logprobs", "null for the ids"},
		{func(q *servingtest.Request, a map[string]any) { choice(a)["logprobs"] = nil }, "prompt, tokens, text", "null for the log-probabilities"},
		{func(q *servingtest.Request, a map[string]any) {
			choice(a)["logprobs"] = map[string]any{"token_logprobs": nil, "tokens": nil}
		},
			"prompt, tokens, text", "null in the log-probabilities"},
		{func(q *servingtest.Request, a map[string]any) {
			content(choice(a), choice(a)["token_ids"].([]int), false)
		},
			"prompt, tokens, text, logprobs", "log-probabilities of completions in the form of chats"},
		{func(q *servingtest.Request, a map[string]any) {
			content(choice(a), choice(a)["token_ids"].([]int), true)
			delete(choice(a), "token_ids")
		}, "prompt, tokens, text, logprobs", "ids among the log-probabilities, as llama.cpp"},
		{func(q *servingtest.Request, a map[string]any) {
			lp, _ := choice(a)["logprobs"].(map[string]any)
			if lp["token_logprobs"] == nil {
				return
			}
			var names []string
			for _, id := range choice(a)["token_ids"].([]int) {
				names = append(names, fmt.Sprintf("token_id:%d", id))
			}
			lp["tokens"] = names
			delete(choice(a), "token_ids")
		}, "prompt, tokens, text, logprobs", "ids as texts of tokens, as vLLM"},
		{func(q *servingtest.Request, a map[string]any) {
			if q.As != serving.AsChat {
				choice(a)["text"] = " " + choice(a)["text"].(string) + "</s>"
			}
		}, "prompt, tokens, text, logprobs", "what ends the text is written"},
		{func(q *servingtest.Request, a map[string]any) {
			beside(func(top map[string]float64) { delete(top, rank(top, 2)) })(q, a, 0, 0)
		}, "prompt, tokens, text, logprobs", "two tokens of one text beside each"},
		{func(q *servingtest.Request, a map[string]any) {
			lp, _ := choice(a)["logprobs"].(map[string]any)
			all, ok := lp["top_logprobs"].([]map[string]float64)
			var tops []any
			for _, top := range all {
				tops = append(tops, map[string]any{rank(top, 0): nil, rank(top, 1): top[rank(top, 1)]})
			}
			if ok {
				lp["top_logprobs"] = tops
			}
		}, "prompt, tokens, text, logprobs", "null among those beside"},
		{func(q *servingtest.Request, a map[string]any) { choice(a)["index"] = 3 }, "prompt, tokens, text, logprobs", "another index"},
		{func(q *servingtest.Request, a map[string]any) {
			if u, ok := a["usage"].(map[string]any); ok {
				u["prompt_tokens"] = u["prompt_tokens"].(int) + 1
				u["prompt_tokens_details"] = map[string]any{"cached_tokens": nil}
			}
		}, "prompt, tokens, text, logprobs", "a server that counts otherwise"},
	} {
		s := &servingtest.Stub{Change: func(q *servingtest.Request, answer map[string]any, n, busy int) { c.change(q, answer) }}
		out := judge(t, s, servingtest.Cases(3), serving.Options{Model: serving.Model{EOS: []int{servingtest.EOS}, Vocab: tokenizer(t)}})
		require.Equal(t, report.Pass, out.Verdict, "%s: %s %v", c.reason, out.Error, out.First)
		assert.Equal(t, c.judged, strings.Join(out.Requests[0].Judged, ", "), c.reason)
	}
}

// A server may know the prompts of the cases alone, or chats alone.
func TestServersThatKnowLittle(t *testing.T) {
	refs := servingtest.Cases(tokensOfCases)
	tables := &servingtest.Stub{Answer: func(w http.ResponseWriter, q *servingtest.Request, n, busy int) bool {
		if slices.ContainsFunc(refs, func(r *serving.Reference) bool { return slices.Equal(r.Prompt, q.Tokens) }) {
			return false
		}
		http.Error(w, "no such prompt", http.StatusNotFound)
		return true
	}}
	out := judge(t, tables, refs[:1], serving.Options{})
	assert.Equal(t, report.Pass, out.Verdict, out.Error)
	assert.Contains(t, strings.Join(out.Notes, "\n"), "not judged: case first as ids, prefix from token 3: /v1/completions: 404 Not Found: no such prompt")
	chats := &servingtest.Stub{Answer: func(w http.ResponseWriter, q *servingtest.Request, n, busy int) bool {
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
	out = judge(t, &servingtest.Stub{Written: func([]int) string { return "\uFFFD" }, NoIDs: true, NoLogProbs: true}, refs, serving.Options{})
	assert.Equal(t, report.Error, out.Verdict, "nothing to judge by is no pass")
	assert.Contains(t, out.Error, "no token ids and no log-probabilities")
}

// Of several models the one of the fixture is asked.
func TestModels(t *testing.T) {
	var asked []string
	s := &servingtest.Stub{Answer: func(w http.ResponseWriter, q *servingtest.Request, n, busy int) bool {
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
	for _, c := range []struct {
		refuses func(body map[string]any) string // the message, "" for none
		want    string                           // what is asked in the end
		reason  string
	}{
		{func(b map[string]any) string { return "" }, "logprobs=5 return_token_ids=true", "knows all"},
		{func(b map[string]any) string {
			if b["return_token_ids"] != nil {
				return "return_token_ids: Extra inputs are not permitted"
			}
			return ""
		}, "logprobs=5", "says which key"},
		{func(b map[string]any) string {
			if b["return_token_ids"] != nil {
				return "Value error."
			}
			return ""
		}, "logprobs=5", "does not say which key"},
		{func(b map[string]any) string {
			if p, ok := b["logprobs"].(float64); ok && p > 1 {
				return "`logprobs` must be in [0, 1], was 5."
			}
			return ""
		}, "logprobs=1 return_token_ids=true", "knows one alternative"},
		{func(b map[string]any) string {
			if b["logprobs"] != nil {
				return "Log probabilities are not supported with the overlap scheduler."
			}
			return ""
		}, "return_token_ids=true", "knows no log-probabilities"},
		{func(b map[string]any) string {
			if b["logprobs"] != nil || b["return_token_ids"] != nil {
				return "Value error."
			}
			return ""
		}, "", "knows neither"},
		{func(b map[string]any) string {
			if _, isBool := b["logprobs"].(bool); b["logprobs"] != nil && !isBool {
				return "logprobs must be of type bool"
			}
			return ""
		}, "logprobs=true return_token_ids=true top_logprobs=5", "completions are asked as chats are"},
	} {
		var heard atomic.Value // the last body; requests come at once, too
		s := &servingtest.Stub{Refuses: func(body map[string]any) string {
			if body["stream"] == nil {
				heard.Store(body)
			}
			return c.refuses(body)
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
	s := &servingtest.Stub{Refuses: func(map[string]any) string { return "no" }}
	out := judge(t, s, servingtest.Cases(2)[:1], serving.Options{})
	assert.Equal(t, report.Error, out.Verdict)
	assert.Contains(t, out.Error, "400 Bad Request: no")
}

// ignore_eos tells a token that ends a text from a stop that no one asked for, where nothing else does.
func TestIgnoreEOS(t *testing.T) {
	prompt := []int{servingtest.BOS, 5, 6, 7, 8}
	ref := servingtest.Reference("first", serving.Ask{As: serving.AsIDs, IDs: prompt}, prompt, 6)
	for _, knows := range []bool{true, false} {
		s := &servingtest.Stub{EndsAt: len(prompt) + 3, IgnoresEOS: knows}
		out := judge(t, s, []*serving.Reference{ref}, serving.Options{})
		assert.Equal(t, map[bool]report.Verdict{true: report.Pass, false: report.Fail}[knows], out.Verdict)
	}
}
