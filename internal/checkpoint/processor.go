package checkpoint

import (
	"os"
	"path/filepath"

	"github.com/goparity/goparity/internal/mapfile"
)

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
	for _, name := range []string{"chat_template.json", "processor_config.json", "tokenizer_config.json"} {
		if text := beside(dir, name).String("chat_template"); text != "" {
			return text
		}
	}
	return ""
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
