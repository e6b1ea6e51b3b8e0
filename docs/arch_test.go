// These tests keep what the pages say of the module: which package may import which, what a user's go.mod requires,
// how much a package exports, how long a function is, and that no link leads nowhere.
package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layers lists the packages in the order of the data. A package may import those in the rows above
// its own, but not those in its row or below it. "tensor/*" is every package directly below tensor.
var layers = [][]string{
	{"internal/sanitize", "internal/mapfile", "internal/smallfloat"},
	{"internal/label", "internal/supervise", "internal/setting"},
	{"tensor"}, {"tensor/internal/*"},
	{"tensor/*", "internal/vec"},
	{"internal/checkpoint"}, {"internal/dump"},
	{"internal/match"}, {"internal/path"}, {"internal/compare"},
	{"internal/engine"}, // engines write dumps; dump knows no engine
	{"internal/generation"},
	{"internal/program"}, {"internal/replay"}, {"internal/edit"},
	{"internal/judge/piece"}, {"internal/localise"},
	{"internal/diagnose", "internal/weights"}, {"internal/report"}, {"internal/toy"}, {"docs"},
	{"internal/report/*"}, // what the judge does not link: export
	{"internal/judge", "internal/serving"}, {"internal/serving/servingtest"},
	{"internal/store"}, {"golden"}, {"internal/paths"},
	{"internal/fixture"}, {"internal/session"}, {"parity"}, {"testmain"}, {"cmd/*"},
}

// allowed lists all packages of the module that a package may import, where these are fewer than
// those above it in layers.
var allowed = map[string][]string{
	"internal/compare":  {"tensor", "internal/mapfile", "internal/vec"}, // it knows no names
	"internal/match":    {"tensor", "internal/label"},                   // names and shapes, no metrics
	"internal/localise": {"tensor", "internal/label", "internal/vec"},   // it is given metrics
	"internal/checkpoint": {"tensor", "tensor/gguf", "tensor/safetensors", "tensor/torchpt", "internal/label", "internal/mapfile",
		"internal/smallfloat"}, // it knows no runs
	"internal/vec": {"tensor", "internal/mapfile"},
	"tensor":       {"internal/smallfloat"},
	"tensor/*":     {"tensor", "tensor/internal/format", "internal/smallfloat"},
}

const (
	// longest is how many lines a function may have outside of tests.
	longest = 70
	// mostExported is how many functions, methods, types, constants and variables a package may export.
	mostExported = 45
)

// exporting has the numbers of packages that export more. They may fall.
var exporting = map[string]int{"tensor": 87, "internal/compare": 89, "internal/dump": 94, "internal/engine": 80, "internal/fixture": 86,
	"internal/judge": 80, "internal/label": 68, "internal/match": 48, "internal/path": 50, "internal/report": 223, "internal/session": 46}

const module = "github.com/goparity/goparity"

func is(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, dir); return ok })
}

func rank(dir string) int {
	return slices.IndexFunc(layers, func(row []string) bool { return is(row, dir) })
}

// check lists where the packages in folders of root break the rules above, and counts what each
// exports. It reads the files of all platforms, without tests, and does not call go list: so Go's
// test cache knows what the result depends on.
func check(root fs.FS, folders ...string) (wrong []string, exported map[string]int, err error) {
	exported = map[string]int{}
	visit := func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if _, statErr := fs.Stat(root, name+"/go.mod"); err == nil && (statErr == nil || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		wrong = append(wrong, wrongImports(path.Dir(name), file)...)
		for _, d := range file.Decls {
			n := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
			if f, ok := d.(*ast.FuncDecl); ok && n > longest {
				wrong = append(wrong, fmt.Sprintf("%s: %s has %d lines, more than %d", name, f.Name, n, longest))
			}
		}
		exported[path.Dir(name)] += exports(file)
		return nil
	}
	for _, folder := range folders {
		err = errors.Join(err, fs.WalkDir(root, folder, visit))
	}
	for dir, n := range exported {
		if most := max(mostExported, exporting[dir]); n > most {
			wrong = append(wrong, fmt.Sprintf("%s exports %d names, more than %d", dir, n, most))
		}
	}
	return wrong, exported, err
}

func wrongImports(dir string, file *ast.File) (wrong []string) {
	if rank(dir) < 0 {
		return []string{dir + " has no row in layers"}
	}
	for _, i := range file.Imports {
		d, own := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/")
		if own && rank(d) >= rank(dir) {
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which is not above it in layers", dir, d))
		}
		for pattern, may := range allowed {
			if own && is([]string{pattern}, dir) && !slices.Contains(may, d) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, not one of %q", dir, d, may))
			}
		}
	}
	return wrong
}

// exports counts what a file exports. It removes from file what is not exported.
func exports(file *ast.File) (n int) {
	ast.FileExports(file)
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); !ok {
			n++
		} else if g.Tok != token.IMPORT {
			n += len(g.Specs)
		}
	}
	return n
}

