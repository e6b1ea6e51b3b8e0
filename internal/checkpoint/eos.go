package checkpoint

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/goparity/goparity/internal/mapfile"
)

// EOS returns the tokens that end a text, as generation_config.json and config.json of a model's
// folder say, or nil if neither does.
func EOS(dir string) (ids []int) {
	for _, name := range []string{"generation_config.json", "config.json"} {
		data, err := mapfile.Read(filepath.Join(dir, name), mapfile.MaxConfig)
		if err != nil {
			continue
		}
		type config struct {
			EOS json.RawMessage `json:"eos_token_id"`
		}
		var c struct {
			config
			Text config `json:"text_config"`
		}
		if json.Unmarshal(data, &c) != nil {
			continue
		}
		for _, said := range []json.RawMessage{c.EOS, c.Text.EOS} {
			var one *int
			var several []int
			switch {
			case len(said) == 0:
				continue
			case json.Unmarshal(said, &one) == nil && one != nil:
				several = []int{*one}
			case json.Unmarshal(said, &several) != nil:
				continue
			}
			for _, id := range several {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}

// EOSToken returns the text of the token that ends a text, as tokenizer_config.json of a model's or
// tokenizer's folder says, "" if it does not.
func EOSToken(dir string) string {
	data, err := mapfile.Read(filepath.Join(dir, "tokenizer_config.json"), mapfile.MaxConfig)
	if err != nil {
		return ""
	}
	var c struct {
		EOS json.RawMessage `json:"eos_token"`
	}
	var text string
	var added struct {
		Content string `json:"content"`
	}
	switch {
	case json.Unmarshal(data, &c) != nil:
		return ""
	case json.Unmarshal(c.EOS, &text) == nil:
		return text
	case json.Unmarshal(c.EOS, &added) != nil:
		return ""
	}
	return added.Content
}
