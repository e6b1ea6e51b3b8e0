package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goparity/goparity/internal/sanitize"
)

// Clean makes a string from a dump fit to print on one line, see [sanitize.Line].
func Clean(s string) string { return sanitize.Line(s) }

// num writes a figure with three digits: "1.4e-6", "0.998", "inf".
func num(f Float) string {
	v := float64(f)
	s := strconv.FormatFloat(v, 'g', 3, 64)
	if v != 0 && math.Abs(v) < 1e-3 {
		s = strconv.FormatFloat(v, 'e', 2, 64)
	}
	mantissa, exponent, ok := strings.Cut(s, "e")
	if !ok {
		return strings.TrimPrefix(strings.ReplaceAll(s, "Inf", "inf"), "+")
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	e, _ := strconv.Atoi(exponent)
	return mantissa + "e" + strconv.Itoa(e)
}

// sentence makes a sentence of a clause, as verdicts and causes are written: with a capital, unless
// it begins with one of names or with what is written like the name of a layer or a number, and
// with a full stop. Empty stays empty.
func sentence(clause string, names ...string) string {
	if clause == "" {
		return ""
	}
	word, _, _ := strings.Cut(clause, " ")
	word = strings.TrimRight(word, ",:;")
	if !slices.Contains(names, word) && !strings.ContainsAny(word, "._/0123456789") {
		first, size := utf8.DecodeRuneInString(clause)
		clause = string(unicode.ToUpper(first)) + clause[size:]
	}
	if !strings.ContainsAny(clause[len(clause)-1:], ".!?") {
		clause += "."
	}
	return clause
}

// few joins the first n of some names.
func few(names []string, n int) string {
	text := strings.Join(names[:n], ", ")
	if n < len(names) {
		text += fmt.Sprintf(", … and %d more", len(names)-n)
	}
	return text
}

// count writes "1 layer", "2 layers", "2 passes".
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// are is the verb of so many things.
func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// width is the number of columns of s, at one column a rune.
func width(s string) int { return utf8.RuneCountInString(s) }

// wrap breaks s at spaces into lines of at most n columns. A longer word has a line of its own.
func wrap(s string, n int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(s) {
		switch line := &lines[len(lines)-1]; {
		case *line == "":
			*line = word
		case width(*line)+1+width(word) > n:
			lines = append(lines, word)
		default:
			*line += " " + word
		}
	}
	return lines
}

// joined joins what is not empty.
func joined(sep string, parts ...string) string { return strings.Join(filled(parts), sep) }

// filled are the texts that are not empty.
func filled(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
}

// once are the texts, each where it stands first.
func once(texts []string) (out []string) {
	for _, t := range texts {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}
