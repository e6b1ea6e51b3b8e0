package dequant

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
)

// IndexEnd is the end of the name of an index of .safetensors files.
const IndexEnd = ".safetensors.index.json"

// Elsewhere returns what tells the tensors that an index in the folder
// (model.safetensors.index.json) has in other files than this one. It is nil if no index there
// names the file.
func Elsewhere(dir, file string) (func(name string) bool, error) {
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), IndexEnd) {
			continue
		}
		if elsewhere, err := elsewhereBy(filepath.Join(dir, e.Name()), file); elsewhere != nil || err != nil {
			return elsewhere, err
		}
	}
	return nil, nil
}

// elsewhereBy is Elsewhere by one index.
func elsewhereBy(path, file string) (func(name string) bool, error) {
	data, err := mapfile.Read(path, mapfile.MaxListing)
	if err != nil {
		return nil, err
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: want an index with a weight_map: %w", path, err)
	}
	for _, f := range index.Map {
		if f == file {
			return func(name string) bool { f, ok := index.Map[name]; return ok && f != file }, nil
		}
	}
	return nil, nil
}