func TestTheModule(t *testing.T) {
	wrong, exported, err := check(os.DirFS(".."), "cmd", "docs", "golden", "internal", "parity", "tensor", "testmain")
	require.NoError(t, err)
	assert.Empty(t, wrong)

	// What a user's go.mod gains: each is one more thing that users have to update.
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", module + "/parity"}
	for dir := range exported {
		if !slices.Contains(strings.Split(dir, "/"), "internal") && !strings.HasPrefix(dir, "cmd/") {
			args = append(args, module+"/"+dir)
		}
	}
	out, err := exec.Command("go", args...).Output()
	require.NoError(t, err)
	modules := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
	assert.Equal(t, []string{module, "github.com/spf13/afero", "go.yaml.in/yaml/v3", "golang.org/x/sys", "golang.org/x/text", "gonum.org/v1/gonum"}, modules)
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ dir, source, wrong, reason string }{
		{"internal/compare", `import ("M/tensor"; "M/internal/mapfile"; "cobra.org/x")`, "", "in order"},
		{"internal/edit", `import "M/internal/judge"`, "not above it", "upwards"},
		{"internal/engine", `import "M/internal/engine"`, "not above it", "sideways"},
		{"internal/compare", `import "M/internal/dump"`, "not one of", "compare knows no names, although dump is above it"},
		{"tensor/npy", `import "M/internal/label"`, "not one of", "a pattern"},
		{"internal/new", "", "no row", "a package without a place"},
		{"golden", "func f() {" + strings.Repeat("\n", longest) + "}", "f has 71 lines", "a long function"},
		{"internal/vec", strings.Repeat("func F();", mostExported+1) + "func g()", "exports 46 names", "names"},
	} {
		source := "package x;" + strings.ReplaceAll(c.source, "M/", module+"/")
		wrong, _, err := check(fstest.MapFS{c.dir + "/x_windows.go": {Data: []byte(source)}, c.dir + "/testdata/x.go": {},
			c.dir + "/x_test.go": {}, c.dir + "/other/go.mod": {}, c.dir + "/other/x.go": {}}, c.dir)
		require.NoError(t, err, c.reason)
		if c.wrong == "" {
			assert.Empty(t, wrong, c.reason)
		} else if assert.Len(t, wrong, 1, c.reason) {
			assert.Contains(t, wrong[0], c.wrong, c.reason)
		}
	}
}

var (
	fenced      = regexp.MustCompile("(?ms)^```.*?^```$")
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	punctuation = regexp.MustCompile(`[^\pL\pN _-]`)
)

// lost lists the relative links of pages that lead nowhere.
func lost(root fs.FS, pages ...string) (wrong []string) {
	text, anchors := map[string]string{}, map[string]bool{}
	for _, page := range pages {
		data, _ := fs.ReadFile(root, page)
		text[page] = fenced.ReplaceAllString(string(data), "")
		for _, m := range heading.FindAllStringSubmatch(text[page], -1) {
			name := punctuation.ReplaceAllString(strings.ToLower(m[1]), "")
			anchors[page+"#"+strings.ReplaceAll(name, " ", "-")] = true
		}
	}
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(text[page], -1) {
			file, anchor, anchored := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
			}
			_, err := fs.Stat(root, target)
			if (err != nil || anchored && !anchors[target+"#"+anchor]) && !strings.Contains(file, "://") {
				wrong = append(wrong, fmt.Sprintf("%s: %s", page, m[1]))
			}
		}
	}
	return wrong
}

func TestLinksOfThePages(t *testing.T) {
	root := os.DirFS("..")
	pages, err := fs.Glob(root, "docs/*.md")
	require.NoError(t, err)
	require.Greater(t, len(pages), 10)
	pages = append(pages, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SKILL.md", "internal/exam/README.md",
		"internal/exam/thresholds.md", "internal/bench/README.md", "examples/gallery/README.md")
	assert.Empty(t, lost(root, pages...))
	for _, page := range pages {
		text, err := fs.ReadFile(root, page)
		require.NoError(t, err)
		assert.Contains(t, "\n"+string(text), "\n# ", "%s: a page has a heading, what a command writes over it has none", page)
	}
	assert.Equal(t, []string{"a.md: #nowhere", "a.md: b/y.md#here", "a.md: x.png"}, lost(fstest.MapFS{
		"a.md": {Data: []byte("# A `heading`, here\n[ ](#nowhere) [ ](#a-heading-here) [ ](b/y.md#here) " +
			"[ ](b/y.md#there) [ ](x.png) [ ](https://x.y/z#a)\n```\n[ ](fenced)\n```\n")},
		"b/y.md": {Data: []byte("## There\n```\n# Here\n```\n")},
	}, "a.md", "b/y.md"), "the check must be able to fail")
}
