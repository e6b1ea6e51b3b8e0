// Package scripttest has what the scripts of cmd/parity and of parity share.
package scripttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Replace changes a text in a file: replace FILE OLD NEW
func Replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("replace: %s has no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], args[2])), 0o644))
}

// UserModule are a user's go.mod and go.sum. They need nothing that this module, whose root is
// given, does not: so they work without a network.
func UserModule(root string) (gomod, sums []byte, err error) {
	gomod = fmt.Appendf(nil, "module example.com/user\n\ngo 1.26.0\n\nrequire github.com/goparity/goparity v0.0.0\n\n"+
		"replace github.com/goparity/goparity => %s\n", filepath.ToSlash(root))
	sums, err = os.ReadFile(filepath.Join(root, "go.sum"))
	return gomod, sums, err
}
