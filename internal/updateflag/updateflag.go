// Package updateflag registers the flag -update in a test binary.
//
// go test ./... -update passes the flag to every test binary, and one that does not know it fails.
// So every test package of this module imports this one (blank, or to update its own expected
// files). It is for test files only: nothing that a user links imports it.
package updateflag

import "flag"

func init() {
	if flag.Lookup("update") == nil {
		flag.Bool("update", false, "update the expected files of this package")
	}
}

// Set reports whether the test was called with -update. It is false before the flags are parsed.
func Set() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}
