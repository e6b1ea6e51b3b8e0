package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goparity/goparity/internal/dump"
)

// TextStatus is what is known about one ask along one API path.
type TextStatus int

// The statuses of texts.
const (
	NotJudged TextStatus = iota // the reference made nothing of this ask
	Equal                       // the same ids, or, where one side has none, the same text
	Differs
)

// TextFinding is what the candidate made of one prompt or conversation along one of its API paths.
type TextFinding struct {
	Golden, Actual dump.Text // of the reference, which is empty where nothing was judged
	Status         TextStatus
	Text           string     // what was found, in one line
	At             int        // the first token that differs; -1 where only rendered texts do
	Cause          *TextCause // of a difference
}

// TextCause is why ids or texts differ.
type TextCause struct {
	ID     string // text/…, or "" if nothing is known but that they differ
	Text   string
	Proven bool // what the reference makes with this mistake is what the candidate made, id for id
}

// Texts compares each text that the candidate brings, after the chat template and as token ids, with the
// reference's of the same ask. Both are of one case. The reference's is what its own tokenizer made, or else
// the tokens that it was given. A candidate that brings no text is not judged: running on the reference's ids
// proves nothing about its tokenizer.
func Texts(golden, actual *dump.Info) []TextFinding {
	var out []TextFinding
	for _, a := range actual.Text {
		f := TextFinding{Actual: a, At: -1}
		what := "not judged: the reference made nothing of this ask: renew its goldens, or give its run.json a text"
		if g := reference(golden, actual, a); g != nil {
			f.Golden = *g
			what = f.judge()
		}
		f.Text = a.Path + ": " + what
		out = append(out, f)
	}
	return out
}

// reference returns the reference's text of the same ask as a, along the same API path if there is one; nil
// for none. Of a reference that has no texts, its own tokens are what it made of the one thing that was asked.
func reference(golden, actual *dump.Info, a dump.Text) *dump.Text {
	same := func(t dump.Text) bool { return sameAsk(t, a) }
	if len(golden.Text) > 0 {
		i := slices.IndexFunc(golden.Text, func(t dump.Text) bool { return same(t) && t.Path == a.Path })
		if i < 0 {
			i = slices.IndexFunc(golden.Text, same)
		}
		if i < 0 {
			return nil
		}
		return &golden.Text[i]
	}
	asked := golden.Asked()
	mayBe := func(t dump.Text) bool { return golden.Prompt == "" || golden.Prompt == t.Prompt }
	if len(asked) != 1 || !mayBe(a) {
		return nil
	}
	// Of several asks nothing says which it was, unless the tokens are what one was made to.
	other := func(t dump.Text) bool { return mayBe(t) && !same(t) }
	made := func(t dump.Text) bool { return same(t) && slices.Equal(t.TokenIDs, asked[0]) }
	if slices.ContainsFunc(actual.Text, other) && !slices.ContainsFunc(actual.Text, made) {
		return nil
	}
	return &dump.Text{Path: a.Path, Prompt: a.Prompt, Messages: a.Messages, TokenIDs: asked[0]}
}

func sameAsk(a, b dump.Text) bool {
	return a.Prompt == b.Prompt && slices.EqualFunc(a.Messages, b.Messages, dump.Message.Equal)
}

// judge says in words what was found.
func (f *TextFinding) judge() string {
	g, a := f.Golden, f.Actual
	ids := len(g.TokenIDs) > 0 && len(a.TokenIDs) > 0
	rendered := g.Rendered != "" && a.Rendered != ""
	f.Status = Equal
	switch {
	case ids && slices.Equal(g.TokenIDs, a.TokenIDs):
		if rendered && g.Rendered != a.Rendered {
			return "the same ids of another text: " + between(g.Rendered, a.Rendered)
		}
		return tokens(len(a.TokenIDs)) + " equal"
	case !ids && rendered && g.Rendered == a.Rendered:
		return "the rendered texts are equal"
	case !ids && !rendered:
		f.Status = NotJudged
		return "not judged: one side has ids, the other a text: nothing in common to compare"
	}
	f.Status, f.Cause = Differs, textCause(g, a)
	if ids {
		f.At = common(g.TokenIDs, a.TokenIDs)
	}
	return f.Cause.Text + ": " + f.where()
}

// common counts the elements with which both begin.
func common[E comparable](a, b []E) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// where shows the first difference, in ids and, where their texts are known, in these.
func (f *TextFinding) where() string {
	g, a := f.Golden, f.Actual
	if f.At < 0 {
		return between(g.Rendered, a.Rendered)
	}
	where := fmt.Sprintf("token %d is %s, the reference has %s (%s, the reference %d)",
		f.At, at(a, f.At), at(g, f.At), tokens(len(a.TokenIDs)), len(g.TokenIDs))
	if g.Rendered != "" && a.Rendered != "" && g.Rendered != a.Rendered {
		where += "; " + between(g.Rendered, a.Rendered)
	}
	return where
}

// at shows some tokens from one on.
func at(t dump.Text, from int) string {
	if from >= len(t.TokenIDs) {
		return "none"
	}
	to := min(from+shownTokens, len(t.TokenIDs))
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(t.TokenIDs[from:to]), " ", ", "), "[]")
	if to < len(t.TokenIDs) {
		ids += ", …"
	}
	if len(t.Pieces) > 0 {
		return fmt.Sprintf("%q (%s)", strings.Join(t.Pieces[from:to], ""), ids)
	}
	return ids
}

// between shows where two texts begin to differ.
func between(golden, actual string) string {
	n := common([]byte(golden), []byte(actual))
	for n < len(golden) && !utf8.RuneStart(golden[n]) {
		n--
	}
	before := []rune(golden[:n])
	last := string(before[max(len(before)-shownRunes, 0):])
	if len(before) > shownRunes {
		last = "…" + last
	}
	return fmt.Sprintf("after %q the text goes on with %q, the reference's with %q", last, first(actual[n:]), first(golden[n:]))
}

func first(s string) string {
	if r := []rune(s); len(r) > shownRunes {
		return string(r[:shownRunes]) + "…"
	}
	return s
}

func tokens(n int) string {
	if n == 1 {
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", n)
}
