package continuation

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/tensor"
)

// words numbers the texts of tokens: by the ids that a response shows beside texts, else below 0.
type words map[string]int

// id is the number of a token's text.
func (w words) id(text string) int {
	if id, ok := serving.TokenID(text); ok {
		return id
	}
	id, ok := w[text]
	if !ok {
		id = -2 - len(w) // −1 is no token
		w[text] = id
	}
	return id
}

// response reads a response with log-probabilities. Tokens are ids where the server says them
// (return_token_ids); the texts of tokens alone can be compared with those of another response.
func response(path string, data []byte, golden []*Side) ([]*Side, error) {
	answers, err := serving.ReadAnswer(data)
	if err != nil {
		return nil, unjudged("want a response with choices and logprobs: %v", mapfile.JSONError(data, err))
	}
	known := words{}
	if len(golden) > 0 && golden[0].words != nil {
		known = golden[0].words
	}
	var sides []*Side
	for i := range answers {
		a := &answers[i]
		s := &Side{Case: fmt.Sprintf("choice-%d", i), From: path, Prompt: -1, Free: true, Stopped: a.Finish == "stop", Shown: a.Text, words: known}
		rows, tokens, err := rowsOf(a, known)
		if err != nil {
			return nil, unjudged("choices[%d]: %v", i, err)
		}
		if golden != nil && tokens[0] < 0 && len(golden[0].Fed) > 0 && golden[0].Fed[0] >= 0 {
			return nil, unjudged("choices[%d] has the texts of tokens alone, and the golden has ids: ask for \"return_token_ids\": true", i)
		}
		s.logits, s.Fed, s.Choices = listed("logprobs", tensor.F32, rows), tokens, tokens
		if a.Prompt != nil {
			s.Prompt, s.Text = len(a.Prompt), slices.Concat(a.Prompt, tokens)
		}
		sides = append(sides, s)
	}
	return sides, nil
}

// rowsOf returns the log-probabilities of each token, and the tokens.
func rowsOf(a *serving.Answer, known words) (rows []generation.Row, tokens []int, err error) {
	n := len(a.LogProbs)
	switch {
	case n == 0:
		return nil, nil, errors.New("no logprobs: ask for them, \"logprobs\": 5, or \"logprobs\": true, \"top_logprobs\": 5 of a chat")
	case a.Tokens != nil && len(a.Tokens) != n:
		return nil, nil, fmt.Errorf("%d tokens have log-probabilities, token_ids has %d: ask without echo", n, len(a.Tokens))
	case a.Tokens == nil && a.Texts == nil:
		return nil, nil, fmt.Errorf("%d log-probabilities, and neither texts nor token_ids for each: ask for \"return_token_ids\": true", n)
	}
	for k, p := range a.LogProbs {
		if math.IsNaN(p) {
			return nil, nil, fmt.Errorf("log-probability %d is null, as for the first token of an echo: ask without echo", k)
		}
		var top map[string]float64
		if a.Top != nil {
			top = a.Top[k]
		}
		chosen, texts := "", slices.Sorted(maps.Keys(top))
		for _, text := range texts { // the text of an id is not always told: that of its log-probability
			if top[text] == p {
				chosen = text
			}
		}
		if a.Texts != nil {
			chosen = a.Texts[k]
		}
		id := known.id(chosen)
		if a.Tokens != nil {
			if id = a.Tokens[k]; chosen != "" {
				known[chosen] = id
			}
		}
		list := []generation.Logit{{Token: id, Value: p}}
		for _, text := range texts {
			if other := known.id(text); other != id && text != chosen {
				list = append(list, generation.Logit{Token: other, Value: top[text]})
			}
		}
		rows, tokens = append(rows, generation.Largest(list, math.NaN(), 0)), append(tokens, id)
	}
	return rows, tokens, nil
}
