package archtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/updateflag"
)

// surface collects what packages export, a line each, and which of it shows types of internal
// packages, which a user could neither name nor find documented.
type surface struct {
	pkg      string
	imports  map[string]string // of the current file, by their names in it
	lines    []string
	internal []string
}

func surfaceOf(pkg string, files ...*ast.File) *surface {
	s := &surface{pkg: pkg}
	for _, f := range files {
		s.imports = map[string]string{}
		for _, i := range f.Imports {
			file, _ := strconv.Unquote(i.Path.Value)
			name := path.Base(file)
			if i.Name != nil {
				name = i.Name.Name
			}
			s.imports[name] = file
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				s.function(d)
			case *ast.GenDecl:
				s.declaration(d)
			}
		}
	}
	slices.Sort(s.lines)
	s.lines = slices.Compact(s.lines) // names that each platform declares
	return s
}

// add adds a line. shows has the expressions in it that may name types.
func (s *surface) add(line string, shows ...ast.Node) {
	line = s.pkg + ": " + line
	s.lines = append(s.lines, line)
	for _, n := range shows {
		ast.Inspect(n, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && strings.Contains(s.imports[x.Name], "/internal/") {
					s.internal = append(s.internal, line)
				}
			}
			return true
		})
	}
}

func (s *surface) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	what := "func "
	if d.Recv != nil {
		of := d.Recv.List[0].Type
		if !ast.IsExported(strings.TrimLeft(types.ExprString(of), "*")) {
			return
		}
		what = "method (" + types.ExprString(of) + ") "
	}
	s.add(what+d.Name.Name+signature(d.Type), d.Type)
}

func (s *surface) declaration(d *ast.GenDecl) {
	var inherited ast.Expr // the type of the previous constant
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				s.typ(spec)
			}
		case *ast.ValueSpec:
			if spec.Type != nil || spec.Values != nil {
				inherited = spec.Type
			}
			s.values(d.Tok.String(), spec, inherited)
		}
	}
}

func (s *surface) values(kind string, spec *ast.ValueSpec, typ ast.Expr) {
	for i, name := range spec.Names {
		if !name.IsExported() {
			continue
		}
		line := kind + " " + name.Name
		switch {
		case typ != nil:
			s.add(line+" "+typeString(typ), typ)
		case kind == "const" && i < len(spec.Values):
			s.add(line + " = " + types.ExprString(spec.Values[i]))
		default:
			s.add(line)
		}
	}
}

func (s *surface) typ(spec *ast.TypeSpec) {
	name := spec.Name.Name
	line := "type " + name + typeParams(spec.TypeParams)
	if spec.Assign.IsValid() {
		s.add(line+" = "+types.ExprString(spec.Type), spec.Type)
		return
	}
	switch t := spec.Type.(type) {
	case *ast.StructType:
		s.add(line + " struct")
		s.members(name, "field", t.Fields)
	case *ast.InterfaceType:
		s.add(line + " interface")
		s.members(name, "method", t.Methods)
	default:
		s.add(line+" "+typeString(t), t)
	}
}

// members lists the fields of a struct or the methods of an interface. Of names that are not
// exported it mentions only methods of an interface, since no one else can implement that.
func (s *surface) members(of, kind string, list *ast.FieldList) {
	for _, f := range list.List {
		if len(f.Names) == 0 && ast.IsExported(baseName(f.Type)) {
			s.add(fmt.Sprintf("embeds %s.%s", of, types.ExprString(f.Type)), f.Type)
		}
		for _, name := range f.Names {
			method, isMethod := f.Type.(*ast.FuncType)
			switch {
			case kind == "method" && !name.IsExported():
				s.add(fmt.Sprintf("method (%s) is not exported", of))
			case kind == "method" && isMethod:
				s.add(fmt.Sprintf("method (%s) %s%s", of, name.Name, signature(method)), method)
			case name.IsExported():
				s.add(fmt.Sprintf("field %s.%s %s", of, name.Name, typeString(f.Type)), f.Type)
			}
		}
	}
}

// baseName returns the type's name without its package and star.
func baseName(t ast.Expr) string {
	name := strings.TrimLeft(types.ExprString(t), "*")
	return name[strings.LastIndexByte(name, '.')+1:]
}

// signature formats the types of parameters and results. Their names are not part of the surface.
func signature(t *ast.FuncType) string {
	plain := *t
	plain.TypeParams = nil
	return typeParams(t.TypeParams) + strings.TrimPrefix(typeString(&plain), "func")
}

