package glob

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of one pattern, far above what the names of layers need, because the alternatives of {a,b}
// groups multiply.
const (
	maxLen          = 400
	maxAlternatives = 100
)

// Pattern is a compiled pattern.
type Pattern struct {
	text        string
	expr        string // what Whole returns
	whole, tail *regexp.Regexp
	specificity int
}

// Compile reads a pattern. The error says what is wrong and at which character, counted from 1.
func Compile(pattern string) (*Pattern, error) {
	if pattern == "" {
		return nil, fmt.Errorf("glob: the pattern is empty")
	}
	if len(pattern) > maxLen {
		return nil, fmt.Errorf("glob: the pattern has %d bytes, at most %d are read", len(pattern), maxLen)
	}
	if !utf8.ValidString(pattern) {
		return nil, fmt.Errorf("glob: %q is not UTF-8", pattern)
	}
	tokens, err := scan(pattern)
	if err != nil {
		return nil, fmt.Errorf("glob: %q: %w", pattern, err)
	}
	alternatives, err := expand(tokens)
	if err != nil {
		return nil, fmt.Errorf("glob: %q: %w", pattern, err)
	}
	p := &Pattern{text: pattern, specificity: -1}
	exprs := make([]string, len(alternatives))
	for i, alt := range alternatives {
		expr, specificity, err := translate(alt)
		if err != nil {
			return nil, fmt.Errorf("glob: %q: %w", pattern, err)
		}
		exprs[i] = expr
		if p.specificity < 0 || specificity < p.specificity {
			p.specificity = specificity
		}
	}
	p.expr = "(?:" + strings.Join(exprs, "|") + ")"
	if p.whole, err = regexp.Compile("^" + p.Whole() + "$"); err != nil {
		return nil, fmt.Errorf("glob: %q: %w", pattern, err)
	}
	if p.tail, err = regexp.Compile("^" + p.Tail() + "$"); err != nil {
		return nil, fmt.Errorf("glob: %q: %w", pattern, err)
	}
	return p, nil
}

// Tail returns the regular expression of [Pattern.Match], and Whole that of [Pattern.MatchWhole],
// for programs in other languages. They have no anchors, because these differ between languages:
// the whole name must match (fullmatch in Python).
func (p *Pattern) Tail() string { return `(?:[^.]*\.)*` + p.expr }

// Whole returns the regular expression of [Pattern.MatchWhole], see [Pattern.Tail].
func (p *Pattern) Whole() string { return p.expr }

// String returns the pattern as written.
func (p *Pattern) String() string { return p.text }

// Match reports whether the pattern matches the name or its end at a dot.
func (p *Pattern) Match(name string) bool { return p.tail.MatchString(name) }

// MatchWhole reports whether the pattern matches the whole name. Where one layer is meant, such a
// match is preferred to a match of the end: "model" is then not "model.model".
func (p *Pattern) MatchWhole(name string) bool { return p.whole.MatchString(name) }

// Specificity orders patterns that match the same name. A character that stands for itself counts
// most, then [..], then ?. Of {a,b} the least specific alternative counts.
func (p *Pattern) Specificity() int { return p.specificity }

// Quote returns a pattern that matches a name and nothing else but what ends with it at a dot.
func Quote(name string) string { return special.Replace(name) }

