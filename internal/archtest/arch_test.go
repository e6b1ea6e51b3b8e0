package archtest_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/goparity/goparity/internal/updateflag"
)

// line lists the packages in the order of the data. A package may import those in the rows above
// its own, but not those in its row or below it.
var line = [][]string{
	{"internal/secret", "internal/mapfile", "internal/smallfloat"},
	{"internal/foreign"},
	{"internal/flock"},
	{"internal/each", "internal/label", "internal/glob", "internal/nearest", "internal/jsonline",
		"internal/subtest", "internal/supervise", "internal/updateflag", "internal/archtest",
		"internal/gpu", "internal/picture", "internal/transformers", "internal/whole", "internal/places", "internal/setting", "internal/seal"},
	{"tensor", "internal/label/module", "internal/vocab"},
	{"tensor/internal/*", "internal/quant"},
	{"tensor/*", "internal/layout", "internal/printlog", "internal/dtype", "internal/mask"},
	{"internal/dequant"},
	{"internal/dump"},
	{"internal/match", "internal/path", "internal/text"},
	{"internal/compare"},
	{"internal/names", "internal/onepass", "internal/coverage"},
	{"internal/engine"}, // engines write dumps; dump knows no engine
	{"internal/wheel"},
	{"internal/structure", "internal/tie"},
	{"internal/generation"},
	{"internal/trace"},
	{"internal/program"},
	{"internal/replay"},
	{"internal/edit"},
	{"internal/search"},
	{"internal/judge/coarse"},
	{"internal/judge/piece"},
	{"internal/localise"},
	{"internal/vec", "internal/checkpoint"},
	{"internal/diagnose", "internal/dequantised", "internal/weights"},
	{"internal/attention"},
	{"internal/diagnose/pattern"},
	{"internal/diagnose/cause"},
	{"internal/report"},
	{"docs"},
	{"internal/report/brief"}, // the page has its next command
	{"internal/report/*"},     // what only the command links: plot, page and junit
	{"internal/judge", "internal/infra", "internal/serving"},
	{"internal/serving/servingtest"},
	{"golden"},
	{"internal/reference"},
	{"internal/paths"},
	{"internal/continuation"},
	{"internal/battery"},
	{"internal/fixture"},
	{"internal/session"},
	{"parity"},
	{"testmain"},
	{"cmd/*"},
}

// walk is the way of one tensor from file to verdict, as docs/architecture.md draws it. It meets
// each package once. internal/judge calls them all.
var walk = []string{"tensor", "internal/dump", "internal/match", "internal/compare", "internal/trace", "internal/program",
	"internal/replay", "internal/judge/piece", "internal/localise", "internal/diagnose", "internal/report"}

// inside are the packages that only those on the walk and judge may import. Later packages ask
// judge.
var inside = []string{"internal/trace", "internal/localise"}

// only lists all packages of the module that a package may import, if they are fewer than those
// above it in line.
var only = map[string][]string{
	"internal/compare": {"tensor", "internal/mapfile", "internal/places"}, // it knows no names
	"internal/layout":  {"tensor"},
	"internal/match": {"tensor", "internal/glob", "internal/label", "internal/label/module", "internal/layout",
		"internal/nearest"}, // names and shapes, no figures
	"internal/structure":  {"internal/compare", "internal/mapfile", "internal/places", "tensor"},
	"internal/tie":        {"internal/compare", "tensor"},
	"internal/generation": {"internal/compare", "internal/each", "internal/mask", "internal/tie", "tensor"}, // it is given logits
	"internal/trace":      {"internal/each", "internal/label", "tensor"},
	"internal/localise":   {"internal/label", "internal/trace"},         // it is given figures
	"internal/onepass":    {"internal/dump", "internal/path", "tensor"}, // shapes alone tell
	// What any hypothesis sees.
	"internal/diagnose":   {"internal/compare", "internal/checkpoint", "internal/label", "internal/trace", "tensor"},
	"internal/dtype":      {"tensor"},
	"internal/mapfile":    {},
	"internal/mask":       {"internal/mapfile", "tensor"},
	"internal/setting":    {},
	"internal/places":     {},
	"internal/smallfloat": {},
	"internal/quant":      {"internal/smallfloat", "tensor"}, // arithmetic of formats
	"internal/dequant":    {"internal/mapfile", "internal/quant", "tensor"},

	"internal/label/module": {"internal/label"},
	"internal/vec":          {"tensor"}, // arithmetic: no names, no causes

	"internal/printlog":  {"tensor"},
	"internal/archtest":  {},
	"tensor":             {"internal/smallfloat"},
	"tensor/gguf":        {"tensor", "tensor/internal/format", "internal/quant"},
	"tensor/maxckpt":     {"tensor", "tensor/internal/format"},
	"tensor/npy":         {"tensor", "tensor/internal/format"},
	"tensor/raw":         {"tensor", "tensor/internal/format"},
	"tensor/safetensors": {"tensor", "tensor/internal/format"},
	"tensor/torchpt":     {"tensor", "tensor/internal/format"},
}

