package serving

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Answer is one choice of a server's answer, with what the answer says besides.
type Answer struct {
	Text   string
	Prompt []int // token ids of the prompt; nil if the server does not say
	Tokens []int // ids of the answer; nil if the server does not say
	Named  bool  // Tokens are those that log-probabilities are of
	Finish string
	Reason string // why it stopped, where the server says more than Finish
	Cut    bool   // it is a stream that breaks off, without finish_reason or [DONE]
	Called bool   // tools are called, and what calls them is not in the text

	LogProbs []float64 // of the chosen tokens, NaN where one is null; nil if the server does not say
	Texts    []string  // of the chosen tokens; nil if the server does not say
	Top      []wireTop // the most probable tokens by their texts; nil if the server does not say
	Rounding float64   // half a unit of the last digit that log-probabilities are written with

	Drafted, Accepted int // tokens that a draft model proposed, and those of them that are in the answer; 0 if the server does not say

	PromptCount, Count int // by usage: tokens of the prompt and of the answer; −1 if it does not say
}

// The keys of the API.
type (
	wireAnswer struct {
		Choices []wireChoice `json:"choices"`
		Prompt  wireIDs      `json:"prompt_token_ids"`
		Usage   wireUsage    `json:"usage"`
		Timings struct {     // of llama.cpp
			Drafted  int `json:"draft_n"`
			Accepted int `json:"draft_n_accepted"`
		} `json:"timings"`
		Error json.RawMessage `json:"error"`
	}
	wireChoice struct {
		Index    int                       `json:"index"`
		Text     any                       `json:"text"`
		Message  *struct{ Content string } `json:"message"`
		Delta    struct{ Content string }  `json:"delta"` // of a stream
		Tokens   wireIDs                   `json:"token_ids"`
		Prompt   wireIDs                   `json:"prompt_token_ids"`
		Finish   string                    `json:"finish_reason"`
		Reason   json.RawMessage           `json:"stop_reason"`
		LogProbs *wireLogProbs             `json:"logprobs"`
	}
	wireUsage struct {
		Prompt   int `json:"prompt_tokens"`
		Answer   int `json:"completion_tokens"`
		Answered struct {
			Accepted int `json:"accepted_prediction_tokens"`
			Rejected int `json:"rejected_prediction_tokens"`
		} `json:"completion_tokens_details"`
	}
	wireLogProbs struct {
		Tokens   []string       `json:"tokens"`
		LogProbs []*json.Number `json:"token_logprobs"`
		Top      []wireTop      `json:"top_logprobs"`
		Content  []struct {
			Token   string       `json:"token"`
			ID      *int         `json:"id"`
			LogProb *json.Number `json:"logprob"`
			Top     wireTop      `json:"top_logprobs"`
		} `json:"content"`
	}
	// wireTop are the most probable tokens of a position by their texts: an object, or a list.
	wireTop map[string]float64
)

// UnmarshalJSON reads what is there. What is neither an object nor a list tells nothing, nor does null.
func (w *wireTop) UnmarshalJSON(data []byte) error {
	byText := map[string]*float64{}
	var list []struct {
		Token   string
		LogProb *float64
	}
	if json.Unmarshal(data, &byText) != nil && json.Unmarshal(data, &list) != nil {
		return nil
	}
	for _, t := range list {
		byText[t.Token] = t.LogProb
	}
	*w = wireTop{}
	for text, p := range byText {
		if p != nil {
			(*w)[text] = *p
		}
	}
	return nil
}

// wireIDs are token ids, which some servers wrap in a list for each choice.
type wireIDs [][]int

func (w *wireIDs) UnmarshalJSON(data []byte) error {
	var one []int
	if json.Unmarshal(data, &one) == nil {
		if *w = nil; one != nil {
			*w = wireIDs{one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[][]int)(w))
}

// of returns those of choice i of n; nil where the server does not say them.
func (w wireIDs) of(i, n int) (ids []int, err error) {
	switch len(w) {
	case 0:
		return nil, nil
	case 1:
		ids = w[0]
	case n:
		ids = w[i]
	default:
		return nil, fmt.Errorf("token ids are in %d lists, and there are %d choices", len(w), n)
	}
	if len(ids) > 0 && slices.Min(ids) < 0 {
		return nil, fmt.Errorf("%d is no token id", slices.Min(ids))
	}
	return ids, nil
}

// failed returns the error that an answer is in place of choices.
func (w *wireAnswer) failed() error {
	if len(w.Choices) > 0 || len(w.Error) == 0 || string(w.Error) == "null" {
		return nil
	}
	return fmt.Errorf("it is an error in place of choices: %.200s", w.Error)
}

// ReadAnswer reads the choices of an answer of OpenAI's API, what is standard and what each server adds, in the order of
// their index, or where none has one as they are. It is an error if there is none.
func ReadAnswer(data []byte) ([]Answer, error) {
	w := wireAnswer{Usage: wireUsage{Prompt: -1, Answer: -1}} // null changes nothing
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, err
	}
	n := len(w.Choices)
	if n == 0 {
		return nil, cmp.Or(w.failed(), errors.New("it has no choices"))
	}
	slices.SortStableFunc(w.Choices, func(a, b wireChoice) int { return a.Index - b.Index })
	var all []Answer
	for i := range w.Choices {
		if c := &w.Choices[i]; i > 0 && c.Index == w.Choices[i-1].Index && w.Choices[n-1].Index != 0 {
			return nil, fmt.Errorf("two choices have the index %d", c.Index)
		}
		a, err := w.Choices[i].answer()
		if err == nil && a.Prompt == nil {
			a.Prompt, err = w.Prompt.of(i, n)
		}
		if err != nil {
			return nil, fmt.Errorf("choices[%d]: %w", i, err)
		}
		a.PromptCount, a.Count = w.Usage.Prompt, w.Usage.Answer
		a.Drafted, a.Accepted = w.Timings.Drafted, w.Timings.Accepted
		if of := w.Usage.Answered; of.Accepted+of.Rejected > 0 {
			a.Drafted, a.Accepted = of.Accepted+of.Rejected, of.Accepted
		}
		all = append(all, a)
	}
	return all, nil
}

