// Package sanitize makes untrusted text fit for terminals, go test, CI logs and files: what an engine prints, the names
// in its files, its errors. What it returns is for reading only: labels are joined and looked up as they are.
//
// It escapes what is obeyed, and overwrites passwords and tokens. There are two ways to know a secret: it is the value
// of a variable whose name says so, or it has the form of one: a token that begins as those of a known service do, a
// password in a URL, a header, a private key. What a model is made of has neither (hashes, layers, tokens of a
// tokenizer), and stays as it is.
package sanitize

import (
	"regexp"
	"strconv"
	"strings"
)

// Line returns s for one line: line breaks and tabs become spaces, and what does not print (escape
// sequences, marks that turn the direction of writing) becomes its escape, "\x1b". A backslash in
// it keeps others from obeying: workflow commands (::error::, ##vso[…], ##[…], ##teamcity[…]),
// attachments ([[ATTACHMENT|…]]), and results of go test (--- PASS:, === RUN). A secret becomes ***.
func Line(s string) string {
	return neutral(visible(breaks.Replace(Redact(s))))
}

var breaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ")

// Text is Line for text of several lines. It also leaves out the colours of a terminal, which logs
// are full of.
func Text(s string) string {
	s = sequence.ReplaceAllString(strings.ReplaceAll(s, "\r\n", "\n"), "")
	lines := strings.Split(Redact(s), "\n")
	for i, line := range lines {
		line = neutral(visible(line))
		if verdict.MatchString(line) {
			line = `\` + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// Name returns a layer's name for a subtest. package testing makes what does not print visible, and
// nothing of the name stands at the beginning of a line; what is obeyed anywhere gets a backslash.
func Name(s string) string {
	if strings.Contains(s, "##") { // searching for expressions is slow
		s = command.ReplaceAllString(s, `#\$1`)
	}
	if strings.Contains(s, "[[") {
		s = attachment.ReplaceAllString(s, `[\$1`)
	}
	return s
}

// sequence is a control sequence of a terminal (colour, cursor), or a string for it (title, link).
var sequence = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)`)

// visible replaces what does not print by its escape.
func visible(s string) string {
	hidden := func(r rune) bool { return r != '\t' && !strconv.IsPrint(r) }
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

var (
	// What Azure DevOps and TeamCity, Jenkins and GitLab obey wherever it stands in a line.
	command    = regexp.MustCompile(`(?i)#(#[a-z]*\[)`)
	attachment = regexp.MustCompile(`(?i)\[(\[ATTACHMENT\|)`)

	// What GitHub or go test obey at the beginning of a line, after spaces. A text can be broken into lines at any space.
	obeyed = regexp.MustCompile(`(^|[ \t])(::[A-Za-z]|=== [A-Z]|--- [A-Z]+:)`)

	// verdict is a line that go test takes for the result of a package.
	verdict = regexp.MustCompile(`^(PASS|FAIL|SKIP)\s*$|^(ok|FAIL|\?)\s*\t`)
)

func neutral(s string) string {
	s = Name(s)
	if strings.Contains(s, "::") || strings.Contains(s, "=== ") || strings.Contains(s, "--- ") {
		s = obeyed.ReplaceAllString(s, `${1}\${2}`)
	}
	return s
}
