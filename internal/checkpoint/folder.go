package checkpoint

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
)

// HubCache returns the folder in which the packages of Hugging Face keep what they downloaded.
func HubCache(getenv func(string) string) string {
	user, err := os.UserHomeDir()
	if err == nil {
		user = filepath.Join(user, ".cache")
	}
	home := getenv("HF_HOME")
	if base := cmp.Or(getenv("XDG_CACHE_HOME"), user); home == "" && base != "" {
		home = filepath.Join(base, "huggingface")
	}
	if hub := getenv("HF_HUB_CACHE"); hub != "" || home == "" {
		return hub
	}
	return filepath.Join(home, "hub")
}

// Snapshot returns the folder of a hub model in the cache of this machine, "" if it is not there. An
// empty revision is main.
func Snapshot(model, revision string) string {
	cache := HubCache(os.Getenv)
	if cache == "" || !filepath.IsLocal(model) {
		return ""
	}
	dir := filepath.Join(cache, "models--"+strings.ReplaceAll(model, "/", "--"))
	revision = cmp.Or(revision, "main")
	if commit, err := mapfile.Read(filepath.Join(dir, "refs", revision), mapfile.MaxConfig); err == nil {
		revision = strings.TrimSpace(string(commit))
	}
	dir = filepath.Join(dir, "snapshots", revision)
	if !mapfile.IsFolder(dir) {
		return ""
	}
	return dir
}

// beside reads a JSON object in a model's folder; nil where there is none.
func beside(dir, name string) Config {
	c, err := readObject(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	return c
}

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
	return cmp.Or(c.String("eos_token"), c.object("eos_token").String("content"))
}

// HasTokenizer reports whether a model's folder has a tokenizer.
func HasTokenizer(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "tokenizer_config.json"))
	return err == nil
}

// ChatTemplate is the text of the chat template in a model's folder; "" if there is none.
func ChatTemplate(dir string) string {
	if data, err := mapfile.Read(filepath.Join(dir, "chat_template.jinja"), mapfile.MaxConfig); err == nil {
		return string(data)
	}
	text := ""
	for _, name := range []string{"chat_template.json", "processor_config.json", "tokenizer_config.json"} {
		text = cmp.Or(text, beside(dir, name).String("chat_template"))
	}
	return text
}

// ImageProcessor is how images are made fit for a model: the settings in its folder; nil if there are
// none.
func ImageProcessor(dir string) Config {
	whole, of := beside(dir, "processor_config.json"), beside(dir, "preprocessor_config.json")
	if inner := whole.object("image_processor"); inner != nil {
		of = inner
	}
	if n, ok := whole["image_seq_length"]; ok && of != nil {
		of["image_seq_length"] = n
	}
	return of
}
