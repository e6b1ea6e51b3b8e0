package glob

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
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
	switch {
	case pattern == "":
		return nil, fmt.Errorf("glob: the pattern is empty")
	case len(pattern) > maxLen:
		return nil, fmt.Errorf("glob: the pattern has %d bytes, at most %d are read", len(pattern), maxLen)
	case !utf8.ValidString(pattern):
		return nil, fmt.Errorf("glob: %q is not UTF-8", pattern)
	}
	p := &Pattern{text: pattern, specificity: math.MaxInt}
	if err := p.compile(); err != nil {
		return nil, fmt.Errorf("glob: %q: %w", pattern, err)
	}
	return p, nil
}

func (p *Pattern) compile() error {
	tokens, err := scan(p.text)
	if err != nil {
		return err
	}
	alternatives, err := expand(tokens)
	if err != nil {
		return err
	}
	exprs := make([]string, len(alternatives))
	for i, alt := range alternatives {
		weight := 0
		if exprs[i], weight, err = translate(alt); err != nil {
			return err
		}
		p.specificity = min(p.specificity, weight)
	}
	p.expr = "(?:" + strings.Join(exprs, "|") + ")"
	if p.whole, err = regexp.Compile("^" + p.Whole() + "$"); err != nil {
		return err
	}
	p.tail, err = regexp.Compile("^" + p.Tail() + "$")
	return err
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
	atom       kind = iota // a part of a segment
	dot                    // between segments
	doubleStar             // **
	open                   // {
	comma                  // , inside of { }
	closing                // }
)

type token struct {
	kind   kind
	expr   string // the regular expression of an atom
	weight int
	at     int // character, from 1
}

const star = `[^.]*` // the atom of *

// piece is what becomes one token: an escaped character, **, a set, or any other character.
var piece = regexp.MustCompile(`(?s)\\.|\*\*|\[(?:[!^](?:\\.|[^\\])|\\.|[^\\!^])(?:\\.|[^\\\]])*\]|.`)

// scan cuts a pattern into tokens and checks that groups are closed.
func scan(pattern string) (tokens []token, err error) {
	var opened []int
	at := 1
	for _, text := range piece.FindAllString(pattern, -1) {
		t := token{expr: regexp.QuoteMeta(strings.TrimPrefix(text, `\`)), weight: literalWeight, at: at}
		switch text {
		case ".":
			t.kind = dot
		case "?":
			t.expr, t.weight = `[^.]`, anyWeight
		case "*":
			t.expr, t.weight = star, 0
		case "**":
			t.kind = doubleStar
		case "[":
			err = fmt.Errorf("[ is not closed")
		case "{":
			t.kind = open
			opened = append(opened, at)
		case "}":
			if len(opened) == 0 {
				return nil, fmt.Errorf("character %d: } without {", at)
			}
			t.kind = closing
			opened = opened[:len(opened)-1]
		case ",":
			if len(opened) > 0 {
				t.kind = comma
			}
		case `\`:
			err = fmt.Errorf(`nothing follows \`)
		default:
			if text[0] == '[' {
				t.weight = classWeight
				t.expr, err = class(text)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("character %d: %w", at, err)
		}
		at += utf8.RuneCountInString(text)
		tokens = append(tokens, t)
	}
	if len(opened) > 0 {
		return nil, fmt.Errorf("character %d: { is not closed", opened[len(opened)-1])
	}
	return tokens, nil
}

// members are those of a set: a character or a range.
var members = regexp.MustCompile(`(?s)\\?(.)(?:-\\?(.))?`)

// class returns a set [..] as a regular expression.
func class(set string) (string, error) {
	expr, inner := "[", set[1:len(set)-1]
	if inner[0] == '!' || inner[0] == '^' {
		expr, inner = "[^.", inner[1:]
	}
	for _, m := range members.FindAllStringSubmatch(inner, -1) {
		lo, _ := utf8.DecodeRuneInString(m[1])
		hi, _ := utf8.DecodeRuneInString(cmp.Or(m[2], m[1]))
		if hi < lo {
			return "", fmt.Errorf("the range %c-%c runs backwards", lo, hi)
		}
		// A dot separates segments and is in no set.
		for _, r := range [][2]rune{{lo, min(hi, '.'-1)}, {max(lo, '.'+1), hi}} {
			if r[0] <= r[1] {
				expr += member(r[0]) + "-" + member(r[1])
			}
		}
	}
	if expr == "[" {
		return "", fmt.Errorf("the set holds only a dot, which separates segments")
	}
	return expr + "]", nil
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
	start := slices.IndexFunc(tokens, func(t token) bool { return t.kind == open })
	if start < 0 {
		return [][]token{tokens}, nil
	}
	var parts [][]token // between the commas of this group
	end := start + 1    // of a part
	for depth, i := 1, end; depth > 0; i++ {
		switch tokens[i].kind {
		case open:
			depth++
		case closing:
			depth--
		}
		if depth == 0 || depth == 1 && tokens[i].kind == comma {
			parts = append(parts, tokens[end:i])
			end = i + 1
		}
	}
	var out [][]token
	for _, part := range parts {
		more, err := expand(slices.Concat(tokens[:start], part, tokens[end:]))
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

// segments cuts a pattern without groups at its dots.
func segments(tokens []token) (out [][]token) {
	from := 0
	for i, t := range tokens {
		if t.kind == dot {
			out, from = append(out, tokens[from:i]), i+1
		}
	}
	return append(out, tokens[from:])
}

// translate returns the regular expression of a pattern without groups, and its specificity.
func translate(tokens []token) (expr string, specificity int, err error) {
	separator, all := "", segments(tokens)
	for i, s := range all {
		switch {
		case len(s) == 0:
			return "", 0, fmt.Errorf("an empty segment: names have no two dots in a row, and none at the beginning or end")
		case len(s) == 1 && s[0].kind == doubleStar:
			// Zero or more segments, each with the dot that separates it from the preceding ones.
			switch {
			case separator != "":
				expr += `(?:\.[^.]+)*`
			case i == len(all)-1:
				expr += `[^.]+(?:\.[^.]+)*`
			default:
				expr += `(?:[^.]+\.)*`
			}
			continue
		}
		if expr += separator; separator != "" {
			specificity += literalWeight
		}
		separator = `\.`
		if len(s) == 1 && s[0].expr == star {
			expr += `[^.]+`
			continue
		}
		for _, t := range s {
			if t.kind == doubleStar {
				return "", 0, fmt.Errorf("character %d: ** stands for whole segments: write it alone between dots, or *", t.at)
			}
			expr += t.expr
			specificity += t.weight
		}
	}
	return expr, specificity, nil
}
