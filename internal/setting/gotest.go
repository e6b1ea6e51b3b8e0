package setting

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode"
)

// TestFlag returns what a flag of the test binary is set to, such as "test.run"; "" if there is no such flag.
func TestFlag(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// Narrowed reports whether -run chooses subtests.
func Narrowed() bool { return strings.Contains(TestFlag("test.run"), "/") }

// Name returns what package testing makes of a subtest's name (testing/match.go): white space
// becomes _, and unprintable characters are quoted.
func Name(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte('_')
		case !strconv.IsPrint(r):
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Pattern returns the -run argument that selects exactly the test with this full name. go test
// splits it at slashes, and matches each part as an unanchored regular expression.
func Pattern(name string) string {
	parts := strings.Split(Name(name), "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// quote quotes an argument for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// plain is a word that a POSIX shell takes as it stands.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// commandKey is the variable that says how the command parity was called, as "uvx goparity".
const commandKey = "PARITY_COMMAND"

// Command returns words as one types them into a POSIX shell, quoted where that is needed. A first word
// parity is what the user typed in its place.
func Command(words ...string) string {
	var list []string
	for i, w := range words {
		switch {
		case i == 0 && w == "parity":
			w = cmp.Or(os.Getenv(commandKey), w)
		case !plain.MatchString(w):
			w = quote(w)
		}
		list = append(list, w)
	}
	return strings.Join(list, " ")
}

// Package returns the argument of go test for the package under test: its folder relative to the
// module's root, where people run go test.
func Package() string {
	if _, rel, ok := above("go.mod"); ok && rel != "." {
		return "./" + rel
	}
	return "."
}

// Place returns the root of the workspace, or else of the module, of the package under test, and
// the package's folder relative to it, "." in the root itself. No other package that the same
// command tests has that folder. Without a go.mod the root is the working folder.
func Place() (root, folder string) {
	files := []string{"go.work", "go.mod"}
	if os.Getenv("GOWORK") == "off" {
		files = files[1:]
	}
	for _, file := range files {
		if root, folder, ok := above(file); ok {
			return root, folder
		}
	}
	return ".", "."
}

// ImportPath returns the import path of the package under test, "" if the binary does not say.
func ImportPath() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	path, isTest := strings.CutSuffix(info.Path, ".test")
	if !isTest {
		return ""
	}
	return path
}

// Tags returns the build tags of this binary, comma-separated.
func Tags() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				return s.Value
			}
		}
	}
	return ""
}

// above finds the nearest folder that holds a file, from the working folder upwards, and what is
// below it.
func above(file string) (root, rel string, ok bool) {
	wd, err := os.Getwd()
	if err != nil {
		return "", "", false
	}
	for root = wd; ; {
		if _, err := os.Stat(filepath.Join(root, file)); err == nil {
			rel, err := filepath.Rel(root, wd)
			return root, filepath.ToSlash(rel), err == nil
		}
		up := filepath.Dir(root)
		if up == root {
			return "", "", false
		}
		root = up
	}
}
