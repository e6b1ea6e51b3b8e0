package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
)

func TestEOS(t *testing.T) {
	for _, c := range []struct {
		generation, config string
		want               []int
		reason             string
	}{
		{`{"eos_token_id": 2}`, `{}`, []int{2}, "one"},
		{`{"eos_token_id": [1, 106]}`, `{"eos_token_id": 1}`, []int{1, 106}, "several, and one of them again"},
		{``, `{"text_config": {"eos_token_id": 7}}`, []int{7}, "of the text model"},
		{`{"eos_token_id": null}`, `{"eos_token_id": "x"}`, nil, "none"},
		{`[`, `{"eos_token_id": 0}`, []int{0}, "a damaged file says nothing"},
		{``, ``, nil, "no files"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"generation_config.json": c.generation, "config.json": c.config} {
			if text != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
		}
		assert.Equal(t, c.want, checkpoint.EOS(dir), c.reason)
	}
}

func TestEOSToken(t *testing.T) {
	for text, want := range map[string]string{`{"eos_token": "</s>"}`: "</s>", `{"eos_token": {"content": "<eos>"}}`: "<eos>",
		`{"eos_token": null}`: "", `{}`: "", `{`: "", `{"eos_token": 3}`: ""} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(text), 0o644))
		assert.Equal(t, want, checkpoint.EOSToken(dir), text)
	}
	assert.Empty(t, checkpoint.EOSToken(t.TempDir()))
}

// A hub model lies where its packages keep it.
func TestSnapshot(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("HF_HUB_CACHE", cache)
	dir := filepath.Join(cache, "models--org--name")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "snapshots", "abc"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "refs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "refs", "main"), []byte("abc\n"), 0o644))
	for _, c := range []struct{ model, revision, want string }{{"org/name", "", "abc"}, {"org/name", "abc", "abc"}, {"org/name", "def", ""},
		{"org/other", "", ""}, {"../x", "", ""}} {
		want := c.want
		if want != "" {
			want = filepath.Join(dir, "snapshots", want)
		}
		assert.Equal(t, want, checkpoint.Snapshot(c.model, c.revision), "%s %s", c.model, c.revision)
	}
}
