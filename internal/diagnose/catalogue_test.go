package diagnose_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/edit"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/weights"
)

// The catalogue has a row for each id, in the section of its family, and no other; and the code
// names no id that is not in it.
func TestCatalogue(t *testing.T) {
	ids := map[string]bool{}
	families := map[string]bool{}
	for _, id := range slices.Concat(diagnose.IDs(), serving.IDs(), weights.IDs(), edit.IDs()) { // numbers show some of what edits are
		ids[id] = true
		family, _, _ := strings.Cut(id, "/")
		families[family] = true
	}

	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "causes.md"))
	require.NoError(t, err)
	documented := map[string]bool{}
	section := ""
	for line := range strings.Lines(string(doc)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			section = name
			assert.True(t, families[name], "section %s is of no family", name)
		}
		cells := strings.Split(line, "|")
		if len(cells) < 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, id := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			documented[id[1]] = true
			assert.True(t, ids[id[1]], "docs/causes.md has %s, which nothing names", id[1])
			assert.Equal(t, section, strings.Split(id[1], "/")[0], "%s stands in another section", id[1])
		}
	}
	for id := range ids {
		assert.True(t, documented[id], "docs/causes.md lacks %s", id)
	}

	named := 0
	for _, id := range idsInCode(t) {
		family, name, _ := strings.Cut(id, "/")
		if families[family] && family != "config" && name != "" { // no other word, no key, and not what begins an id
			named++
			assert.True(t, ids[id], "the code names %s, which is not in the catalogue", id)
		}
	}
	assert.Greater(t, named, 150)
}

// idsInCode lists the strings of causes and edits that look like ids.
func idsInCode(t *testing.T) (out []string) {
	t.Helper()
	for _, folder := range []string{".", filepath.Join("..", "edit")} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			code, err := os.ReadFile(name)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`"([a-z]+/[a-z0-9-]*)"`).FindAllSubmatch(code, -1) {
				if !strings.HasSuffix(name, "_test.go") {
					out = append(out, string(m[1]))
				}
			}
		}
	}
	return out
}
