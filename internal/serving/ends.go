package serving

import (
	"strings"

	"github.com/goparity/goparity/internal/report"
)

// Causes of how a text ends, and of how it is written.

// written: the tokens are right, the text is not.
func (d *prober) written(q *request) *report.Cause {
	is, want, ids := plain(q.answer.Text), plain(q.ref.Text), q.answer.Tokens
	if ids == nil {
		ids = q.ref.Tokens
	}
	if t := d.Model.texts(ids); t != nil {
		want = t[0]
	}
	if q.answer.Finish == "stop" && len(is) < len(want) && strings.HasPrefix(want, is) {
		return q.proven(causeStop, "the tokens are right, and the text is cut off before its end as if a stop were in it: %s", q.j.Text)
	}
	return q.proven(causeDetokenise, "%s", q.j.Text)
}

// ended: the answer is right as far as it goes, or goes on after its end, or says another reason.
func (d *prober) ended(q *request) *report.Cause {
	a := &q.answer
	switch {
	case q.j.fault == long, q.j.fault == ending:
		return q.proven(causeStop, "%s", q.j.Text)
	case q.j.fault != short:
		return nil
	case a.Count > q.j.at && a.Count <= len(q.ref.Tokens) && !a.Stopped():
		return q.proven(causeStop, "the server counts %d tokens and returns %d", a.Count, q.j.at)
	case q.j.at > 0 && d.goesOn(q) && !(q.j.unsure && d.lastStops(q)):
		return q.proven(causeStop, "%s; asked with these tokens as the prompt, the server goes on with it: that is no end of the text",
			q.j.Text)
	}
	return q.guess(causeStop, "%s", q.j.Text)
}

// goesOn reports whether a server that ended an answer goes on, with the reference's next token, if
// it is asked for one.
func (d *prober) goesOn(q *request) bool {
	if q.ref.Prompt == nil || q.j.at >= len(q.ref.Tokens) {
		return false
	}
	p := d.next(q, q.j.at, 1)
	return p.right() && p.answer.Counted() == 1 // one that leaves out what ends a text has none now
}

// lastStops reports whether the last token of an answer ends it again: it may be the one that ends a
// text, written among the others.
func (d *prober) lastStops(q *request) bool {
	p := d.next(q, q.j.at-1, 2)
	return !p.came() || p.answer.Counted() < min(2, len(q.ref.Tokens)-q.j.at+1)
}

// ends decides which answers that ended early ended with the token that ends a text: the reference
// does not say which token that is, where the model's files are not at hand. It is one if the vocabulary has it as
// special, if a server that is told to ignore it gives all of the right answer, or if it is the last that is asked for,
// and the server has nothing in its place.
func (d *prober) ends() {
	for _, q := range d.requests {
		if q.j.fault != short || !q.j.unsure {
			continue
		}
		at := q.j.at
		next := q.ref.Tokens[at]
		special, known := false, false
		if d.Model.Vocab != nil {
			special, known = d.Model.Vocab.Special(next)
		}
		if !known {
			p, n := d.anew(q, "with ignore_eos", map[string]any{"ignore_eos": true}), len(q.ref.Tokens)
			special = p.right() && p.answer.Counted() >= n || at == n-1 && !d.goesOn(q)
		}
		if special {
			q.j.fault, q.j.Text, q.j.Ended = none, "", &at
			d.note("%s: ended by the server before token %d, %s, which is taken for the one that ends a text: "+
				"the model's config.json would say it", q.where(), at, d.Model.name(next))
		}
	}
}
