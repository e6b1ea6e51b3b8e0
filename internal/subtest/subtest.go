// Package subtest names tests as the command line does: their package, their name for -run, and
// what package testing makes of names.
package subtest

import (
	"cmp"
	"os"
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

// plain is a word that a POSIX shell takes as it stands.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// CommandKey is the variable that says how the command parity was called, as "uvx goparity".
const CommandKey = "PARITY_COMMAND"

// Command returns words as one types them into a POSIX shell, quoted where that is needed. A first word
// parity is what the user typed in its place.
func Command(words ...string) string {
	var list []string
	for i, w := range words {
		switch {
		case i == 0 && w == "parity":
			w = cmp.Or(os.Getenv(CommandKey), w)
		case !plain.MatchString(w):
			w = Quote(w)
		}
		list = append(list, w)
	}
	return strings.Join(list, " ")
}
