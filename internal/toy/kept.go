package toy

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "renew the expected files")

// Kept compares what a test has said with testdata/name of its package, whose lines git may have ended as Windows does; with
// -update it renews that file.
func Kept(t *testing.T, name, said string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(said), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -update writes it")
	assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), said, "go test -update renews %s; look at the difference", path)
}
