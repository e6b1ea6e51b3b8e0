package serving_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/serving"
)

const answer = `{"choices":[{"index":0,"text":"a b","token_ids":[5,6],"prompt_token_ids":[1,2],"finish_reason":"length",
	"logprobs":{"token_logprobs":[-0.5,-1.25],"top_logprobs":[{"a":-0.5},{"b":-1.25}]}}],"usage":{"prompt_tokens":2,"completion_tokens":2}}`

// Servers write the same answer in many ways.
func TestReadAnswer(t *testing.T) {
	const completion = `{"token_logprobs":[-0.5,-1.25],"top_logprobs":[{"a":-0.5},{"b":-1.25}]}`
	content := func(first, second string) string {
		return fmt.Sprintf(`{"content":[{%s,"logprob":-0.5,"top_logprobs":[{"token":"a","logprob":-0.5}]},{%s,"logprob":-1.25,"top_logprobs":[{"token":"b","logprob":-1.25}]}]}`,
			first, second)
	}
	const all = "prompt [1 2] tokens [5 6] logprobs [-0.5 -1.25] top [map[a:-0.5] map[b:-1.25]] length 2 2"
	for _, tt := range []struct {
		change []string // pairs of what is written in place of what
		want   string
		reason string
	}{
		{nil, all, "all that there is"},
		{[]string{`"index":0`, `"index":3`}, all, "another index"},
		{[]string{`,"finish_reason":"length"`, ""}, strings.Replace(all, "length ", " ", 1), "no finish_reason"},
		{[]string{`"length"`, "null"}, strings.Replace(all, "length ", " ", 1), "null where nothing is to be said"},
		{[]string{`"completion_tokens":2`, `"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":null}`}, all, "null in the usage"},
		{[]string{`{"prompt_tokens":2,"completion_tokens":2}`, "null"}, strings.Replace(all, "2 2", "-1 -1", 1), "no usage"},
		{[]string{`"prompt_tokens":2`, `"prompt_tokens":null`}, strings.Replace(all, "2 2", "-1 2", 1), "a count that is null"},
		{[]string{`"prompt_token_ids":[1,2],`, "", `{"choices"`, `{"prompt_token_ids":[1,2],"choices"`}, all, "the prompt's ids beside the choices"},
		{[]string{"[1,2]", "[[1,2]]"}, all, "the prompt's ids in a list of prompts"},
		{[]string{"[1,2]", "null"}, strings.Replace(all, "[1 2]", "[]", 1), "no ids of the prompt"},
		{[]string{"[1,2]", "[]"}, strings.Replace(all, "[1 2]", "[]", 1), "empty ids of the prompt"},
		{[]string{"[5,6]", "null"}, strings.Replace(all, "[5 6]", "[]", 1), "null for the ids"},
		{[]string{completion, "null"}, "prompt [1 2] tokens [5 6] logprobs [] top [] length 2 2", "null for the log-probabilities"},
		{[]string{completion, `{"token_logprobs":null,"tokens":null}`}, "prompt [1 2] tokens [5 6] logprobs [] top [] length 2 2", "null in the log-probabilities"},
		{[]string{completion, content(`"token":"a","bytes":null`, `"token":"b"`)}, all, "completions in the form of chats"},
		{[]string{completion, content(`"token":"a","id":5`, `"token":"b","id":6`), "[5,6]", "null"}, all, "ids among the log-probabilities, as llama.cpp"},
		{[]string{completion, content(`"token":"token_id:5"`, `"token":"token_id:6"`), "[5,6]", "null"}, all, "ids as texts of tokens, as vLLM"},
		{[]string{`{"a":-0.5}`, `{"a":-0.5,"c":null}`}, all, "null among those beside"},
		{[]string{`"text":"a b"`, `"message":{"content":"a b"}`}, all, "a chat"},
		{[]string{`"text":"a b"`, `"message":{"content":null}`, "length", "tool_calls"}, strings.Replace(all, "length", "tool_calls", 1), "a call of a tool"},
	} {
		got, err := serving.ReadAnswer([]byte(strings.NewReplacer(tt.change...).Replace(answer)))
		require.NoError(t, err, tt.reason)
		a := got[0]
		assert.Equal(t, tt.want, fmt.Sprintf("prompt %v tokens %v logprobs %v top %v %s %d %d", a.Prompt, a.Tokens, a.LogProbs, a.Top, a.Finish, a.PromptCount, a.Count),
			tt.reason)
		assert.Equal(t, a.Finish == "tool_calls", a.Called, tt.reason)
		if a.LogProbs != nil {
			assert.InDelta(t, 0.005, a.Rounding, 1e-12, "half of the second digit")
		}
	}
	for from, want := range map[string]string{"-0.5,-1.25": "[-0.05 -1]", "-0.5,": "[NaN -1.25]"} {
		a, err := serving.ReadAnswer([]byte(strings.Replace(answer, from, map[string]string{"-0.5,-1.25": "-5e-2,-1.0", "-0.5,": "null,"}[from], 1)))
		require.NoError(t, err)
		assert.Equal(t, want, fmt.Sprint(a[0].LogProbs))
		assert.Less(t, a[0].Rounding, 0.01)
	}
	_, err := serving.ReadAnswer([]byte(strings.Replace(answer, "-1.25]", "-1e999]", 1)))
	assert.ErrorContains(t, err, "log-probability 1: ")
	for _, finish := range []string{"tool_calls", "abort"} {
		_, err := serving.ReadAnswer([]byte(strings.NewReplacer("length", finish, "[5,6]", "null").Replace(answer)))
		assert.ErrorContains(t, err, fmt.Sprintf("finish_reason is %q", finish))
	}
}
