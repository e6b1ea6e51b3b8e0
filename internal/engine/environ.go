package engine

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/supervise"
)

// lookup returns the last value of a key, which is the one that programs see.
func lookup(env []string, key string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}

// defaults are variables that engines read at import: no telemetry, no progress bars, reproducible
// results.
var defaults = []string{
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
}

// quiet adds the defaults to env, and HF_HUB_OFFLINE unless the job is online. A variable that the
// user has set keeps its value: HF_HUB_OFFLINE=0 asks the hub.
func quiet(env []string, online bool) []string {
	offline := "HF_HUB_OFFLINE=1"
	if online {
		offline = "HF_HUB_OFFLINE=0"
	}
	out := slices.Clone(env)
	for _, kv := range append(slices.Clone(defaults), offline) {
		if key, _, _ := strings.Cut(kv, "="); lookup(env, key) == "" {
			out = append(out, kv)
		}
	}
	return out
}

var secretKey = regexp.MustCompile(`(?i)(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)$`)

// secrets returns the values of variables that look secret and the passwords in URLs, each also in
// JSON's spelling.
func secrets(env []string) (values []string) {
	add := func(v string) {
		const short = 6 // characters; "true" and "1" are not secrets, and are all over a log
		if len(v) < short {
			return
		}
		values = append(values, v)
		if quoted, err := json.Marshal(v); err == nil && string(quoted) != `"`+v+`"` {
			values = append(values, string(quoted[1:len(quoted)-1]))
		}
	}
	for _, kv := range env {
		key, v, _ := strings.Cut(kv, "=")
		if secretKey.MatchString(key) {
			add(v)
		} else if u, err := url.Parse(v); err == nil && u.User != nil {
			password, _ := u.User.Password()
			add(password)
		}
	}
	return values
}

// maskTexts removes the secrets from the text files of a dump: run.json, lists of names, printed
// tensors.
func maskTexts(dir string, secrets []string) error {
	if len(secrets) == 0 {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		text := slices.Contains([]string{".json", ".txt", ".log"}, filepath.Ext(path))
		if err != nil || !text || !d.Type().IsRegular() {
			return err
		}
		return supervise.MaskFile(path, secrets)
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil // there is no dump: open will say so
	}
	return err
}
