// Package subtest names tests as the command line does: their package, their name for -run, and
// what package testing makes of names.
package subtest

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

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

// Quote quotes an argument for a POSIX shell.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
