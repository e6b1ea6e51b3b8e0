package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
)

// The causes of other texts. docs/causes.md has a row for each.
const (
	bosTwice   = "text/bos-twice"
	bosMissing = "text/bos-missing"
	eosAdded   = "text/eos-added"
	template   = "text/template"
	special    = "text/special"
	whitespace = "text/whitespace"
	truncated  = "text/truncated"
)

// textIDs lists the ids of all of them.
func textIDs() []string {
	return []string{bosTwice, bosMissing, eosAdded, template, special, whitespace, truncated}
}

// textCause says why a is not what the reference made, g.
//
// Ids of which the reference's are a part show a begin or an end that is twice, missing or added,
// and what was cut. What the reference made with a mistake of its own on purpose proves that mistake.
// Else the rendered texts tell, or the shape of the difference, which proves nothing.
func textCause(g, a dump.Text) *TextCause {
	for _, m := range mistakes(g, a) {
		if slices.Equal(m.TokenIDs, a.TokenIDs) {
			return &TextCause{m.Cause, m.Text, true}
		}
	}
	if g.Rendered != "" && a.Rendered != "" && g.Rendered != a.Rendered {
		return renderings(g, a)
	}
	if c := cut(g, a); c != nil {
		return c
	}
	return inside(g, a)
}

// mistakes are those of the first and the last token, and what the reference made with one of its own.
// Each of them beside another mistake is told with it, not alone.
func mistakes(g, a dump.Text) (list []dump.Mistake) {
	ids, made := g.TokenIDs, a.TokenIDs
	if len(ids) == 0 || len(made) == 0 {
		return nil
	}
	add := func(cause string, ids []int, text string) {
		list = append(list, dump.Mistake{Cause: cause, Text: text, TokenIDs: ids})
	}
	add(bosTwice, slices.Concat(ids[:1], ids), fmt.Sprintf("the first token %s is there twice: the text brings it along, and the tokenizer adds it again", name(g, 0)))
	if !sameWithout(g, a) {
		add(bosMissing, ids[1:], fmt.Sprintf("the first token %s is missing", name(g, 0)))
	}
	if last := len(made) - 1; !sameWithout(a, g) {
		add(eosAdded, slices.Concat(ids, made[last:]), fmt.Sprintf("one token more, %s, ends it", name(a, last)))
		if !isText(a) {
			add(special, slices.Concat(made[:1], ids), fmt.Sprintf("one token more, %s, begins it", name(a, 0)))
		}
	}
	return append(list, g.Mistakes...)
}

// isText reports whether the first token is known to be no special one.
func isText(t dump.Text) bool { return len(t.Pieces) > 0 && !markup.MatchString(t.Pieces[0]) }

// sameWithout reports whether the text of long, which has one token more at its begin or end than
// short, has as much more text that no tokenizer adds: white space, or the end of a template.
func sameWithout(long, short dump.Text) bool {
	if long.Rendered == "" || short.Rendered == "" || long.Rendered == short.Rendered {
		return false
	}
	more, ok := strings.CutPrefix(long.Rendered, short.Rendered)
	if !ok {
		more, ok = strings.CutSuffix(long.Rendered, short.Rendered)
	}
	return !ok || !markup.MatchString(more)
}

// markup is how special tokens are written: <s>, </s>, <|im_start|>, <start_of_turn>, [INST], [CLS], <<SYS>>.
var markup = regexp.MustCompile(`<\|[^|<>\s]{1,40}\|>|<<?/?[A-Za-z_][A-Za-z0-9_]{0,40}>?>|\[/?[A-Z_]{2,20}\]|<｜[^｜]{1,40}｜>`)

// renderings compares the texts after the template.
func renderings(g, a dump.Text) *TextCause {
	from, to := g.Rendered, a.Rendered
	lead := markup.FindString(from)
	switch {
	case lead != "" && strings.HasPrefix(from, lead) && to == lead+from:
		return &TextCause{bosTwice, fmt.Sprintf("the text begins with %q twice", lead), true}
	case lead != "" && from == lead+to && (len(a.TokenIDs) == 0 || len(g.TokenIDs) == len(a.TokenIDs)+1):
		return &TextCause{bosMissing, fmt.Sprintf("the text does not begin with %q", lead), true}
	case strings.HasPrefix(to, from) && markup.FindString(to[len(from):]) == to[len(from):]:
		return &TextCause{eosAdded, fmt.Sprintf("the text ends with %q, which the reference's does not", to[len(from):]), true}
	case unspaced(from) == unspaced(to):
		return &TextCause{whitespace, "the text has other white space", true}
	}
	for _, m := range g.Messages {
		if text := strings.TrimSpace(m.Content); text != "" && strings.Contains(from, text) && !strings.Contains(to, text) {
			return &TextCause{template, fmt.Sprintf("the message of role %s is not in the text", m.Role), true}
		}
	}
	return &TextCause{template, "another text is rendered", true}
}

