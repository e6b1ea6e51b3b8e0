package diagnose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	for _, id := range idsInCode(t, families) {
		family, name, _ := strings.Cut(id, "/")
		switch {
		case family == "config" || strings.HasSuffix(id, "/"): // any key, and what begins an id
		case name == "" && family != "drift" && family != "dropout" && family != "interaction": // another word
		default:
			named++
			assert.True(t, ids[id], "the code names %s, which is not in the catalogue", id)
		}
	}
	assert.Greater(t, named, 150)
}

// idsInCode lists the string literals of causes and edits that look like ids.
func idsInCode(t *testing.T, families map[string]bool) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	edits, err := filepath.Glob(filepath.Join("..", "edit", "*.go"))
	require.NoError(t, err)
	files = append(files, edits...)
	shape := regexp.MustCompile(`^[a-z]+(/[a-z0-9-]*)?$`)
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				s, err := strconv.Unquote(l.Value)
				require.NoError(t, err)
				if family, _, _ := strings.Cut(s, "/"); shape.MatchString(s) && families[family] {
					out = append(out, s)
				}
			}
			return true
		})
	}
	return out
}

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
