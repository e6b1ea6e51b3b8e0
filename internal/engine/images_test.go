package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

// What is planned for an engine, and what its runner refuses, is told by one table: CAN in its Python file.
func TestTakesImages(t *testing.T) {
	files, err := filepath.Glob("runner/goparity/?*run.py")
	require.NoError(t, err)
	require.Len(t, files, 3)
	records := regexp.MustCompile(`(?s)\nCAN = \{.*?"records": \[([^]]*)\]`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		says := records.FindSubmatch(source)
		require.NotNil(t, says, file)
		name := strings.TrimSuffix(filepath.Base(file), "run.py")
		assert.Equal(t, strings.Contains(string(says[1]), `"images"`), engine.TakesImages(name), name)
	}
}
