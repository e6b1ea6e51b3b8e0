package battery

import (
	"regexp"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
)

// refused finds templates that say they take no system message.
var refused = regexp.MustCompile(`raise_exception\([^)]*[Ss]ystem[^)]*\b(not|no)\b`)

// chats are the conversations that the chat template takes.
func (p *planner) chats() (out []Case) {
	template := p.options.Chat
	if template == "" || !p.options.Generates {
		return nil
	}
	turns := []dump.Message{
		{Role: "user", Content: "What is the capital of France?"},
		{Role: "assistant", Content: "Paris."},
		{Role: "user", Content: "And of Italy, in *one* word?\n"},
	}
	if strings.Contains(template, "system") && !refused.MatchString(template) {
		turns = append([]dump.Message{{Role: "system", Content: "You answer briefly."}}, turns...)
	}
	out = append(out, Case{Case: engine.Case{Name: Prefix + "chat", Messages: turns, Steps: 3}, For: "a conversation of several turns: the chat template"})
	if strings.Contains(template, "tools") {
		call := map[string]any{"id": "call12345", "type": "function", // nine letters, as Mistral wants them
			"function": map[string]any{"name": "weather", "arguments": map[string]any{"city": "Rome", "days": 2.0}}}
		turns := []dump.Message{
			{Role: "user", Content: "What will the weather be like in Rome?"},
			{Role: "assistant", ToolCalls: []map[string]any{call}},
			{Role: "tool", Name: "weather", ToolCallID: "call12345", Content: `{"sky": "clear", "degrees": 21.5}`},
		}
		out = append(out, Case{Case: engine.Case{Name: Prefix + "tools", Steps: 1, Tools: tools(), Messages: turns},
			For: "tools, the call of one and its answer: the chat template"})
	}
	return out
}

// tools are two functions, so that naming the first alone shows.
func tools() []map[string]any {
	tool := func(name, what, parameter string) map[string]any {
		return map[string]any{"type": "function", "function": map[string]any{"name": name, "description": what, "parameters": map[string]any{
			"type": "object", "properties": map[string]any{parameter: map[string]any{"type": "string", "description": "Which " + parameter + "."}},
			"required": []any{parameter}}}}
	}
	return []map[string]any{tool("weather", "Says what the weather will be.", "city"), tool("clock", "Says what time it is.", "zone")}
}