var special = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`, `\`, `\\`)

// Weights of Specificity.
const (
	literalWeight = 16
	classWeight   = 4
	anyWeight     = 2
)

type kind uint8

const (
	literal    kind = iota // one character, in text
	dot                    // between segments
	star                   // *
	doubleStar             // **
	question               // ?
	class                  // [..], in text as a regular expression
	open                   // {
	comma                  // , inside of { }
	closing                // }
)

type token struct {
	kind kind
	text string
	at   int // character, from 1
}

// scan cuts a pattern into tokens and checks that groups are closed.
func scan(pattern string) ([]token, error) {
	var tokens []token
	var opened []int
	runes := []rune(pattern)
	for i := 0; i < len(runes); i++ {
		t := token{at: i + 1}
		switch c := runes[i]; c {
		case '.':
			t.kind = dot
		case '?':
			t.kind = question
		case '*':
			t.kind = star
			if i+1 < len(runes) && runes[i+1] == '*' {
				t.kind = doubleStar
				i++
			}
		case '[':
			text, n, err := scanClass(runes[i:])
			if err != nil {
				return nil, fmt.Errorf("character %d: %w", i+1, err)
			}
			t.kind, t.text = class, text
			i += n - 1
		case '{':
			t.kind = open
			opened = append(opened, i+1)
		case '}':
			if len(opened) == 0 {
				return nil, fmt.Errorf("character %d: } without {", i+1)
			}
			t.kind = closing
			opened = opened[:len(opened)-1]
		case ',':
			t.kind, t.text = literal, ","
			if len(opened) > 0 {
				t.kind = comma
			}
		case '\\':
			i++
			if i == len(runes) {
				return nil, fmt.Errorf(`character %d: nothing follows \`, i)
			}
			t.text = string(runes[i])
		default:
			t.text = string(c)
		}
		tokens = append(tokens, t)
	}
	if len(opened) > 0 {
		return nil, fmt.Errorf("character %d: { is not closed", opened[len(opened)-1])
	}
	return tokens, nil
}

// scanClass reads [..] at the start of runes. It returns a regular expression and the number of
// characters read.
func scanClass(runes []rune) (expr string, n int, err error) {
	i := 1
	negated := i < len(runes) && (runes[i] == '!' || runes[i] == '^')
	if negated {
		i++
	}
	var b strings.Builder
	one := func() (rune, bool) {
		if i < len(runes) && runes[i] == '\\' {
			i++
		}
		if i >= len(runes) {
			return 0, false
		}
		i++
		return runes[i-1], true
	}
	for first := true; i < len(runes) && (first || runes[i] != ']'); first = false {
		lo, ok := one()
		if !ok {
			break
		}
		hi := lo
		if i+1 < len(runes) && runes[i] == '-' && runes[i+1] != ']' {
			i++
			if hi, ok = one(); !ok {
				break
			}
		}
		if hi < lo {
			return "", 0, fmt.Errorf("the range %c-%c runs backwards", lo, hi)
		}
		// A dot separates segments and is in no set.
		for _, r := range [][2]rune{{lo, min(hi, '.'-1)}, {max(lo, '.'+1), hi}} {
			if r[0] <= r[1] {
				b.WriteString(member(r[0]) + "-" + member(r[1]))
			}
		}
	}
	if i >= len(runes) {
		return "", 0, fmt.Errorf("[ is not closed")
	}
	switch {
	case negated:
		return `[^.` + b.String() + `]`, i + 1, nil
	case b.Len() == 0:
		return "", 0, fmt.Errorf("the set holds only a dot, which separates segments")
	default:
		return "[" + b.String() + "]", i + 1, nil
	}
}

// member returns a character of a set as a regular expression: the character, after a backslash if
// it is punctuation. Every language reads that alike.
func member(r rune) string {
	if r < utf8.RuneSelf && (unicode.IsPunct(r) || unicode.IsSymbol(r)) {
		return `\` + string(r)
	}
	return string(r)
}

// expand expands groups: a{b,c} becomes ab and ac.
func expand(tokens []token) ([][]token, error) {
	start := -1
	for i, t := range tokens {
		if t.kind == open {
			start = i
			break
		}
	}
	if start < 0 {
		return [][]token{tokens}, nil
	}
	// The parts between the commas of this group, and its end.
	depth, end, from := 0, start, start+1
	var parts [][]token
	for i := start; i < len(tokens) && end == start; i++ {
		switch tokens[i].kind {
		case open:
			depth++
		case comma:
			if depth == 1 {
				parts = append(parts, tokens[from:i])
				from = i + 1
			}
		case closing:
			if depth--; depth == 0 {
				parts = append(parts, tokens[from:i])
				end = i
			}
		}
	}
	var out [][]token
	for _, part := range parts {
		one := append(append(append([]token{}, tokens[:start]...), part...), tokens[end+1:]...)
		more, err := expand(one)
		if err != nil {
			return nil, err
		}
		if out = append(out, more...); len(out) > maxAlternatives {
			return nil, fmt.Errorf("character %d: the { } groups give more than %d alternatives",
				tokens[start].at, maxAlternatives)
		}
	}
	return out, nil
}

// translate returns the regular expression of a pattern without groups.
func translate(tokens []token) (expr string, specificity int, err error) {
	var segments [][]token
	from := 0
	for i := 0; i <= len(tokens); i++ {
		if i == len(tokens) || tokens[i].kind == dot {
			if from == i {
				return "", 0, fmt.Errorf("an empty segment: names have no two dots in a row, " +
					"and none at the beginning or end")
			}
			segments = append(segments, tokens[from:i])
			from = i + 1
		}
	}
	var b strings.Builder
	sep := false // whether a dot goes before the next segment
	for i, s := range segments {
		if s[0].kind == doubleStar && len(s) == 1 {
			// Zero or more segments, each with the dot that separates it from the preceding ones.
			switch last := i == len(segments)-1; {
			case sep:
				b.WriteString(`(?:\.[^.]+)*`)
			case last:
				b.WriteString(`[^.]+(?:\.[^.]+)*`)
			default:
				b.WriteString(`(?:[^.]+\.)*`)
			}
			continue
		}
		if sep {
			b.WriteString(`\.`)
			specificity += literalWeight
		}
		sep = true
		if len(s) == 1 && s[0].kind == star {
			b.WriteString(`[^.]+`)
			continue
		}
		for _, t := range s {
			switch t.kind {
			case literal:
				b.WriteString(regexp.QuoteMeta(t.text))
				specificity += literalWeight
			case class:
				b.WriteString(t.text)
				specificity += classWeight
			case question:
				b.WriteString(`[^.]`)
				specificity += anyWeight
			case star:
				b.WriteString(`[^.]*`)
			case doubleStar:
				return "",
					0, fmt.Errorf("character %d: ** stands for whole segments: write it alone between dots, or *",
						t.at)
			}
		}
	}
	return b.String(), specificity, nil
}