// typeString formats a type on one line, without the names of parameters.
func typeString(t ast.Expr) string {
	ast.Inspect(t, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncType); ok {
			unname(f.Params)
			unname(f.Results)
		}
		return true
	})
	return types.ExprString(t)
}

func unname(list *ast.FieldList) {
	if list == nil {
		return
	}
	var fields []*ast.Field
	for _, f := range list.List {
		for range max(len(f.Names), 1) {
			fields = append(fields, &ast.Field{Type: f.Type})
		}
	}
	list.List = fields
}

func typeParams(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var all []string
	for _, f := range list.List {
		for _, name := range f.Names {
			all = append(all, name.Name+" "+types.ExprString(f.Type))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// publicSurface reads all packages that a user can import.
func publicSurface(t *testing.T) (lines, internal []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	for dir := range readThis(t) {
		if slices.Contains(strings.Split(dir, "/"), "internal") || strings.HasPrefix(dir, "cmd/") {
			continue
		}
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		require.NoError(t, err)
		var files []*ast.File
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			if f.Name.Name != "main" {
				files = append(files, f)
			}
		}
		s := surfaceOf(dir, files...)
		lines, internal = append(lines, s.lines...), append(internal, s.internal...)
	}
	slices.Sort(lines)
	slices.Sort(internal)
	return lines, slices.Compact(internal)
}

// surfaceFile has what users rely on. When it changes, they may have to change their code.
const surfaceFile = "testdata/surface.txt"

func TestSurface(t *testing.T) {
	lines, _ := publicSurface(t)
	if updateflag.Set() {
		require.NoError(t, os.WriteFile(surfaceFile, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	data, err := os.ReadFile(surfaceFile)
	require.NoError(t, err)
	kept := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(data), "\r", "")), "\n")
	var diff []string
	for _, l := range kept {
		if !slices.Contains(lines, l) {
			diff = append(diff, "- "+l)
		}
	}
	for _, l := range lines {
		if !slices.Contains(kept, l) {
			diff = append(diff, "+ "+l)
		}
	}
	assert.Empty(t, diff,
		"the exported surface changed:\n%s\nif that is meant: go test ./internal/archtest -update, "+
			"and a line in CHANGELOG.md", strings.Join(diff, "\n"))
}

func TestPublicPackagesHaveRealTypes(t *testing.T) {
	_, internal := publicSurface(t)
	assert.Empty(t, internal, "what a public package shows must be documented there: declare the type in it")
}

func TestSurfaceOf(t *testing.T) {
	const source = `package p

import (
	"io"

	hidden "example.com/m/internal/x"
)

const Rank, small = 64, 1

type Kind uint8

const (
	A Kind = iota
	B
	c
)

var Err, Other error
var Made = 1

type S[T any] struct {
	io.Reader
	*Kind
	Name, Text string
	In func(name string, n, m int) (err error)
	hidden.Y
	private int
}

type Sealed interface {
	M(a, b int) error
	private()
}

type Alias = hidden.X
type own struct{ Field int }

func (own) Method()                              {}
func (s *S[T]) Method(x T) (y hidden.Z, ok bool) { return }
func F[T ~int | string](f func(a, b T) error, more ...T) {}
func private()                                   {}
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	s := surfaceOf("p", f, f)
	assert.Equal(t, []string{
		"p: const A Kind",
		"p: const B Kind",
		"p: const Rank = 64",
		"p: embeds S.*Kind",
		"p: embeds S.hidden.Y",
		"p: embeds S.io.Reader",
		"p: field S.In func(string, int, int) error",
		"p: field S.Name string",
		"p: field S.Text string",
		"p: func F[T ~int | string](func(T, T) error, ...T)",
		"p: method (*S[T]) Method(T) (hidden.Z, bool)",
		"p: method (Sealed) M(int, int) error",
		"p: method (Sealed) is not exported",
		"p: type Alias = hidden.X",
		"p: type Kind uint8",
		"p: type S[T any] struct",
		"p: type Sealed interface",
		"p: var Err error",
		"p: var Made",
		"p: var Other error",
	}, s.lines)
	assert.Equal(t, []string{"p: embeds S.hidden.Y", "p: type Alias = hidden.X",
		"p: method (*S[T]) Method(T) (hidden.Z, bool)"}, s.internal[:3])
}
