package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/updateflag"
)

// limitsFile is the file of a package that holds its limits: thresholds that judge or blame, sizes
// and times up to which something is tried. A comment says what each decides, and on what it was
// measured.
const limitsFile = "limits.go"

// limitsIn lists the constants and variables of a file of limits, "NAME VALUE", and those without a
// comment.
func limitsIn(name string, source any) (limits, bare []string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST && g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, n := range v.Names {
				var value strings.Builder
				if i < len(v.Values) {
					if err := printer.Fprint(&value, set, v.Values[i]); err != nil {
						return nil, nil, err
					}
				}
				limits = append(limits, n.Name+" "+strings.Join(strings.Fields(value.String()), " "))
				if v.Doc.Text() == "" && v.Comment.Text() == "" && (len(g.Specs) > 1 || g.Doc.Text() == "") {
					bare = append(bare, n.Name)
				}
			}
		}
	}
	return limits, bare, nil
}

// allLimits lists the limits of the module, "DIRECTORY NAME VALUE". Each must have a comment.
func allLimits(t *testing.T) (lines []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	require.NoError(t, walkModule(root, folders(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != limitsFile {
			if d != nil && d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return err
		}
		limits, bare, err := limitsIn(path, nil)
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		assert.Empty(t, bare, "%s: say what it decides, in which unit, and what it was measured on", path)
		for _, l := range limits {
			lines = append(lines, filepath.ToSlash(dir)+" "+l)
		}
		return err
	}))
	slices.Sort(lines)
	require.Greater(t, len(lines), 50, "the limits were not found")
	return lines
}

// A limit that changes, comes or goes is seen: testdata/limits.txt names each with its value.
func TestLimits(t *testing.T) {
	lines := allLimits(t)
	file := filepath.Join("testdata", "limits.txt")
	if updateflag.Set() {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSpace(string(data)), strings.Join(lines, "\n"),
		"if that is meant, measure it (make exam), say so in its comment, and go test ./internal/archtest -update")
}

// rowOfLimit is a row of docs/thresholds.md, of a limit by its package and name, with its value.
var rowOfLimit = regexp.MustCompile("(?m)^\\| `(\\w+)\\.(\\w+)` \\| ([^|]+) \\|")

// The pages have the values that judge.
func TestPagesHaveTheLimits(t *testing.T) {
	lines := allLimits(t)
	page := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		require.NoError(t, err)
		return string(data)
	}
	rows := rowOfLimit.FindAllStringSubmatch(page("thresholds.md"), -1)
	require.Greater(t, len(rows), 30, "the tables of docs/thresholds.md were not found")
	for _, row := range rows {
		assert.Condition(t, func() bool {
			return slices.ContainsFunc(lines, func(l string) bool {
				dir, limit, _ := strings.Cut(l, " ")
				return path.Base(dir) == row[1] && limit == row[2]+" "+row[3]
			})
		}, "docs/thresholds.md: %s", row[0])
	}
	for _, c := range []struct{ limit, page, quote, reason string }{
		{"internal/compare drift 6", "report.md", "six times these limits pass", "of a drift"},
		{"internal/judge noiseRatio 3", "report.md", "three times the reference's own", "with a float64 golden"},
		{"internal/judge maxExplained 20", "report.md", "The first 20 failing rows", "details"},
		{"internal/report maxBins 256", "report.md", "in at most 256 bins", "rows of a tensor"},
		{"internal/structure gap 4", "report.md", "at least four times nearer", "where a place is named"},
		{"internal/report changeFactor 2", "report.md", "more than twice the old one", "a baseline"},
		{"internal/report changeUnits 8", "report.md", "more than 8 units of rounding", "a baseline"},
		{"internal/compare relFloor 1e-10", "report.md", "max(\\|g\\|, 1e-10)", "max_rel"},
		{"internal/compare longRowFloor 0.1", "report.md", "f = 0.1, or 1 for rows under 64 elements", "the worst row"},
		{"internal/compare shortRow 64", "report.md", "f = 0.1, or 1 for rows under 64 elements", "the worst row"},
		{"internal/diagnose margin 8", "causes.md", "fit ≤ fit_golden / 8", "the rule of proof"},
		{"internal/diagnose PerParam 32", "causes.md", "at least 32 elements", "the rule of proof"},
		{"internal/setting fastBudget 1500 * time.Millisecond", "causes.md", "none, 1.5 s, or 10 s", "the time"},
		{"internal/setting fullBudget 10 * time.Second", "causes.md", "none, 1.5 s, or 10 s", "the time"},
	} {
		assert.Contains(t, lines, c.limit, "%s: docs/%s says %q", c.reason, c.page, c.quote)
		text := strings.Join(strings.Fields(page(c.page)), " ") // however it is wrapped
		assert.True(t, strings.Contains(text, c.quote), "docs/%s lacks %q, %s: the limit is %s",
			c.page, c.quote, c.reason, c.limit)
	}
}

func TestLimitsIn(t *testing.T) {
	limits, bare, err := limitsIn("x.go", `package x
const (
	a = 3 // times
	// b is a share.
	b = 1.0 / 3
	c = 5
)
// d is one limit.
const d = 1 << 20
var e = f{1,
	2}
`)
	require.NoError(t, err)
	assert.Equal(t, []string{"a 3", "b 1.0 / 3", "c 5", "d 1 << 20", "e f{1, 2}"}, limits)
	assert.Equal(t, []string{"c", "e"}, bare, "those without a comment of their own")
	_, _, err = limitsIn("x.go", "package")
	assert.Error(t, err, "no Go")
}
