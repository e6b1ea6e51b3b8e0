package archtest_test

import (
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/goparity/goparity"

// pkg has the imports of one package, on all platforms and with all build tags.
type pkg struct {
	imports     []string // of its own files
	testImports []string // of its test files, including external ones
	tests       bool     // it has test files
}

// readModule reads the imports of all packages in folders of root, by their path in it ("tensor/npy"). It
// reads the files, and does not call go list, so that Go's test cache knows what the result depends
// on.
func readModule(root string, folders []string) (map[string]*pkg, error) {
	packages := map[string]*pkg{}
	err := walkModule(root, folders, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(file, "go.mod"))
			if err == nil || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return fs.SkipDir // another module, or no Go packages
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		imports, ignored, err := importsOf(file)
		if err != nil || ignored {
			return err
		}
		relative, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(relative)
		p := packages[dir]
		if p == nil {
			p = &pkg{}
			packages[dir] = p
		}
		if strings.HasSuffix(name, "_test.go") {
			p.tests = true
			p.testImports = append(p.testImports, imports...)
		} else {
			p.imports = append(p.imports, imports...)
		}
		return nil
	})
	return packages, err
}

// folders are those in the module's root that the table of packages names.
func folders() (all []string) {
	for _, row := range line {
		for _, dir := range row {
			if dir, _, _ = strings.Cut(dir, "/"); !slices.Contains(all, dir) {
				all = append(all, dir)
			}
		}
	}
	return all
}

// walkModule visits some folders of the module below root. It lists neither root nor what make
// writes there: Go would run these tests again after every make.
func walkModule(root string, folders []string, visit fs.WalkDirFunc) error {
	for _, dir := range folders {
		if err := filepath.WalkDir(filepath.Join(root, dir), visit); err != nil {
			return err
		}
	}
	return nil
}

// importsOf lists a file's imports. ignored says that the file is a script with the build tag
// "ignore".
func importsOf(file string) (imports []string, ignored bool, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return nil, false, err
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if expr, err := constraint.Parse(c.Text); err == nil && c.Pos() < f.Package {
				ignored = ignored || expr.String() == "ignore"
			}
		}
	}
	for _, i := range f.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, false, err
		}
		imports = append(imports, name)
	}
	return imports, ignored, nil
}

// own returns an import as a path from the module's root. ok is false for packages of other
// modules.
func own(name string) (dir string, ok bool) {
	if name == module {
		return ".", true
	}
	return strings.CutPrefix(name, module+"/")
}

// foreign reports whether an import is of another module: its first element has a dot, unlike those
// of the standard library.
func foreign(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	_, mine := own(name)
	return !mine && strings.Contains(first, ".")
}

// reach returns dir and all packages of the module that it links.
func reach(packages map[string]*pkg, dir string) []string {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(dir string) {
		if seen[dir] || packages[dir] == nil {
			return
		}
		seen[dir] = true
		for _, name := range packages[dir].imports {
			if d, ok := own(name); ok {
				visit(d)
			}
		}
	}
	visit(dir)
	var all []string
	for d := range seen {
		all = append(all, d)
	}
	slices.Sort(all)
	return all
}

// matches reports whether dir is the pattern or, for a pattern that ends in "/*", directly below
// it.
func matches(pattern, dir string) bool {
	ok, _ := path.Match(pattern, dir)
	return ok
}
