package whole_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/whole"
)

func TestSwap(t *testing.T) {
	for _, tt := range []struct {
		had, made bool
		want      string
		reason    string
	}{
		{true, true, "new", "the new folder takes its place"},
		{false, true, "new", "there was no folder"},
		{true, false, "old", "the new one cannot be moved: the old one is moved back"},
		{false, false, "", "there is no old folder to move back"},
	} {
		dir := t.TempDir()
		write := func(folder, text string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, folder, "file"), []byte(text), 0o644))
		}
		if tt.had {
			write("to", "old")
		}
		if tt.made {
			write("from", "new")
		}
		err := whole.Swap(filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "old"))
		assert.Equal(t, tt.made, err == nil, tt.reason)
		got, _ := os.ReadFile(filepath.Join(dir, "to", "file"))
		assert.Equal(t, tt.want, string(got), tt.reason)
	}
}