// linked lists the other modules that a user's test binary may link. A user's go.mod gains these
// and this one.
var linked = []string{
	"go.yaml.in/yaml/v3",
	"golang.org/x/sys",
	"gonum.org/v1/gonum",
}

// rank returns the row of a package in line, or −1 if it has none.
func rank(dir string) int {
	return slices.IndexFunc(line, func(row []string) bool {
		return slices.ContainsFunc(row, func(pattern string) bool { return matches(pattern, dir) })
	})
}

// wrongImports lists the imports that line or only forbids.
func wrongImports(packages map[string]*pkg) []string {
	var wrong []string
	for dir, p := range packages {
		if rank(dir) < 0 {
			wrong = append(wrong, fmt.Sprintf("%s has no place: give it one in the table of internal/archtest", dir))
			continue
		}
		for _, name := range p.imports {
			d, ok := own(name)
			if !ok {
				continue
			}
			if rank(d) < 0 {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which has no place: give it one in the table of internal/archtest", dir, d))
			} else if rank(d) >= rank(dir) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which is not below it", dir, d))
			} else if allowed, limited := only[dir]; limited && !slices.Contains(allowed, d) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: it may import only %q", dir, d, allowed))
			}
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

// wrongLinks lists the imports by which a test binary that uses dir would link a module that is not
// in linked.
func wrongLinks(packages map[string]*pkg, dir string) []string {
	var wrong []string
	for _, d := range reach(packages, dir) {
		for _, name := range packages[d].imports {
			inside := func(m string) bool { return name == m || strings.HasPrefix(name, m+"/") }
			if foreign(name) && !slices.ContainsFunc(linked, inside) {
				wrong = append(wrong, fmt.Sprintf("%s links %s through %s", dir, name, d))
			}
			if name == module+"/internal/updateflag" || name == "testing" && d != "parity" && d != "testmain" {
				wrong = append(wrong, fmt.Sprintf("%s links %s through %s: that is for test files", dir, name, d))
			}
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

// withoutUpdateFlag lists the packages whose test binaries do not know -update.
func withoutUpdateFlag(packages map[string]*pkg) []string {
	var wrong []string
	for dir, p := range packages {
		knows := slices.Contains(p.testImports, module+"/internal/updateflag") ||
			slices.Contains(p.testImports, module+"/testmain") ||
			dir == "internal/updateflag" || dir == "testmain"
		if p.tests && !knows {
			wrong = append(wrong, dir)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// public lists the packages that users may import.
func public(packages map[string]*pkg) []string {
	var dirs []string
	for dir := range packages {
		elements := strings.Split(dir, "/")
		if !slices.Contains(elements, "internal") && elements[0] != "cmd" {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

func readThis(t *testing.T) map[string]*pkg {
	t.Helper()
	packages, err := readModule(filepath.Join("..", ".."), folders())
	require.NoError(t, err)
	for _, dir := range []string{"parity", "testmain", "golden", "internal/compare", "tensor", "internal/report",
		"internal/archtest"} {
		require.Contains(t, packages, dir, "the module was not read")
	}
	return packages
}

func TestImportsFollowTheLine(t *testing.T) {
	assert.Empty(t, wrongImports(readThis(t)))
}

// strayed lists what leaves the walk: a package that does not follow the one before it in line,
// that judge does not use, or that a later package uses without judge.
func strayed(packages map[string]*pkg) []string {
	var wrong []string
	uses := func(dir, of string) bool { return slices.Contains(packages[dir].imports, module+"/"+of) }
	for i, dir := range walk {
		if i > 0 && rank(dir) <= rank(walk[i-1]) {
			wrong = append(wrong, fmt.Sprintf("%s does not follow %s in the line", dir, walk[i-1]))
		}
		if !uses("internal/judge", dir) {
			wrong = append(wrong, fmt.Sprintf("internal/judge does not use %s", dir))
		}
	}
	for _, dir := range inside {
		for other := range packages {
			onWalk := slices.ContainsFunc(walk, func(w string) bool {
				return other == w || strings.HasPrefix(other, w+"/")
			})
			if uses(other, dir) && other != "internal/judge" && !onWalk {
				wrong = append(wrong, fmt.Sprintf("%s uses %s: ask internal/judge", other, dir))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

func TestATensorMeetsEachPackageOnce(t *testing.T) {
	assert.Empty(t, strayed(readThis(t)))
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	require.NoError(t, err)
	var names []string
	for _, dir := range walk {
		names = append(names, path.Base(dir))
	}
	assert.Contains(t, string(page), "\n"+strings.Join(names, " → ")+"\n", "the walk as the page draws it")
	all := &pkg{}
	for _, dir := range walk[1:] {
		all.imports = append(all.imports, module+"/"+dir)
	}
	assert.Equal(t, []string{"internal/judge does not use tensor", "parity uses internal/trace: ask internal/judge"},
		strayed(map[string]*pkg{"internal/judge": all, "parity": {imports: []string{module + "/internal/trace"}}}),
		"the check must be able to fail")
}

func TestWhatAUserLinks(t *testing.T) {
	packages := readThis(t)
	for _, dir := range public(packages) {
		assert.Empty(t, wrongLinks(packages, dir))
	}
}

func TestEveryTestPackageKnowsUpdate(t *testing.T) {
	assert.Empty(t, withoutUpdateFlag(readThis(t)),
		"import _ %q in one test file of each: go test ./... -update fails if the flag is not known",
		module+"/internal/updateflag")
}

// The checks must be able to fail.
func TestTheChecksFindWhatIsWrong(t *testing.T) {
	of := func(names ...string) *pkg {
		p := &pkg{}
		for _, name := range names {
			if !strings.Contains(name, ".") && name != "testing" {
				name = module + "/" + name
			}
			p.imports = append(p.imports, name)
		}
		return p
	}
	for _, c := range []struct {
		packages      map[string]*pkg
		imports, link int
		reason        string
	}{
		{map[string]*pkg{"internal/compare": of("tensor", "internal/mapfile"), "parity": of("internal/session", "testing")}, 0,
			0, "all in order"},
		{map[string]*pkg{"tensor": of("internal/compare")}, 1, 0, "upwards"},
		{map[string]*pkg{"tensor/npy": of("tensor/safetensors")}, 1, 0, "sideways"},
		{map[string]*pkg{"internal/compare": of("internal/dump")}, 1, 0, "compare knows no names, although names are below it"},
		{map[string]*pkg{"internal/dump": of("internal/engine")}, 1, 0, "dump knows no engine"},
		{map[string]*pkg{"internal/new": of()}, 1, 0, "a package without a place"},
		{map[string]*pkg{"parity": of("internal/session"), "internal/session": of("github.com/spf13/cobra")}, 0, 1,
			"only the command may link it, also indirectly"},
		{map[string]*pkg{"parity": of("github.com/stretchr/testify/require")}, 0, 1, "testify is for our own tests"},
		{map[string]*pkg{"parity": of("gonum.org/v1/plot")}, 0, 1, "gonum/plot is another module than gonum"},
		{map[string]*pkg{"parity": of("gonum.org/v1/gonum/mat", "go.yaml.in/yaml/v3")}, 0, 0, "these may be linked"},
		{map[string]*pkg{"parity": of("internal/session"), "internal/session": of("internal/updateflag")}, 0, 1,
			"a flag for test files"},
		{map[string]*pkg{"parity": of("tensor"), "cmd/parity": of("github.com/spf13/cobra", "parity")}, 0, 0,
			"the command may link it"},
	} {
		assert.Len(t, wrongImports(c.packages), c.imports, c.reason)
		assert.Len(t, wrongLinks(c.packages, "parity"), c.link, c.reason)
	}
	flags := map[string]*pkg{
		"a": {tests: true}, "b": {tests: true, testImports: []string{module + "/internal/updateflag"}},
		"c": {}, "d": {tests: true, testImports: []string{module + "/testmain"}},
	}
	assert.Equal(t, []string{"a"}, withoutUpdateFlag(flags))
}

func TestReadModule(t *testing.T) {
	packages, err := readModule(filepath.Join("testdata", "module"), []string{"a", "other", ".hidden"})
	require.NoError(t, err)
	assert.Equal(t, map[string]*pkg{
		"a":   {tests: true, testImports: []string{"testing", "io"}},
		"a/b": {imports: []string{"os", "syscall"}},
	}, packages, "all platforms, tests of both kinds; no other module, testdata, hidden folder or script")
}
