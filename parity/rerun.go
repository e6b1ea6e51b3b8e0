package parity

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// runPattern gives the -run argument that selects exactly the test of this name: go test splits it at slashes, and matches each part
// as an unanchored regular expression against names in which spaces and unprintable characters were rewritten.
func runPattern(name string) string {
	parts := strings.Split(rewrite(name), "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// rewrite does to a name what package testing does to the names of subtests (testing/match.go).
func rewrite(s string) string {
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

// shellQuote quotes an argument for a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
