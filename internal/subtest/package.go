package subtest

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

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
