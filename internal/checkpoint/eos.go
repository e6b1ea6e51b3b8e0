package checkpoint

import (
	"path/filepath"
	"slices"
)

// EOS returns the tokens that end a text, as generation_config.json and config.json of a model's
// folder say, or nil if neither does.
func EOS(dir string) (ids []int) {
	for _, name := range []string{"generation_config.json", "config.json"} {
		c := beside(dir, name)
		for _, id := range append(c.ints("eos_token_id"), c.object("text_config").ints("eos_token_id")...) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// EOSToken returns the text of the token that ends a text, as tokenizer_config.json of a model's or
// tokenizer's folder says, "" if it does not.
func EOSToken(dir string) string {
	c := beside(dir, "tokenizer_config.json")
	if text := c.String("eos_token"); text != "" {
		return text
	}
	return c.object("eos_token").String("content")
}

// beside reads a JSON object in a model's folder; nil where there is none.
func beside(dir, name string) Config {
	c, err := readObject(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	return c
}
