package diagnose_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/diagnose"
)

var update = flag.Bool("update", false, "renew the expected files")

// said writes causes as a reader gets them.
func said(b *strings.Builder, name string, causes []diagnose.Cause) {
	fmt.Fprintf(b, "== %s\n", name)
	for _, c := range causes {
		fmt.Fprintf(b, "%s, proven %t, fit %.2g of %.2g, next %s %.2g: %s\n", c.ID, c.Proven, c.Fit, c.FitGolden, c.Next, c.NextFit, c.Text)
	}
}

// sameAsFile compares what was said with testdata/name, or renews that file.
func sameAsFile(t *testing.T, name string, b *strings.Builder) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), b.String())
}
