package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/fixture"
)

// tasks by the end of an architecture's name. The order decides: every name of a model may end with
// Model.
var tasks = []struct{ ending, task string }{
	{"ForCausalLM", fixture.TextGeneration},
	{"LMHeadModel", fixture.TextGeneration},
	{"ForConditionalGeneration", fixture.TextGeneration},
	{"ForSequenceClassification", fixture.TextClassification},
	{"ForMaskedLM", fixture.Embeddings},
	{"Model", fixture.Embeddings},
}

// guessTask reads the task off the architectures in the model's config.json. why says so for the
// user.
func guessTask(model string, local bool, revision string) (task, why string, err error) {
	dir := modelDir(model, local, revision)
	if dir == "" {
		return "", "", usage("run: the task of %s is not known, for it is not in the hub's cache: give --task, "+
			"text-generation or embeddings", model)
	}
	path := filepath.Join(dir, "config.json")
	config, err := checkpoint.ReadConfig(path)
	if err != nil {
		return "", "", usage("run: %v: a model folder holds config.json, *.safetensors and the tokenizer's files", err)
	}
	architectures, _ := config["architectures"].([]any)
	for _, a := range architectures {
		for _, t := range tasks {
			if name, _ := a.(string); strings.HasSuffix(name, t.ending) {
				return t.task, "guessed from " + name + " in config.json", nil
			}
		}
	}
	return "", "", usage("run: the architectures %q in %s do not tell the task: give --task", architectures, path)
}

// modelDir is the folder of a model: itself, or where the hub's cache has it, "" where it has not.
func modelDir(model string, local bool, revision string) string {
	if local {
		return model
	}
	return checkpoint.Snapshot(model, revision)
}

// localModel reports whether a model is a folder and not a hub id. What looks like a folder must be
// one.
func localModel(model string) (bool, error) {
	if st, err := os.Stat(model); err == nil {
		if !st.IsDir() {
			return false, usage("run: --model %s is a file: name the folder with config.json and *.safetensors", model)
		}
		return true, nil
	}
	if filepath.IsAbs(model) || strings.HasPrefix(model, ".") || strings.Count(model, "/") > 1 ||
		strings.ContainsRune(model, '\\') {
		return false, usage("run: there is no model folder %s", model)
	}
	return false, nil
}

// parseIDs reads "72,101 108" as token ids.
func parseIDs(text string) (ids []int, err error) {
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		var id int
		if err := json.Unmarshal([]byte(f), &id); err != nil {
			return nil, fmt.Errorf("%q is no token id", f)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%q has no token ids: write 72,101,108", text)
	}
	return ids, nil
}
