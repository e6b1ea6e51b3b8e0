package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "renew the expected files")

// sameAsFile compares got with testdata/name, or renews that file if -update is given.
func sameAsFile(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./internal/report -update writes it")
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n")) // git may have checked it out so
	require.Equal(t, string(want), string(got),
		"go test ./internal/report -update renews %s; look at the difference", path)
}
