package archtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/updateflag"
)

// limitsFile is the file of a package that holds its limits: thresholds that judge or blame, sizes and times up to which something
// is tried. What each decides, and what it was measured on, stands beside it.
const limitsFile = "limits.go"

// limitsIn lists the constants and variables of a file of limits, "NAME VALUE", and those without a comment.
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

// A limit that changes, comes or goes is seen: testdata/limits.txt names each with its value.
func TestLimits(t *testing.T) {
	root := filepath.Join("..", "..")
	var lines []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != limitsFile {
			if d != nil && d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
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
	file := filepath.Join("testdata", "limits.txt")
	if updateflag.Set() {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSpace(string(data)), strings.Join(lines, "\n"),
		"if that is meant, measure it (make exam), say so beside it, and go test ./internal/archtest -update")
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
	assert.Error(t, err, fmt.Sprint("no Go"))
}
