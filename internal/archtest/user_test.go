package archtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A user who imports every public package requires the modules in linked and no others. The test
// needs no network if the module cache has what this module's own tests need.
func TestWhatAUserRequires(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go .*$`).Find(gomod)
	require.NotEmpty(t, version)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)

	source := "package user\n"
	for _, dir := range public(readThis(t)) {
		source += "import _ \"" + module + "/" + dir + "\"\n"
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/user\n" + string(version) + "\nrequire " + module + " v0.0.0\nreplace " +
			module + " => " + root + "\n",
		"go.sum":       string(sums),
		"user_test.go": source,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	tidy := exec.Command("go", "mod", "tidy")
	tidy.Dir, tidy.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	output, err := tidy.CombinedOutput()
	require.NoError(t, err, "%s", output)

	tidied, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	var indirect []string
	for _, m := range regexp.MustCompile(`(?m)^\s*(?:require )?(\S+) \S+ // indirect$`).FindAllSubmatch(tidied, -1) {
		indirect = append(indirect, string(m[1]))
	}
	assert.ElementsMatch(t, linked, indirect)
	assert.LessOrEqual(t, len(linked), 6, "each is one more thing that users have to update")
}
