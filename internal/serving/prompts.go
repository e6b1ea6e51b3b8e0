package serving

import (
	"slices"
	"strings"
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
func (d *prober) otherIDs(q *request) *finding {
	is, want := q.answer.Prompt, q.ref.Prompt
	if q.j.fault != prompt || len(want) == 0 {
		return nil
	}
	for _, o := range d.requests {
		if o.ref.Case != q.ref.Case && slices.Equal(is, o.ref.Prompt) {
			return q.proven(causeCache, "it was answered for the prompt of case %s", o.ref.Case)
		}
	}
	if n := leading(is, want[0]); n > leading(want, want[0]) {
		return q.proven(causeBOSTwice, "the prompt begins with token %s %d times, that of the reference %d: %s",
			d.model.name(want[0]), n, leading(want, want[0]), q.j.what)
	}
	for _, m := range misreadings(q.ref) {
		if slices.Equal(is, m.ids) {
			return q.proven(m.cause, "its ids of the prompt are those %s: %s", m.text, q.j.what)
		}
	}
	if q.ask.As == AsChat {
		return q.proven(causeTemplate, "the server renders the messages in another way: %s", q.j.what)
	}
	return nil
}

// leading is how many times a list begins with an id.
func leading(ids []int, id int) (n int) {
	for n < len(ids) && ids[n] == id {
		n++
	}
	return n
}

// mistakenPrompt: the reference's ids are answered right, and ids with a mistake as the prompt was; or
// where ids are changed, too, the opposite mistake makes them right.
func (d *prober) mistakenPrompt(q *request) *finding {
	want, count := q.ref.Prompt, q.answer.PromptCount
	if len(want) < 2 {
		return nil
	}
	right := false
	if q.ask.As != AsIDs {
		p, ok := d.try(q, "the reference's ids", q.ref, q.ask.ids(want))
		if right = p.right; !ok {
			return nil
		}
	}
	if !right {
		for _, of := range []struct {
			cause, how, does string
			ids              []int
		}{{causeBOSTwice, "without the first", "adds", want[1:]}, {causeBOSMissing, "with the first twice", "drops", slices.Concat(want[:1], want)}} {
			if p, ok := d.try(q, "as ids "+of.how, unprompted(q.ref), q.ask.ids(of.ids)); ok && p.right {
				return q.proven(of.cause, "as ids %s the prompt is answered right: the server %s one", of.how, of.does)
			}
		}
		return nil
	}
	for _, of := range misreadings(q.ref) {
		if count >= 0 && count != len(of.ids) {
			continue
		}
		if p, ok := d.try(q, "ids "+of.text, unprompted(q.ref), q.ask.ids(of.ids)); ok && d.agree(q.ref, &q.answer, &p.answer) {
			f := q.proven(of.cause, "the reference's token ids are answered right, and ids %s as the prompt is: "+
				"these are what the server makes of it", of.text)
			f.proven = count >= 0 || len(q.ref.Tokens) > 1
			return f
		}
	}
	if q.ask.As == AsChat && count >= 0 && count != len(want) {
		return q.proven(causeTemplate, "the reference's %d token ids are answered right, and the server makes %d of the messages", len(want), count)
	}
	return nil
}

// otherTokenizer: nothing else fits, and the prompt is right as ids, or the server counts another
// number of tokens.
func (d *prober) otherTokenizer(q *request) *finding {
	if q.ask.As == AsIDs || q.ref.Prompt == nil {
		return nil
	}
	count, want := q.answer.PromptCount, len(q.ref.Prompt)
	switch {
	case count == want+1:
		return q.guess(causeBOSTwice, "the server counts %d tokens of the prompt, one more than the reference", count)
	case count == want-1:
		return q.guess(causeBOSMissing, "the server counts %d tokens of the prompt, one less than the reference", count)
	case q.ask.As != AsChat:
		return nil
	case count >= 0 && count != want:
		return q.guess(causeTemplate, "the server counts %d tokens of the messages, the reference %d", count, want)
	}
	if p, ok := d.try(q, "the reference's ids", q.ref, q.ask.ids(q.ref.Prompt)); ok && p.right {
		return q.guess(causeTemplate, "the reference's token ids are answered right, the messages are not")
	}
	return nil
}

// unprompted is a reference that does not judge the ids of the prompt, for a request with others.
func unprompted(ref *Reference) *Reference {
	out := *ref
	out.Prompt = nil
	return &out
}
