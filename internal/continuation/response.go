package continuation

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/jsonline"
	"github.com/goparity/goparity/tensor"
)

// reply is a response of an OpenAI-compatible server, of completions or of chat.
type reply struct {
	Choices []choice        `json:"choices"`
	Prompt  promptIDs       `json:"prompt_token_ids"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index    int       `json:"index"`
	Text     string    `json:"text"`
	Message  *message  `json:"message"`
	LogProbs *logProbs `json:"logprobs"`
	TokenIDs []int     `json:"token_ids"`
	Prompt   promptIDs `json:"prompt_token_ids"`
	Finish   string    `json:"finish_reason"`
}

// promptIDs are the tokens of a prompt, which some servers wrap in a list of one for each choice.
type promptIDs [][]int

func (p *promptIDs) UnmarshalJSON(data []byte) error {
	var one []int
	if json.Unmarshal(data, &one) == nil {
		if *p = nil; one != nil {
			*p = promptIDs{one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[][]int)(p))
}

// of returns those of choice i of n; nil where the response does not say them.
func (p promptIDs) of(i, n int) ([]int, error) {
	switch len(p) {
	case 0:
		return nil, nil
	case 1:
		return p[0], nil
	case n:
		return p[i], nil
	}
	return nil, unjudged("prompt_token_ids has %d lists, and there are %d choices", len(p), n)
}

// inOrder puts the choices in the order of their index. Where no choice has one they are in order.
func (r *reply) inOrder() error {
	slices.SortStableFunc(r.Choices, func(a, b choice) int { return a.Index - b.Index })
	for i, c := range r.Choices {
		if i > 0 && c.Index == r.Choices[i-1].Index && (c.Index != 0 || r.Choices[len(r.Choices)-1].Index != 0) {
			return unjudged("two choices have the index %d", c.Index)
		}
	}
	return nil
}

type message struct {
	Content string `json:"content"`
}

// logProbs are those of completions (lists beside each other), or of chat (content).
type logProbs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogProbs []*float64           `json:"token_logprobs"`
	TopLogProbs   []map[string]float64 `json:"top_logprobs"`
	Content       []struct {
		word
		Top []word `json:"top_logprobs"`
	} `json:"content"`
}

type word struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
}

// words numbers the texts of tokens: by the ids that a response shows beside texts, else below 0.
type words map[string]int

// id is the number of a token's text. Some servers write "token_id:15" in place of it.
func (w words) id(text string) int {
	if n, ok := strings.CutPrefix(text, "token_id:"); ok {
		if id, err := strconv.Atoi(n); err == nil && id >= 0 {
			return id
		}
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
	var r reply
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, unjudged("%v", jsonline.Error(data, err))
	}
	if len(r.Choices) == 0 {
		what := "no choices"
		if len(r.Error) > 0 {
			what = fmt.Sprintf("an error, %.200s", r.Error)
		}
		return nil, unjudged("the response has %s: want one with choices and logprobs", what)
	}
	if err := r.inOrder(); err != nil {
		return nil, err
	}
	known := words{}
	if len(golden) > 0 && golden[0].words != nil {
		known = golden[0].words
	}
	var sides []*Side
	for i, c := range r.Choices {
		s := &Side{Case: fmt.Sprintf("choice-%d", i), From: path, Prompt: -1, Free: true, Stopped: c.Finish == "stop", Shown: c.Text, words: known}
		if c.Message != nil {
			s.Shown = c.Message.Content
		}
		if c.LogProbs == nil {
			return nil, unjudged("choices[%d] has no logprobs: ask for them, \"logprobs\": 5, or \"logprobs\": true, \"top_logprobs\": 5 of a chat", i)
		}
		if c.Prompt == nil {
			c.Prompt = r.Prompt
		}
		prompt, err := c.Prompt.of(i, len(r.Choices))
		if err != nil {
			return nil, err
		}
		rows, tokens, err := c.LogProbs.rows(known, c.TokenIDs)
		if err != nil {
			return nil, unjudged("choices[%d].logprobs: %v", i, err)
		}
		if golden != nil && tokens[0] < 0 && golden[0].byID() {
			return nil, unjudged("choices[%d] has the texts of tokens alone, and the golden has ids: ask for \"return_token_ids\": true", i)
		}
		s.logits, s.Fed, s.Choices = &listed{rows, "logprobs", tensor.F32}, tokens, tokens
		if prompt != nil {
			s.Prompt, s.Text = len(prompt), slices.Concat(prompt, tokens)
		}
		sides = append(sides, s)
	}
	return sides, nil
}

// byID reports whether the tokens of a side are ids, and not numbers of texts.
func (s *Side) byID() bool {
	fed := s.fed()
	return len(fed) > 0 && fed[0] >= 0
}

// rows returns the log-probabilities of each token, and the tokens.
func (l *logProbs) rows(known words, ids []int) (rows []generation.Row, tokens []int, err error) {
	n := max(len(l.Content), len(l.TokenLogProbs))
	if n == 0 {
		return nil, nil, fmt.Errorf("they are empty: the server computed none")
	}
	if ids != nil && len(ids) != n {
		return nil, nil, fmt.Errorf("%d tokens have log-probabilities, token_ids has %d: ask without echo", n, len(ids))
	}
	if ids == nil && l.Content == nil && len(l.Tokens) != n {
		return nil, nil, fmt.Errorf("tokens has %d texts, token_logprobs %d numbers, and there are no token_ids: ask for \"return_token_ids\": true",
			len(l.Tokens), n)
	}
	for k := range n {
		chosen, top, err := l.at(k)
		if err != nil {
			return nil, nil, err
		}
		id := -1
		switch {
		case ids != nil:
			if id = ids[k]; chosen.Token != "" {
				known[chosen.Token] = id
			}
		default:
			id = known.id(chosen.Token)
		}
		list := []generation.Logit{{Token: id, Value: chosen.LogProb}}
		for _, w := range top {
			if other := known.id(w.Token); other != id && w.Token != chosen.Token {
				list = append(list, generation.Logit{Token: other, Value: w.LogProb})
			}
		}
		rows, tokens = append(rows, generation.Largest(list, math.NaN(), 0)), append(tokens, id)
	}
	return rows, tokens, nil
}

// at returns the token that was chosen and those that were most likely.
func (l *logProbs) at(k int) (chosen word, top []word, err error) {
	if l.Content != nil {
		return l.Content[k].word, l.Content[k].Top, nil
	}
	if l.TokenLogProbs[k] == nil {
		return chosen, nil, fmt.Errorf("token_logprobs[%d] is null, as for the first token of an echo: ask without echo", k)
	}
	chosen.LogProb = *l.TokenLogProbs[k]
	if k < len(l.TopLogProbs) {
		for _, text := range slices.Sorted(maps.Keys(l.TopLogProbs[k])) {
			top = append(top, word{text, l.TopLogProbs[k][text]})
		}
	}
	if k < len(l.Tokens) {
		chosen.Token = l.Tokens[k]
		return chosen, top, nil
	}
	for _, w := range top { // the text of an id is not told: that of its log-probability
		if w.LogProb == chosen.LogProb {
			chosen.Token = w.Token
		}
	}
	return chosen, top, nil
}