func (w *wireChoice) answer() (a Answer, err error) {
	text, isText := w.Text.(string)
	if a.Text, a.Finish = text, w.Finish; w.Message != nil {
		a.Text = w.Message.Content // null where nothing was said
	}
	a.Called = a.Finish == "tool_calls" || a.Finish == "function_call"
	if r := string(w.Reason); r != "null" {
		a.Reason = r
	}
	switch {
	case slices.Contains([]string{"abort", "error", "cancelled", "timeout", "content_filter"}, a.Finish):
		return a, fmt.Errorf("finish_reason is %q: the server did not answer to the end", a.Finish)
	case w.Text != nil && !isText:
		return a, errors.New("text is no text")
	case w.Message == nil && w.Text == nil && w.Tokens == nil && w.LogProbs == nil:
		return a, errors.New("it has neither text nor message")
	}
	if a.Tokens, err = w.Tokens.of(0, 1); err == nil {
		a.Prompt, err = w.Prompt.of(0, 1)
	}
	if len(a.Prompt) == 0 {
		a.Prompt = nil
	}
	if w.LogProbs != nil && err == nil {
		err = a.logProbs(w.LogProbs)
	}
	if a.Called && a.Tokens == nil && err == nil {
		err = fmt.Errorf("finish_reason is %q, and the answer does not say its tokens", a.Finish)
	}
	return a, err
}

// logProbs reads the log-probabilities in the form of completions, or in that of chats.
func (a *Answer) logProbs(w *wireLogProbs) error {
	if len(w.Content) > 0 {
		w.LogProbs, w.Tokens, w.Top = nil, nil, nil
	}
	var ids, named []int
	for _, c := range w.Content {
		w.LogProbs, w.Tokens, w.Top = append(w.LogProbs, c.LogProb), append(w.Tokens, c.Token), append(w.Top, c.Top)
		if c.ID != nil {
			ids = append(ids, *c.ID)
		}
	}
	for _, text := range w.Tokens {
		if id, ok := TokenID(text); ok {
			named = append(named, id)
		}
	}
	if len(ids) == 0 {
		ids = named
	}
	if a.Tokens == nil && len(ids) > 0 && len(ids) == len(w.Tokens) {
		a.Tokens, a.Named = ids, true
	}
	digits := 0
	for i, n := range w.LogProbs {
		v := math.NaN()
		if n != nil {
			var err error
			if v, err = n.Float64(); err != nil {
				return fmt.Errorf("log-probability %d: %w", i, err)
			}
			_, fraction, _ := strings.Cut(n.String(), ".")
			if digits = max(digits, len(fraction)); strings.ContainsAny(n.String(), "eE") {
				digits = max(digits, 17) // it is not rounded
			}
		}
		a.LogProbs = append(a.LogProbs, v)
	}
	n := len(w.LogProbs)
	if n == 0 {
		return nil
	}
	if a.Rounding = math.Pow(10, -float64(digits)) / 2; len(w.Tokens) == n {
		a.Texts = w.Tokens
	}
	if len(w.Top) == n {
		a.Top = w.Top
	}
	return nil
}

// TokenID reads the id off a text of the form token_id:15, which some servers write in place of a token's.
func TokenID(text string) (id int, ok bool) {
	digits, ok := strings.CutPrefix(text, "token_id:")
	id, err := strconv.Atoi(digits)
	return id, ok && err == nil && id >= 0
}

// Counted is how many tokens the answer has, −1 if nothing says it.
func (a *Answer) Counted() int {
	switch {
	case a.Tokens != nil:
		return len(a.Tokens)
	case a.LogProbs != nil && a.Count >= 0:
		return min(a.Count, len(a.LogProbs))
	case a.LogProbs != nil:
		return len(a.LogProbs)
	}
	return a.Count
}

// Stopped reports whether the server ended the answer by itself.
func (a *Answer) Stopped() bool { return a.Finish != "length" && a.Finish != "max_tokens" }
