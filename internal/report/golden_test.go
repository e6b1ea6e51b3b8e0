package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/updateflag"
)

var updateText = flag.Bool("update-text", false, "renew the expected files in testdata")

// sameAsFile compares got with testdata/name, or renews that file if -update-text or -update is
// given.
func sameAsFile(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *updateText || updateflag.Set() {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./internal/report -update-text writes it")
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n")) // git may have checked it out so
	require.Equal(t, string(want), string(got),
		"go test ./internal/report -update-text renews %s; look at the difference", path)
}
