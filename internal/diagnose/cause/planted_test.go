package cause_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/diagnose/cause"
)

// A cause is planted somewhere: in the zoo, whose score is kept, or in a test of this package.
func TestEveryCauseIsPlanted(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var all strings.Builder
	exam := filepath.Join("..", "..", "exam")
	for _, name := range append(files, filepath.Join(exam, "zoo", "score.txt"), filepath.Join(exam, "paths", "score.txt"),
		filepath.Join("..", "..", "text", "text_test.go"), filepath.Join(exam, "archs", "score.txt")) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all.Write(text)
	}
	for _, id := range cause.IDs() {
		if strings.HasPrefix(id, "activation/") || id == "config/<key>" {
			continue // one cause with a table of functions, and any key of a config.json
		}
		assert.Regexp(t, `[" ]`+id+`["!\s]`, all.String(), "plant %s: internal/exam/zoo/cases.py, then make score-update", id)
	}
}
