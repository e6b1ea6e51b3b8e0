package serving

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/report"
)

// Causes of what a server makes of a prompt.

// misreading are ids that a server may make of a prompt, and why.
type misreading struct {
	cause, text string
	ids         []int
}

// misreadings are the usual ones: what the reference made with a mistake of its own, and a first
// token that is there twice, or not at all.
func misreadings(ref *Reference) (list []misreading) {
	for _, m := range ref.Mistakes {
		id := strings.Replace(m.Cause, "text/", "serving/", 1) // some mistakes are causes of servers, too
		if !slices.Contains(IDs(), id) {
			id = m.Cause
		}
		list = append(list, misreading{id, "where " + m.Text, m.TokenIDs})
	}
	return append(list, misreading{causeBOSTwice, "that begin with its first token twice", slices.Concat(ref.Prompt[:1], ref.Prompt)},
		misreading{causeBOSMissing, "that lack the first", ref.Prompt[1:]})
}

// otherIDs: the server says which ids it made of the prompt, and they are others.
func (d *prober) otherIDs(q *request) *report.Cause {
	is := q.answer.Prompt
	if q.j.fault != prompt || len(q.ref.Prompt) == 0 {
		return nil
	}
	for _, o := range d.requests {
		if o.ref.Case != q.ref.Case && slices.Equal(is, o.ref.Prompt) {
			return q.proven(causeCache, "it was answered for the prompt of case %s", o.ref.Case)
		}
	}
	for _, m := range misreadings(q.ref) {
		if slices.Equal(is, m.ids) {
			return q.proven(m.cause, "its ids of the prompt are those %s: %s", m.text, q.j.Text)
		}
	}
	if q.ref.Ask.As == AsChat {
		return q.proven(causeTemplate, "the server renders the messages in another way: %s", q.j.Text)
	}
	return nil
}

// mistakenPrompt: the reference's ids are answered right, and ids with a mistake as the prompt was; or
// where ids are changed, too, the opposite mistake makes them right.
func (d *prober) mistakenPrompt(q *request) *report.Cause {
	want, count := q.ref.Prompt, q.answer.PromptCount
	if len(want) < 2 {
		return nil
	}
	right := false
	if q.ref.Ask.As != AsIDs {
		p := d.ids(q, "the reference's ids", want)
		if right = p.right(); !p.came() {
			return nil
		}
	}
	if !right {
		if d.ids(q, "as ids without the first", want[1:]).right() {
			return q.proven(causeBOSTwice, "as ids without the first the prompt is answered right: the server adds one")
		}
		if d.ids(q, "as ids with the first twice", slices.Concat(want[:1], want)).right() {
			return q.proven(causeBOSMissing, "as ids with the first twice the prompt is answered right: the server drops one")
		}
		return nil
	}
	for _, of := range misreadings(q.ref) {
		if count >= 0 && count != len(of.ids) {
			continue
		}
		if agree(q, d.ids(q, "ids "+of.text, of.ids)) {
			f := q.proven(of.cause, "the reference's token ids are answered right, and ids %s as the prompt is: "+
				"these are what the server makes of it", of.text)
			f.Proven = count >= 0 || len(q.ref.Tokens) > 1
			return f
		}
	}
	if q.ref.Ask.As == AsChat && count >= 0 && count != len(want) {
		return q.proven(causeTemplate, "the reference's %d token ids are answered right, and the server makes %d of the messages", len(want), count)
	}
	return nil
}

// otherTokenizer: nothing else fits, and the prompt is right as ids, or the server counts another
// number of tokens.
func (d *prober) otherTokenizer(q *request) *report.Cause {
	count, want := q.answer.PromptCount, len(q.ref.Prompt)
	cause := causeTemplate
	switch {
	case q.ref.Ask.As == AsIDs || q.ref.Prompt == nil:
		return nil
	case count == want+1:
		cause = causeBOSTwice
	case count == want-1:
		cause = causeBOSMissing
	case q.ref.Ask.As != AsChat:
		return nil
	case count < 0 || count == want:
		if d.ids(q, "the reference's ids", q.ref.Prompt).right() {
			return q.guess(cause, "the reference's token ids are answered right, the messages are not")
		}
		return nil
	}
	return q.guess(cause, "the server counts %d tokens of the prompt, the reference %d", count, want)
}

// ids asks other ids in place of a prompt, for the same answer.
func (d *prober) ids(q *request, how string, ids []int) *request {
	ref := *q.ref
	ref.Prompt = nil // it does not judge the ids of the prompt
	ref.Ask = Ask{As: AsIDs, IDs: ids, Tokens: ref.Ask.Tokens}
	return d.try(q, how, &ref)
}
