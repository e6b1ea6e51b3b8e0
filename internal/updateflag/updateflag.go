// Package updateflag makes a test binary know the flag -update.
//
// go test ./... -update hands the flag to every test binary, and one that does not know it fails.
// So every test package of this module imports this one (blank, or to renew its own expected
// files). It is for test files only: nothing that a user links imports it.
package updateflag

import "flag"

func init() {
	if flag.Lookup("update") == nil {
		flag.Bool("update", false, "renew the expected files of this package")
	}
}

// Set reports whether the test was called with -update. It is false before the flags are parsed.
func Set() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}
