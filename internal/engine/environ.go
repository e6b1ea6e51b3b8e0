package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/sanitize"
)

// lookup returns the value of a variable; of several the last counts, as for os/exec.
func lookup(env []string, key string) (value string, set bool) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			value, set = v, true
		}
	}
	return value, set
}

func getter(env []string) func(key string) string {
	return func(key string) string { v, _ := lookup(env, key); return v }
}

// defaults are variables that engines read at import: no hub, no telemetry, no progress bars,
// reproducible results.
var defaults = []string{
	"HF_HUB_OFFLINE=1",
	"MODULAR_TELEMETRY_ENABLED=0",
	"MODULAR_CRASH_REPORTING_ENABLED=0",
	"MAX_SERVE_DISABLE_TELEMETRY=1",
	"OTEL_SDK_DISABLED=true",
	"ORT_DISABLE_TELEMETRY=1",
	"DO_NOT_TRACK=1",
	"HF_HUB_DISABLE_TELEMETRY=1",
	"HF_HUB_DISABLE_PROGRESS_BARS=1",
	"TOKENIZERS_PARALLELISM=false",
	"CUBLAS_WORKSPACE_CONFIG=:4096:8",
	"PYTHONHASHSEED=0", // transformers calls Gemma 3's rotary embedding in the order of a set of names
}

// offlineEnv adds the defaults to env. A variable that the user has set keeps its value: HF_HUB_OFFLINE=0
// asks the hub.
func offlineEnv(env []string) []string {
	out := slices.Clone(env)
	for _, kv := range defaults {
		if key, _, _ := strings.Cut(kv, "="); getter(env)(key) == "" {
			out = append(out, kv)
		}
	}
	return out
}

// maskTexts removes the secrets from the text files of a dump: run.json, lists of names, printed
// tensors.
func maskTexts(dir string, secrets *sanitize.Secrets) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		text := slices.Contains([]string{".json", ".txt", ".log"}, filepath.Ext(path))
		if err != nil || !text || !d.Type().IsRegular() {
			return err
		}
		return secrets.MaskFile(path)
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil // there is no dump: open will say so
	}
	return err
}

// Environ is the environment of a program that goparity starts: that of this process, without
// telemetry and without the hub unless it says otherwise, with the cache of compiled graphs.
func Environ() ([]string, error) {
	return withCache(offlineEnv(os.Environ()))
}

// withCache adds the folder of compiled graphs, and what Python needs to print at once and in UTF-8.
func withCache(env []string) ([]string, error) {
	cache, err := CompileCache(getter(env))
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(env), "MODULAR_MAX_CACHE_DIR="+cache, "PYTHONUNBUFFERED=1", "PYTHONIOENCODING=utf-8"), nil
}
