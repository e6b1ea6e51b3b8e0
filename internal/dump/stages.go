package dump

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Text is what the engine made of a prompt along one of its API paths.
type Text struct {
	Path     string    `json:"path"` // the API path: "completion", "chat", …
	Prompt   string    `json:"prompt,omitempty"`
	Messages []Message `json:"messages,omitempty"` // instead of Prompt
	Rendered string    `json:"rendered,omitempty"` // after the chat template
	TokenIDs []int     `json:"token_ids,omitempty"`
	Pieces   []string  `json:"pieces,omitempty"`   // the text of each of TokenIDs
	Mistakes []Mistake `json:"mistakes,omitempty"` // of the reference: what others might make of it
}

// Mistake is what the reference's tokenizer makes of a prompt if something is done wrong on purpose.
type Mistake struct {
	Cause    string `json:"cause"` // text/…
	Text     string `json:"text"`  // what is done wrong
	TokenIDs []int  `json:"token_ids"`
}

// Message is one turn of a chat.
type Message struct {
	Role       string           `json:"role" yaml:"role"`
	Content    string           `json:"content" yaml:"content,said"`
	ToolCalls  []map[string]any `json:"tool_calls,omitempty" yaml:"tool_calls,call"` // as OpenAI's API has them, but with arguments as an object
	ToolCallID string           `json:"tool_call_id,omitempty" yaml:"tool_call_id"`
	Name       string           `json:"name,omitempty" yaml:"name"` // of the tool that answers
}

// Equal reports whether two messages say the same.
func (m Message) Equal(other Message) bool { return reflect.DeepEqual(m, other) }

// Generation has the tokens that the engine itself chose along a forced continuation of the prompt:
// row From − 1 + k decides Tokens[k].
type Generation struct {
	From   int   `json:"from"` // number of prompt tokens; token_ids also has the forced continuation
	Tokens []int `json:"tokens"`
}

func (t Text) check() error {
	var c checks
	c.want(t.Path != "" && (t.Prompt == "") != (len(t.Messages) == 0) && (t.Rendered != "" || len(t.TokenIDs) > 0),
		`want path, that of the API, "completion" or "chat"; either prompt or messages, what the engine was asked; `+
			`rendered, token_ids or both, what it made of it`)
	for i, m := range t.Messages {
		c.want(m.Role != "", `messages[%d]: role is empty: want "system", "user" or "assistant"`, i)
	}
	n := len(t.Pieces)
	c.want(n == 0 || n == len(t.TokenIDs),
		"pieces has %d texts: want one for each of the %d token_ids", n, len(t.TokenIDs))
	for i, m := range t.Mistakes {
		c.want(m.Cause != "" && len(m.TokenIDs) > 0, "mistakes[%d]: want a cause and token_ids", i)
		c.wantTokens(fmt.Sprintf("mistakes[%d].token_ids", i), m.TokenIDs)
	}
	c.wantTokens("token_ids", t.TokenIDs)
	return c.err
}

func (g Generation) check(tokens [][]int, err error) error {
	c := checks{err}
	c.want(len(tokens) == 1, "token_ids has %d sequences: want one, a case for each generation", len(tokens))
	if c.err != nil {
		return c.err
	}
	n := len(tokens[0])
	c.want(g.From >= 1 && g.From <= n, "from is %d: want 1 to %d, the tokens of the prompt in token_ids", g.From, n)
	rows := n - g.From + 1
	c.want(len(g.Tokens) > 0 && len(g.Tokens) <= rows,
		"tokens has %d choices: want 1 to %d, the rows from %d to the end of token_ids", len(g.Tokens), rows, g.From-1)
	c.wantTokens("tokens", g.Tokens)
	return c.err
}

func (c *checks) wantTokens(key string, ids []int) {
	for i, id := range ids {
		c.want(id >= 0, "%s[%d] is %d: want a token id", key, i, id)
	}
}

// EditedTransformers returns the version of transformers if the run used an edited copy of it, which the
// runners mark so; else "".
func (i *Info) EditedTransformers() string {
	if v := i.Versions["transformers"]; strings.HasSuffix(v, "(edited copy)") {
		return v
	}
	return ""
}

// NotJudged lists what the run contains that this version reads but does not judge.
func (i *Info) NotJudged() (what []string) {
	if i.Generation != nil {
		what = append(what, fmt.Sprintf("generation (%d tokens from %d)", len(i.Generation.Tokens), i.Generation.From))
	}
	return what
}

// Describe says in words what the keys of schema 2 say about the run, a line each.
func (i *Info) Describe() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if i.Path != "" {
		say("path: %s", i.Path)
	}
	for k, pass := range i.Passes {
		var items []string
		for _, p := range pass {
			items = append(items, p.String())
		}
		say("pass %d: %s", k, strings.Join(items, ", "))
	}
	for _, step := range slices.Sorted(maps.Keys(i.PadMasks)) {
		say("padding in step %s: mask of %d sequences", step, len(i.PadMasks[step]))
	}
	for _, t := range i.Text {
		say("text of %s: %d token ids, rendered %q", t.Path, len(t.TokenIDs), t.Rendered)
	}
	if g := i.Generation; g != nil {
		say("generation: from %d, tokens %v", g.From, g.Tokens)
	}
	for _, f := range i.Weights {
		say("weights: %s", f)
	}
	return lines
}
