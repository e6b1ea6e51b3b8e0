package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/goparity/goparity/internal/diagnose"
)

// ReadConfig reads a config.json. The keys of text_config and of rope_parameters count where the
// outer level lacks them.
func ReadConfig(path string) (diagnose.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := diagnose.Config{}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("%s: want a JSON object, as Hugging Face's config.json: %w", path, err)
	}
	for _, key := range []string{"text_config", "rope_parameters"} { // rope_theta stands in the latter since transformers 5
		if inner, ok := c[key].(map[string]any); ok {
			for k, v := range inner {
				if _, outer := c[k]; !outer {
					c[k] = v
				}
			}
		}
	}
	return c, nil
}
