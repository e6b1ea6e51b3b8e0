package subtest

import (
	"flag"
	"strings"
)

// Flag returns what a flag of the test binary is set to, such as "test.run"; "" if there is no such flag.
func Flag(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// Narrowed reports whether -run chooses subtests.
func Narrowed() bool { return strings.Contains(Flag("test.run"), "/") }
