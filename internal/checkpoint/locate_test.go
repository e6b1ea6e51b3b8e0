package checkpoint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
)

// Every command reads the same files of a folder, those that transformers loads, and says which it does not.
func TestLocate(t *testing.T) {
	const index = "model.safetensors.index.json"
	for _, tt := range []struct {
		files, want, unread string
		err                 string
		reason              string
	}{
		{"model.safetensors", "model.safetensors", "", "", "the usual"},
		{"part-1.safetensors part-2.safetensors " + index, "part-1.safetensors part-2.safetensors", "", "", "shards"},
		{"model.safetensors part-1.safetensors part-2.safetensors " + index, "model.safetensors",
			"part-1.safetensors part-2.safetensors " + index, "", "the file comes before the index"},
		{"model.safetensors model.fp16.safetensors", "model.safetensors", "model.fp16.safetensors", "", "another type beside it"},
		{"part-1.safetensors part-2.safetensors m.gguf " + index, "part-1.safetensors part-2.safetensors", "m.gguf", "", "beside shards"},
		{"model.safetensors m.gguf", "model.safetensors", "m.gguf", "", "a .gguf beside it"},
		{"m.gguf config.json", "m.gguf", "", "", "a .gguf alone"},
		{"a.safetensors b.safetensors", "a.safetensors b.safetensors", "", "", "without an index all are one set"},
		{"model.safetensors adapter_model.safetensors", "model.safetensors", "", "", "an adapter is no part of the model"},
		{"adapter_model.safetensors", "adapter_model.safetensors", "", "", "but may be asked for"},
		{"part-1.safetensors part-2.safetensors " + index + " other.safetensors.index.json", "", "", "several indices", "two indices"},
		{"a.gguf b.gguf", "", "", "several .gguf files, a.gguf, b.gguf: name the one that is meant", "two of them"},
		{"config.json", "", "", "no .safetensors or .gguf file", "nothing"},
	} {
		for _, name := range []string{"plain", "m[1]"} {
			dir := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.Mkdir(dir, 0o755))
			for _, f := range strings.Fields(tt.files) {
				data := []byte(nil)
				if strings.HasSuffix(f, ".index.json") {
					data = []byte(`{"weight_map": {"a": "part-1.safetensors", "b": "part-2.safetensors"}}`)
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, f), data, 0o644))
			}
			at, err := checkpoint.Locate(dir)
			if tt.err != "" {
				assert.ErrorContains(t, err, tt.err, tt.reason)
				continue
			}
			require.NoError(t, err, tt.reason)
			var got []string
			for _, f := range at.Files {
				got = append(got, filepath.Base(f))
			}
			if at.GGUF != "" {
				got = append(got, filepath.Base(at.GGUF))
			}
			assert.Equal(t, strings.Fields(tt.want), got, tt.reason)
			assert.Equal(t, strings.Fields(tt.unread), append([]string{}, at.Unread...), tt.reason)
			if tt.unread != "" {
				read := strings.Replace(tt.want, " part-2.safetensors", " and 1 more", 1)
				assert.Contains(t, strings.Join(checkpoint.Unread(dir), ""), "are those of "+read+"; not read: "+strings.Join(at.Unread, ", "), tt.reason)
			}
		}
	}
}

func TestElsewhereByIndex(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m[1]")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(`{"weight_map": {"a": "1", "b": "2"}}`), 0o644))
	elsewhere, err := checkpoint.InOtherFiles(dir, "1")
	require.NoError(t, err)
	assert.Equal(t, []bool{false, true, false}, []bool{elsewhere("a"), elsewhere("b"), elsewhere("c")})
	elsewhere, err = checkpoint.InOtherFiles(dir, "3")
	require.NoError(t, err)
	assert.Nil(t, elsewhere, "no index names it")
}
