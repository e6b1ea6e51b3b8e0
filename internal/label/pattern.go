package label

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
	maxPattern      = 400
	maxAlternatives = 100
)

// Pattern matches the names of layers, as fixture.yaml, flags and package parity write them:
//
//	?       one character, not a dot
//	*       any run of characters inside one segment, even none: layers.* is layers.3, not layers.3.mlp
//	**      any number of whole segments, even none: encoder.**.dense
//	[a-z]   one character of a set; [!a-z] and [^a-z] one that is not in it; never a dot
//	{a,b}   either; may hold dots and other wildcards, and may be nested
//	\x      x itself
//
// A pattern, with or without wildcards, matches the end of a name at a dot:
// "encoder.layer.3.attention" and "layer.*.attention" match "model.encoder.layer.3.attention". Case
// matters. A repeated call "norm(2)" is a name of its own: "norm" does not match it, "norm*" does.
type Pattern struct {
	text        string
	expr        string // what Whole returns
	whole, tail *regexp.Regexp
	specificity int
}

// CompilePattern reads a pattern. The error says what is wrong and at which character, counted from 1.
func CompilePattern(pattern string) (*Pattern, error) {
	switch {
	case pattern == "":
		return nil, fmt.Errorf("glob: the pattern is empty")
	case len(pattern) > maxPattern:
		return nil, fmt.Errorf("glob: the pattern has %d bytes, at most %d are read", len(pattern), maxPattern)
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
	alternatives, err := expand(tokensOf(p.text))
	if err != nil {
		return err
	}
	exprs := make([]string, len(alternatives))
	for i, alternative := range alternatives {
		weight := 0
		if exprs[i], weight, err = translate(alternative); err != nil {
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

// QuotePattern returns a pattern that matches a name and nothing else but what ends with it at a dot.
func QuotePattern(name string) string { return special.Replace(name) }

var special = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`, "}", `\}`, `\`, `\\`)

// Weights of Specificity.
const (
	literalWeight = 16
	classWeight   = 4
	anyWeight     = 2
)

// token is a character, **, a set or an escaped character of a pattern.
type token struct {
	text string
	at   int // the character at which it begins, from 1
}

var tokenText = regexp.MustCompile(`(?s)\\.|\*\*|\[(?:[!^](?:\\.|[^\\])|\\.|[^\\!^])(?:\\.|[^\\\]])*\]|.`)

func tokensOf(pattern string) (tokens []token) {
	at := 1
	for _, text := range tokenText.FindAllString(pattern, -1) {
		tokens = append(tokens, token{text, at})
		at += utf8.RuneCountInString(text)
	}
	return tokens
}

func (t token) errorf(format string, args ...any) error {
	return fmt.Errorf("character %d: "+format, append([]any{t.at}, args...)...)
}

// expand expands groups: a{b,c} becomes ab and ac.
func expand(tokens []token) ([][]token, error) {
	start := slices.IndexFunc(tokens, func(t token) bool { return t.text == "{" })
	if start < 0 {
		return [][]token{tokens}, nil
	}
	var parts [][]token // between the commas of this group
	end := start + 1    // of a part
	for depth, i := 1, end; depth > 0; i++ {
		if i == len(tokens) {
			return nil, tokens[start].errorf("{ is not closed")
		}
		switch tokens[i].text {
		case "{":
			depth++
		case "}":
			depth--
		}
		if depth == 0 || depth == 1 && tokens[i].text == "," {
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
			return nil, tokens[start].errorf("the { } groups give more than %d alternatives", maxAlternatives)
		}
	}
	return out, nil
}

// translate returns the regular expression of a pattern without groups, and its specificity.
func translate(tokens []token) (expr string, specificity int, err error) {
	separator := ""
	for more := true; more; {
		s := tokens // a segment
		dot := slices.IndexFunc(tokens, func(t token) bool { return t.text == "." })
		if more = dot >= 0; more {
			s, tokens = tokens[:dot], tokens[dot+1:]
		}
		switch {
		case len(s) == 0:
			return "", 0, fmt.Errorf("an empty segment: names have no two dots in a row, and none at the beginning or end")
		case len(s) > 1 || s[0].text != "**":
			segment, weight, err := translateSegment(s)
			if err != nil {
				return "", 0, err
			}
			expr += separator + segment
			specificity += weight + literalWeight*min(1, len(separator))
			separator = `\.`
		// Zero or more segments, each with the dot that separates it from the preceding ones.
		case separator != "":
			expr += `(?:\.[^.]+)*`
		case !more:
			expr += `[^.]+(?:\.[^.]+)*`
		default:
			expr += `(?:[^.]+\.)*`
		}
	}
	return expr, specificity, nil
}

func translateSegment(s []token) (expr string, specificity int, err error) {
	if len(s) == 1 && s[0].text == "*" {
		return `[^.]+`, 0, nil
	}
	for _, t := range s {
		one, weight := regexp.QuoteMeta(strings.TrimPrefix(t.text, `\`)), literalWeight
		switch t.text {
		case "?":
			one, weight = `[^.]`, anyWeight
		case "*":
			one, weight = `[^.]*`, 0
		case "**":
			return "", 0, t.errorf("** stands for whole segments: write it alone between dots, or *")
		case "[":
			return "", 0, t.errorf("[ is not closed")
		case "}":
			return "", 0, t.errorf("} without {")
		case `\`:
			return "", 0, t.errorf(`nothing follows \`)
		default:
			if t.text[0] == '[' {
				weight = classWeight
				if one, err = class(t.text); err != nil {
					return "", 0, t.errorf("%w", err)
				}
			}
		}
		expr += one
		specificity += weight
	}
	return expr, specificity, nil
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
