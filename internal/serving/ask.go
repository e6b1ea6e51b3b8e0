package serving

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
)

// How a request is written.
const (
	AsIDs  = "ids"  // token ids to /v1/completions
	AsText = "text" // a prompt to /v1/completions
	AsChat = "chat" // messages to /v1/chat/completions
)

// Ask is one request. One of IDs, Prompt and Messages is set, as As says.
type Ask struct {
	As       string
	IDs      []int
	Prompt   string
	Messages []dump.Message
	Images   []string         // of the messages, as data URIs
	Tools    []map[string]any // that the messages may call
	Tokens   int              // how many are wanted, max_tokens
	extra    map[string]any   // further keys of the request, of a probe
}

func (a Ask) path() string {
	if a.As == AsChat {
		return "/v1/chat/completions"
	}
	return "/v1/completions"
}

// form is what is asked for besides tokens, by the keys of completions. Chats have top_logprobs beside logprobs, and
// completions are asked like them where they want it, as MLX's.
type form map[string]any

// forms are tried in this order until one is not refused: servers refuse keys that they do not know.
var forms = []form{
	{"return_token_ids": true, "logprobs": topLogProbs}, {"logprobs": topLogProbs},
	{"return_token_ids": true, "logprobs": 1}, {"logprobs": 1},
	{"return_token_ids": true, "logprobs": true, "top_logprobs": topLogProbs},
	{"logprobs": true, "top_logprobs": topLogProbs},
	{"return_token_ids": true}, {},
}

func (f form) String() string {
	var words []string
	for _, key := range []string{"return_token_ids", "logprobs", "top_logprobs"} {
		switch value := f[key]; value {
		case nil:
		case true:
			words = append(words, key)
		default:
			words = append(words, fmt.Sprint(key, " ", value))
		}
	}
	return cmp.Or(strings.Join(words, " and "), "neither return_token_ids nor logprobs")
}

// turn is a message as OpenAI's API has it: arguments of tools are texts, and images stand among the parts of its
// content, where its text says engine.ImageMark, or else before the first text of a user.
type turn struct {
	dump.Message
	Content any `json:"content"`
}

func (a Ask) turns() (out []turn) {
	images := a.Images
	marked := slices.ContainsFunc(a.Messages, func(m dump.Message) bool { return strings.Contains(m.Content, engine.ImageMark) })
	for _, m := range a.Messages {
		t, text := turn{m, m.Content}, m.Content
		if !marked && m.Role == "user" {
			text = strings.Repeat(engine.ImageMark, len(images)) + text
		}
		if n := min(strings.Count(text, engine.ImageMark), len(images)); n > 0 {
			t.Content, images = parts(text, images[:n]), images[n:]
		}
		t.ToolCalls = nil
		for _, call := range m.ToolCalls {
			t.ToolCalls = append(t.ToolCalls, withText(call))
		}
		out = append(out, t)
	}
	return out
}

// parts are the content of a message with images.
func parts(text string, images []string) (out []map[string]any) {
	for i, piece := range strings.Split(text, engine.ImageMark) {
		if i > 0 && i <= len(images) {
			out = append(out, map[string]any{"type": "image_url", "image_url": map[string]any{"url": images[i-1]}})
		}
		if piece != "" {
			out = append(out, map[string]any{"type": "text", "text": piece})
		}
	}
	return out
}

// withText is a call of a tool whose arguments are a text.
func withText(call map[string]any) map[string]any {
	out := maps.Clone(call)
	if function, ok := call["function"].(map[string]any); ok {
		function = maps.Clone(function)
		if text, err := json.Marshal(function["arguments"]); err == nil {
			function["arguments"] = string(text)
		}
		out["function"] = function
	}
	return out
}

// body is the JSON of a request.
func (a Ask) body(model string, f form) map[string]any {
	body := map[string]any{"model": model, "max_tokens": a.Tokens, "temperature": 0}
	maps.Copy(body, f)
	switch a.As {
	case AsIDs:
		body["prompt"] = a.IDs
	case AsText:
		body["prompt"] = a.Prompt
	case AsChat:
		if n, is := f["logprobs"].(int); is {
			body["logprobs"], body["top_logprobs"] = true, n
		}
		if body["messages"] = a.turns(); a.Tools != nil {
			body["tools"] = a.Tools
		}
	}
	maps.Copy(body, a.extra)
	return body
}
