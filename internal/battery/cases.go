package battery

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
)

// sight is how a model looks at images.
type sight struct {
	size       // of the tower that does
	tile  int  // edge of the image that the tower takes
	patch int  // edge of a patch of it
	unit  int  // edge of what becomes a token, where an image has as many as fit into it; else 0
	fixed int  // tokens of an image, or of a tile of it
	tiled bool // larger images are cut into tiles
}

// newSight reads how a model of a config and an image processor looks at images.
func newSight(c, processor checkpoint.Config) sight {
	vision, _ := c["vision_config"].(map[string]any)
	of := checkpoint.Config(vision)
	s := sight{size: sizeOf(of), patch: edge(defaultPatch, processor["patch_size"], of["patch_size"])}
	s.vocab = 0
	if processor["patch_size"] != nil { // an image has as many as fit into it
		s.unit = s.patch * edge(1, processor["merge_size"], of["spatial_merge_size"])
		s.tile = unitsPerEdge * s.unit
		for least := edge(0, processor["min_pixels"], processor["size"]); processor["merge_size"] != nil && s.tile*s.tile < least; {
			s.tile += s.unit
		}
		return s
	}
	s.tile = edge(unitsPerEdge*s.patch, processor["max_image_size"], processor["crop_size"], processor["size"], of["image_size"])
	s.fixed = edge((s.tile/s.patch)*(s.tile/s.patch), processor["image_seq_length"], c["image_seq_length"], c["mm_tokens_per_image"])
	for _, key := range []string{"image_grid_pinpoints", "max_image_size", "do_image_splitting", "crop_to_patches"} {
		s.tiled = s.tiled || processor[key] != nil && processor[key] != false
	}
	return s
}

// edge is the first of the values that has a number of pixels: a number, or a size as processors have it.
func edge(otherwise int, values ...any) int {
	for _, v := range values {
		in, _ := v.(map[string]any)
		for _, n := range []any{v, in["height"], in["shortest_edge"], in["longest_edge"]} {
			if n, ok := n.(float64); ok && n >= 1 {
				return int(n)
			}
		}
	}
	return otherwise
}

// tokens are about those of an image.
func (s sight) tokens(p engine.Picture) int {
	up := func(n, by int) int { return (n + by - 1) / by }
	switch {
	case s.unit > 0:
		return up(p.Width, s.unit) * up(p.Height, s.unit)
	case s.tiled:
		return s.fixed * (1 + up(p.Width, s.tile)*up(p.Height, s.tile))
	}
	return s.fixed
}

// patches are those of an image that the tower looks at.
func (s sight) patches(p engine.Picture) int {
	if s.unit > 0 {
		return s.tokens(p) * (s.unit / s.patch) * (s.unit / s.patch)
	}
	return s.tokens(p) / s.fixed * (s.tile / s.patch) * (s.tile / s.patch)
}

// images are the cases with images, the most telling first. No two have the same tokens: rows along
// execution paths are found by these.
func (p *planner) images() (out []Case) {
	if p.options.Images == nil || !p.options.Generates {
		return nil
	}
	add := func(name, what string, steps int, text string, pictures ...engine.Picture) {
		c := Case{Case: engine.Case{Name: Prefix + name, Steps: steps, Images: [][]string{nil}}, For: what, seen: pictures}
		if strings.Contains(p.options.Chat, "image") {
			c.Messages = []dump.Message{{Role: "user", Content: text}}
		} else {
			c.Prompts = []string{text}
		}
		for _, x := range pictures {
			c.Images[0] = append(c.Images[0], x.Name())
		}
		out = append(out, c)
	}
	const here = engine.ImageMark
	t := p.sight.tile
	add("image", "an image among text, and tokens of its own behind it: positions, the mask, the cache", 5,
		"Look at this: "+here+"\nWhat is in the picture, and what may it be good for?", engine.Picture{Width: t, Height: t, Seed: 1})
	add("image-other", "another image of the same size, behind the same text: what is kept of the one before", 1,
		"Look at this: "+here+"\nSay in a single word what the picture shows, please.", engine.Picture{Width: t, Height: t, Seed: 2})
	add("images", "two images in a prompt, a wide and a tall one: whose features are whose, rows and columns", 3,
		"The first one is wide: "+here+"\nThe second one is tall: "+here+"\nWhich of the two has more red in it?",
		engine.Picture{Width: 2 * t, Height: t, Seed: 3}, engine.Picture{Width: t, Height: 2 * t, Seed: 4})
	add("image-odd", "an image larger than a tile, a multiple of nothing, before all text: resizing, tiles, padding", 1,
		here+"What is to the left of it, and what is to the right?", engine.Picture{Width: 2*t + t/2 + 1, Height: t + t/4 + 3, Seed: 5})
	return out
}

// addImages adds the cases with images that half of the budget takes, and always the first.
func (p *planner) addImages(out *Plan, layers int) {
	var spent Cost
	for i, c := range p.images() {
		c.Cost = p.costOf(c, layers)
		next := spent
		next.add(c.Cost)
		if i > 0 && (next.Time > p.options.Budget/2 || next.Bytes > p.options.Bytes/2) {
			out.left = append(out.left, fmt.Sprintf("case %s (%s): would take %s of goldens", c.Name, c.For, c.Cost))
			continue
		}
		spent = next
		out.Cases = append(out.Cases, c)
	}
}

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