func unspaced(s string) string { return strings.Join(strings.Fields(s), "") }

// cut knows ids of which a part is left; nil for others.
func cut(g, a dump.Text) *TextCause {
	head, tail := ends(g.TokenIDs, a.TokenIDs)
	left := len(a.TokenIDs)
	lost := len(g.TokenIDs) - left
	if lost < 1 || head+tail < left {
		return nil
	}
	same := g.Rendered != "" && g.Rendered == a.Rendered
	// Without the texts, a conversation that lacks its last few tokens or its first message, too, may be a cut one.
	chat := len(g.Messages) > 0 && !same
	what := fmt.Sprintf("%s missing from token %d on", tokens(lost), head)
	switch {
	case len(g.Pieces) > 0 && unspaced(strings.Join(g.Pieces[head:head+lost], "")) == "":
		return &TextCause{whitespace, "white space of the text has no token", true}
	case !same && lost == 1 && head == specials && left > specials:
		return &TextCause{whitespace, "one token is missing after the first: a space before the text is, or it is cut", false}
	case chat && head == left && lost <= promptTokens:
		return &TextCause{template, "the end of the template is missing: " + what, false}
	case chat && head < left:
		return &TextCause{template, "a part of the conversation is missing: " + what, false}
	}
	return &TextCause{truncated, what, head == left || head <= specials || same}
}

// inside looks at ids that differ in the middle.
func inside(g, a dump.Text) *TextCause {
	ids, made := g.TokenIDs, a.TokenIDs
	if len(ids) > 2*specials && slices.Equal(made, ids[1:len(ids)-1]) {
		return &TextCause{special, "the special tokens around the text are missing", true}
	}
	if len(g.Pieces) > 0 && len(a.Pieces) > 0 {
		from, to := strings.Join(g.Pieces, ""), strings.Join(a.Pieces, "")
		switch {
		case from == to && split(g.Pieces, a.Pieces):
			return &TextCause{special, "special tokens are read as plain text", true}
		case from != to && unspaced(from) == unspaced(to):
			return &TextCause{whitespace, "the text has other white space", true}
		}
	}
	asked := g.Prompt
	for _, m := range g.Messages {
		asked += m.Content
	}
	head, tail := ends(ids, made)
	were, are := len(ids)-head-tail, len(made)-head-tail
	widened := were > 0 && are >= 2*were // one or a few became more than twice as many
	switch {
	case made[0] == ids[0] && len(made) > 1 && made[1] == ids[0] && (len(ids) < 2 || ids[1] != ids[0]):
		return &TextCause{bosTwice, fmt.Sprintf("the first token %s is there twice, and more differs after it", name(g, 0)), false}
	case len(g.Messages) > 0 && g.Rendered == "" && !widened:
		return &TextCause{template, "the ids are of another conversation", false}
	case widened && markup.MatchString(asked+g.Rendered):
		return &TextCause{special, fmt.Sprintf("token %s is several here: special tokens seem to be read as plain text", name(g, head)), false}
	case asked != strings.TrimSpace(asked) || strings.Contains(asked, "  ") || strings.ContainsAny(asked, "\t\n") || head <= specials:
		return &TextCause{whitespace, "white space seems to be treated in another way", false}
	}
	return &TextCause{"", "the tokenizer makes other tokens of the text", false}
}

// split reports whether some special token of the first is made of several pieces in the second.
func split(from, to []string) bool {
	return slices.ContainsFunc(from, func(p string) bool {
		return markup.FindString(p) == p && p != "" && !slices.Contains(to, p)
	})
}

// ends are the numbers of ids with which two lists begin and end alike.
func ends(a, b []int) (head, tail int) {
	head = common(a, b)
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// name is a token's id, and its text where that is known.
func name(t dump.Text, i int) string {
	if i < len(t.Pieces) {
		return fmt.Sprintf("%q (%d)", t.Pieces[i], t.TokenIDs[i])
	}
	return fmt.Sprint(t.TokenIDs[i])
}
