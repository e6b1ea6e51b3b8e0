package diagnose_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/diagnose"
)

// A cause is planted somewhere: in a case of the exam, or in a test of this package.
func TestEveryCauseIsPlanted(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var all strings.Builder
	exam, err := filepath.Glob(filepath.Join("..", "exam", "*", "*.py"))
	require.NoError(t, err)
	for _, name := range slices.Concat(files, exam, []string{filepath.Join("..", "text", "text_test.go")}) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all.Write(text)
	}
	for _, id := range diagnose.IDs() {
		if strings.HasPrefix(id, "activation/") || id == "config/<key>" {
			continue // one cause with a table of functions, and any key of a config.json
		}
		assert.Contains(t, all.String(), `"`+id+`"`, "plant %s: internal/exam/zoo/cases.py, then make score-update", id)
	}
}
