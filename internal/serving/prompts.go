package serving

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
)

// Causes of what a server makes of a prompt, and of requests that get each other's answers.

// otherIDs: the server says which ids it made of the prompt, and they are others.
func (d *doctor) otherIDs(q *request) *finding {
	if q.j.fault != prompt {
		return nil
	}
	is, want := q.answer.Prompt, q.ref.Prompt
	for _, o := range d.requests {
		if o.ref.Case != q.ref.Case && slices.Equal(is, o.ref.Prompt) {
			return proven(causeCache, "%s was answered for the prompt of case %s", q.where(), o.ref.Case)
		}
	}
	for _, m := range q.ref.Mistakes {
		if slices.Equal(is, m.TokenIDs) {
			return proven(causeOf(m), "%s: %s: %s", q.where(), m.Text, q.j.what)
		}
	}
	bos := len(want) > 0 && len(is) > 0
	switch {
	case bos && leading(is, want[0]) > leading(want, want[0]):
		return proven(causeBOSTwice, "%s: the prompt begins with token %s %d times, that of the reference %d: %s", q.where(),
			d.model.name(want[0]), leading(is, want[0]), leading(want, want[0]), q.j.what)
	case bos && slices.Equal(is, want[1:]):
		return proven(causeBOSMissing, "%s: the prompt begins without the reference's first token, %s", q.where(), d.model.name(want[0]))
	case q.ask.As == AsChat:
		return proven(causeTemplate, "%s: the server renders the messages in another way: %s", q.where(), q.j.what)
	}
	return nil
}

// causeOf is the cause of a mistake, as a server makes it: that of the text, unless servers have one of their own.
func causeOf(m dump.Mistake) string {
	if id := strings.Replace(m.Cause, "text/", "serving/", 1); slices.Contains(IDs(), id) {
		return id
	}
	return m.Cause
}

// leading is how many times a list begins with an id.
func leading(ids []int, id int) (n int) {
	for n < len(ids) && ids[n] == id {
		n++
	}
	return n
}

// promptMade: the answer is right if the prompt is asked with a first token more or less, or as ids.
func (d *doctor) promptMade(q *request) *finding {
	want := q.ref.Prompt
	if len(want) < 2 {
		return nil
	}
	more, less := append([]int{want[0]}, want...), want[1:]
	if q.ask.As == AsIDs {
		return d.idsMade(q, more, less)
	}
	if p, ok := d.try(q.where()+", the reference's ids", q.ref, q.ask.ids(want)); !ok {
		return nil
	} else if !p.right {
		return d.idsMade(q, more, less)
	}
	count := q.answer.PromptCount
	type rendering struct {
		id, text string
		ids      []int
	}
	made := []rendering{{causeBOSTwice, "that begin with its first token twice", more}, {causeBOSMissing, "that lack the first", less}}
	for _, m := range q.ref.Mistakes {
		made = append(made, rendering{causeOf(m), "where " + m.Text, m.TokenIDs})
	}
	for _, of := range made {
		if count >= 0 && count != len(of.ids) {
			continue
		}
		p, ok := d.try(q.where()+", ids "+of.text, unprompted(q.ref), q.ask.ids(of.ids))
		if !ok || !d.agree(q.ref, &q.answer, &p.answer) {
			continue
		}
		f := proven(of.id, "%s: the reference's token ids are answered right, and ids %s as the prompt is: these are what the server "+
			"makes of it", q.where(), of.text)
		f.proven = count >= 0 || len(q.ref.Tokens) > 1
		return f
	}
	if q.ask.As == AsChat && count >= 0 && count != len(want) {
		return proven(causeTemplate, "%s: the reference's %d token ids are answered right, and the server makes %d of the messages",
			q.where(), len(want), count)
	}
	return nil
}

// idsMade: the server changes token ids, too.
func (d *doctor) idsMade(q *request, more, less []int) *finding {
	if p, ok := d.try(q.where()+", as ids without the first", unprompted(q.ref), q.ask.ids(less)); ok && p.right {
		return proven(causeBOSTwice, "%s: as ids without the first the prompt is answered right: the server adds one", q.where())
	}
	if p, ok := d.try(q.where()+", as ids with the first twice", unprompted(q.ref), q.ask.ids(more)); ok && p.right {
		return proven(causeBOSMissing, "%s: as ids with the first twice the prompt is answered right: the server drops one", q.where())
	}
	return nil
}

