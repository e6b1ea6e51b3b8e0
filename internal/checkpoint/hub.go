package checkpoint

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
)

// HubCache returns the folder in which the packages of Hugging Face keep what they downloaded.
func HubCache(getenv func(string) string) string {
	if dir := getenv("HF_HUB_CACHE"); dir != "" {
		return dir
	}
	home := getenv("HF_HOME")
	if home == "" {
		base := getenv("XDG_CACHE_HOME")
		if base == "" {
			user, err := os.UserHomeDir()
			if err != nil {
				return ""
			}
			base = filepath.Join(user, ".cache")
		}
		home = filepath.Join(base, "huggingface")
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
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return ""
	}
	return dir
}
