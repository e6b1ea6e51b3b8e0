// Package text judges what engines make of a prompt, before a layer runs: the text after the chat
// template, and the token ids.
//
// The reference's text is what its own tokenizer made, or else the tokens that it was given. A
// candidate that brings no text is not judged: running on the reference's ids proves nothing about
// its tokenizer.
package text

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/dump"
)

// Status is what is known about one ask along one API path.
type Status int

// The statuses.
const (
	NotJudged Status = iota // the reference made nothing of this ask
	Equal                   // the same ids, or, where one side has none, the same text
	Differs
)

// Finding is what the candidate made of one prompt or conversation along one of its API paths.
type Finding struct {
	Path           string    // the candidate's API path: "completion", "chat", …
	Golden, Actual dump.Text // of the reference, which is empty where nothing was judged
	Status         Status
	Note           string // why it was not judged, or how texts differ although their ids are equal
	At             int    // the first token that differs; -1 where only rendered texts do
	Cause          *Cause // of a difference
}

// Cause is why ids or texts differ.
type Cause struct {
	ID     string // text/…, or "" if nothing is known but that they differ
	Text   string
	Proven bool // what the reference makes with this mistake is what the candidate made, id for id
}

// Judge compares each text that the candidate brings with the reference's of the same ask. Both are
// of one case.
func Judge(golden, actual *dump.Info) []Finding {
	var out []Finding
	for _, a := range actual.Text {
		f := Finding{Path: a.Path, Actual: a, At: -1}
		if g := reference(golden, actual, a); g != nil {
			f.Golden = *g
			f.judge()
		} else {
			f.Note = "the reference made nothing of this ask: renew its goldens, or give its run.json a text"
		}
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

func (f *Finding) judge() {
	g, a := f.Golden, f.Actual
	ids := len(g.TokenIDs) > 0 && len(a.TokenIDs) > 0
	rendered := g.Rendered != "" && a.Rendered != ""
	switch {
	case ids && slices.Equal(g.TokenIDs, a.TokenIDs):
		f.Status = Equal
		if rendered && g.Rendered != a.Rendered {
			f.Note = "the same ids of another text: " + between(g.Rendered, a.Rendered)
		}
	case !ids && rendered && g.Rendered == a.Rendered:
		f.Status = Equal
	case !ids && !rendered:
		f.Note = "one side has ids, the other a text: nothing in common to compare"
	default:
		f.Status = Differs
		if ids {
			f.At = common(g.TokenIDs, a.TokenIDs)
		}
		f.Cause = cause(g, a)
	}
}

// String says in one line what was found.
func (f *Finding) String() string {
	switch f.Status {
	case Equal:
		if f.Note != "" {
			return f.Path + ": " + f.Note
		}
		if n := len(f.Actual.TokenIDs); n > 0 && len(f.Golden.TokenIDs) > 0 {
			return fmt.Sprintf("%s: %s equal", f.Path, tokens(n))
		}
		return f.Path + ": the rendered texts are equal"
	case Differs:
		return fmt.Sprintf("%s: %s: %s", f.Path, f.Cause.Text, f.where())
	}
	return f.Path + ": not judged: " + f.Note
}

// common counts the elements with which both begin.
func common[E comparable](a, b []E) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