// madeOtherwise: nothing else fits, and the prompt is right as ids, or the server counts another
// number of tokens.
func (d *doctor) madeOtherwise(q *request) *finding {
	if q.ask.As == AsIDs || q.ref.Prompt == nil {
		return nil
	}
	switch count := q.answer.PromptCount; {
	case count == len(q.ref.Prompt)+1:
		return guess(causeBOSTwice, "%s: the server counts %d tokens of the prompt, one more than the reference", q.where(), count)
	case count == len(q.ref.Prompt)-1:
		return guess(causeBOSMissing, "%s: the server counts %d tokens of the prompt, one less than the reference", q.where(), count)
	case q.ask.As != AsChat:
		return nil
	case count >= 0 && count != len(q.ref.Prompt):
		return guess(causeTemplate, "%s: the server counts %d tokens of the messages, the reference %d", q.where(), count, len(q.ref.Prompt))
	}
	if p, ok := d.try(q.where()+", the reference's ids", q.ref, q.ask.ids(q.ref.Prompt)); ok && p.right {
		return guess(causeTemplate, "%s: the reference's token ids are answered right, the messages are not", q.where())
	}
	return nil
}

// unprompted is a reference that does not judge the ids of the prompt, for a request with others.
func unprompted(ref *Reference) *Reference {
	out := *ref
	out.Prompt = nil
	return &out
}

// same reports whether two answers say the same: the same tokens, or where one does not say which, the same text.
func same(a, b *Answer) bool {
	if a.Tokens != nil && b.Tokens != nil {
		return slices.Equal(a.Tokens, b.Tokens)
	}
	return plain(a.Text) == plain(b.Text) // chats are trimmed, completions are not
}

// agree reports whether two answers say the same, with the same log-probabilities.
func (d *doctor) agree(ref *Reference, a, b *Answer) bool {
	if !same(a, b) {
		return false
	}
	for k := range min(len(a.LogProbs), len(b.LogProbs), len(ref.Rows)) {
		if !near(a.LogProbs[k], b.LogProbs[k], ref.Rows[k].shift+a.Rounding+b.Rounding) {
			return false
		}
	}
	return true
}

// crowded: right alone, wrong among others.
func (d *doctor) crowded(q *request) *finding {
	got := d.repeated(q)
	right := 0
	for _, p := range got {
		if p.right {
			right++
		}
	}
	switch {
	case len(got) == 0:
		return nil
	case right == len(got):
		of := ""
		for _, o := range d.requests {
			if o.way == AtOnce && o != q && !slices.Equal(o.ref.Prompt, q.ref.Prompt) && d.speaks(o.ref, &q.answer) {
				of = ", with what belongs to the request of " + o.where()
				break
			}
		}
		if of == "" && !d.rightAgain(q) {
			return nil
		}
		return proven(causeConcurrency, "%s: wrong among %d requests%s; alone it is right each time", q.where(), d.parallel, of)
	case right > 0:
		return d.varies(q, fmt.Sprintf("asked %d times alone, it is right %d times", len(got), right))
	case q.twin != nil && d.alike(q.ref, got):
		return proven(causeCache, "%s: right the first time, and wrong each time after, alone too: what the server kept of the prompt is not what it "+
			"computed", q.where())
	}
	return nil
}

// rightAgain reports whether a request is right in as many more repetitions: one that samples may be
// right in some.
func (d *doctor) rightAgain(q *request) bool {
	for range repeats {
		if p, ok := d.try(q.where()+", again and alone", q.ref, q.ask); !ok || !p.right {
			return false
		}
	}
	return true
}

// alike reports whether all answers say the same.
func (d *doctor) alike(ref *Reference, all []probe) bool {
	for i := range all {
		if !d.agree(ref, &all[0].answer, &all[i].answer) {
			return false
		}
	}
	return true
}

// speaks reports whether an answer is another reference's, as far as it goes.
func (d *doctor) speaks(ref *Reference, a *Answer) bool {
	if a.Tokens != nil {
		n := min(len(a.Tokens), len(ref.Tokens))
		if n == 0 || !slices.Equal(a.Tokens[:n], ref.Tokens[:n]) {
			return false
		}
		return n > 1 || firstOff(ref, a, ref.Tokens[:n]) == allRight
	}
	n := len(ref.Tokens)
	if c := a.Counted(); c >= 0 {
		n = min(n, c)
	}
	right, known := d.model.text(ref, ref.Tokens[:n], a.Text)
	if !slices.Contains(d.model.texts(ref.Tokens[:n]), plain(a.Text)) { // any text is the end of a longer one
		right = right && ref.plain() != "" && strings.HasPrefix(ref.plain(), plain(a.Text))
	}
	off := firstOff(ref, a, ref.Tokens[:n])
	return n > 0 && (known && right && (n > 1 || off == allRight) || !known && off == allRight && n > 1)
}
