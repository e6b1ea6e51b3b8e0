package dequant

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/goparity/goparity/internal/mapfile"
)

// Elsewhere returns what tells the tensors that an index in the folder
// (model.safetensors.index.json) has in other files than this one. It is nil if there is no such
// index, or it does not name the file.
func Elsewhere(dir, file string) (func(name string) bool, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.safetensors.index.json"))
	if err != nil || len(found) == 0 {
		return nil, nil // a folder whose name is a pattern has none
	}
	data, err := mapfile.Read(found[0], mapfile.MaxListing)
	if err != nil {
		return nil, err
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: want an index with a weight_map: %w", found[0], err)
	}
	for _, f := range index.Map {
		if f == file {
			return func(name string) bool { f, ok := index.Map[name]; return ok && f != file }, nil
		}
	}
	return nil, nil
}
