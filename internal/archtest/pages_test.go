package archtest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// A path as pages write it; NAME stands for any name.
	inModule = regexp.MustCompile("`((?:internal|cmd|compare|tensor|golden|parity|testmain|docs|fixtures|examples)/[a-z0-9_./-]+)`")
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// anchors lists the anchors of a page: its headings in lower case, without punctuation, with
// hyphens for spaces.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return all
}

// wrongPageLinks lists the relative links of the pages of root that lead nowhere.
func wrongPageLinks(root fs.FS, pages []string) (wrong []string, err error) {
	for _, page := range pages {
		text, err := fs.ReadFile(root, page)
		if err != nil {
			return nil, err
		}
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, anchored := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			}
			data, err := fs.ReadFile(root, target)
			if err != nil {
				if info, dirErr := fs.Stat(root, target); dirErr != nil || !info.IsDir() {
					wrong = append(wrong, fmt.Sprintf("%s: (%s): there is no %s", page, m[1], target))
				}
			} else if anchored && !anchors(string(data))[anchor] {
				wrong = append(wrong, fmt.Sprintf("%s: (%s): %s has no heading of that name", page, m[1], target))
			}
		}
	}
	return wrong, nil
}

// wrongPaths lists the files and folders of this module that a page names, but that do not exist.
func wrongPaths(root fs.FS, page string) (wrong []string) {
	for _, m := range inModule.FindAllStringSubmatch(page, -1) {
		if _, err := fs.Stat(root, m[1]); err != nil {
			wrong = append(wrong, m[1])
		}
	}
	return wrong
}

func TestPathsOfContributing(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	page, err := fs.ReadFile(root, "CONTRIBUTING.md")
	require.NoError(t, err)
	require.Greater(t, len(inModule.FindAllString(string(page), -1)), 40)
	assert.Empty(t, wrongPaths(root, string(page)))
	assert.Equal(t, []string{"internal/nothing.go"},
		wrongPaths(root, "`internal/nothing.go`, `internal/compare/table.go`, `tensor/NAME`"))
}

func TestLinksOfThePages(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	pages, err := fs.Glob(root, "docs/*.md")
	require.NoError(t, err)
	pages = append(pages, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SKILL.md", "internal/exam/README.md")
	require.Greater(t, len(pages), 10)
	wrong, err := wrongPageLinks(root, pages)
	require.NoError(t, err)
	assert.Empty(t, wrong)

	wrong, err = wrongPageLinks(os.DirFS(filepath.Join("testdata", "pages")), []string{"page.md"})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"page.md: (#nowhere): page.md has no heading of that name",
		"page.md: (sub/other.md#here-it-is): sub/other.md has no heading of that name",
		"page.md: (missing.png): there is no missing.png",
	}, wrong, "the check must be able to fail")
}

// rooms lists the folders in the first cells of a page's tables. A name without a folder is in the
// folder of the one before it.
func rooms(page string) map[string]bool {
	all := map[string]bool{}
	code := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		parent := ""
		for _, m := range code.FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			dir := strings.TrimSuffix(m[1], "/")
			if strings.Contains(dir, "/") {
				parent = path.Dir(dir) + "/"
			} else if dir == m[1] {
				dir = parent + dir
			}
			all[dir] = true
		}
	}
	return all
}

// The page on the architecture has a row for each package, and none for others.
func TestEveryPackageHasARoom(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	section, _, found := strings.Cut(string(text), "\n## Dependencies")
	require.True(t, found)
	table := rooms(section)
	for dir := range readThis(t) {
		if !strings.Contains(dir, "/internal/") && !strings.HasSuffix(dir, "/reporttest") {
			assert.True(t, table[dir], "docs/architecture.md has no row for %s", dir)
		}
	}
	for dir := range table {
		assert.DirExists(t, filepath.Join(root, dir), "a row of docs/architecture.md")
	}
	assert.Equal(t, map[string]bool{"a": true, "b/c": true, "b/d": true},
		rooms("| `a/` | x, `y` |\n| `b/c`, `d` | z |\n`e`\n"))
}
