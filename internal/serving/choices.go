package serving

import (
	"fmt"
	"slices"
	"strings"
)

// Causes of how a server chooses tokens, ends a text, and keeps what it computed.

// otherChoice: another choice of the same answer is right.
func (d *doctor) otherChoice(q *request) *finding {
	for _, o := range q.answer.others {
		if j := d.model.judge(q.ref, &Answer{Answer: o}); j.fault == none {
			return proven(causeChoice, "%s: the answer has %d choices, and another than the first is right", q.where(), len(q.answer.others)+1)
		}
	}
	return nil
}

// repeat: the same request, alone, is answered otherwise.
func (d *doctor) repeat(q *request) *finding {
	got := d.repeated(q)
	if len(got) == 0 {
		return nil
	}
	right := 0
	for _, p := range got {
		if p.right {
			right++
		}
	}
	switch {
	case !d.alike(q.ref, got):
		return d.varies(q, fmt.Sprintf("asked %d times more, alone and at temperature 0, the server gives different answers, %d of them right", len(got), right))
	case right == 0 && d.agree(q.ref, &q.answer, &got[0].answer):
		return nil // it is always wrong in the same way
	case right == 0:
		return guess(causeCache, "%s: another answer the first time than each time after", q.where())
	}
	// Right each time after: does it depend on what was asked before?
	before := d.before(q)
	if before != nil {
		d.try(before.where()+", again", before.ref, before.ask)
		if p, ok := d.try(q.where()+", after that", q.ref, q.ask); ok && !p.right && d.agree(q.ref, &q.answer, &p.answer) {
			return proven(causeCache, "%s: wrong after %s was asked, twice, and right otherwise: the server takes what it kept of the one for the other",
				q.where(), before.where())
		}
	}
	if !d.rightAgain(q) {
		return d.varies(q, "asked again, alone and at temperature 0, it is right sometimes")
	}
	return nil
}

// varies is what is behind answers that vary: a choice by chance, or what the server keeps sometimes, as
// a cache that evicts.
func (d *doctor) varies(q *request, how string) *finding {
	if d.cures(q, "top_k 1", func(int) Ask { return q.ask.with("top_k", 1) }) {
		return proven(causeSampling, "%s: %s; with top_k 1 it is right each time, and without, asked in between, it is not", q.where(), how)
	}
	salted := func(n int) Ask { return q.ask.with("cache_salt", fmt.Sprintf("goparity-%s-%d", q.ref.Case, n)) }
	if d.cures(q, "a cache_salt of its own", salted) {
		return proven(causeCache, "%s: %s; with a cache_salt of its own it is right each time, and without, asked in between, it is not", q.where(), how)
	}
	return guess(causeSampling, "%s: %s: it chooses by chance, or keeps something only sometimes", q.where(), how)
}

// cures reports whether a request that is right sometimes is right each time in another form, while it is
// wrong in between as it was, so often that it is no chance. The two do not take turns: what a server
// keeps may.
func (d *doctor) cures(q *request, with string, form func(n int) Ask) bool {
	wrong := 0
	for n := range cured {
		if p, ok := d.try(q.where()+", with "+with, q.ref, form(n)); !ok || !p.right {
			return false
		}
		for range 1 + n%2 {
			p, ok := d.try(q.where()+", as before", q.ref, q.ask)
			if !ok {
				return false
			}
			if !p.right {
				wrong++
			}
		}
	}
	return wrong >= uncured
}

// still reports whether a request is answered as it was, wrong.
func (d *doctor) still(q *request) bool {
	p, ok := d.try(q.where()+", as before", q.ref, q.ask)
	return ok && !p.right && d.agree(q.ref, &q.answer, &p.answer)
}

// before is the request that was sent before another, nil if it was the first.
func (d *doctor) before(q *request) *request {
	i := slices.Index(d.requests, q)
	if i <= 0 || q.way == AtOnce {
		return nil
	}
	return d.requests[i-1]
}

// others: the answer is that of a prompt that was asked before.
func (d *doctor) others(q *request) *finding {
	for _, o := range d.requests {
		if o == q {
			break
		}
		if slices.Equal(o.ref.Prompt, q.ref.Prompt) || o.ref.Prompt == nil || !d.speaks(o.ref, &q.answer) {
			continue
		}
		n := 0
		for n < min(len(o.ref.Prompt), len(q.ref.Prompt)) && o.ref.Prompt[n] == q.ref.Prompt[n] {
			n++
		}
		return proven(causeCache, "%s: the answer is that to %s, which was asked before and begins with the same %d tokens", q.where(), o.where(), n)
	}
	return nil
}

// cached: the answer is right where the server cannot use what it kept.
func (d *doctor) cached(q *request) *finding {
	if p, ok := d.try(q.where()+", with a cache_salt of its own", q.ref, q.ask.with("cache_salt", "goparity-"+q.ref.Case)); ok && p.right {
		return proven(causeCache, "%s: with a cache_salt of its own it is right", q.where())
	}
	if len(q.ref.Prompt) == 0 {
		return nil
	}
	unlike := slices.Clone(q.ref.Prompt)
	slices.Reverse(unlike)
	for _, o := range d.requests {
		if len(o.ref.Prompt) > 0 && o.ref.Prompt[0] != q.ref.Prompt[0] {
			unlike = o.ref.Prompt
		}
	}
	between := q.ask.ids(unlike)
	between.Tokens = 1
	d.try("a prompt that begins otherwise", unprompted(q.ref), between)
	if p, ok := d.try(q.where()+", after that", q.ref, q.ask); ok && p.right {
		return proven(causeCache, "%s: right after a prompt that begins otherwise was asked", q.where())
	}
	return nil
}

// written: the tokens are right, the text is not.
func (d *doctor) written(q *request) *finding {
	is := plain(q.answer.Text)
	ids := q.answer.Tokens
	if ids == nil {
		ids = q.ref.Tokens
	}
	want := plain(q.ref.Text)
	if t := d.model.texts(ids); t != nil {
		want = t[0]
	}
	if q.answer.Finish == "stop" && len(is) < len(want) && strings.HasPrefix(want, is) {
		return proven(causeStop, "%s: the tokens are right, and the text is cut off before its end as if a stop were in it: %s", q.where(), q.j.what)
	}
	return proven(causeDetokenise, "%s: %s", q.where(), q.j.what)
}

// otherEnding: the answer is right, why it ended is not.
func (d *doctor) otherEnding(q *request) *finding {
	return proven(causeStop, "%s: %s", q.where(), q.j.what)
}

// ended: the answer is right as far as it goes, or goes on behind its end.
func (d *doctor) ended(q *request) *finding {
	switch {
	case q.j.fault == long:
		return proven(causeStop, "%s: %s", q.where(), q.j.what)
	case q.j.fault != short:
		return nil
	case q.answer.Count > q.j.at && q.answer.Count <= len(q.ref.Tokens) && !q.answer.Stopped():
		return proven(causeStop, "%s: the server counts %d tokens and returns %d", q.where(), q.answer.Count, q.j.at)
	}
	if q.j.at > 0 && d.goesOn(q) && !(q.j.unsure && d.lastStops(q)) {
		return proven(causeStop, "%s: %s; asked with these tokens as the prompt, the server goes on with it: that is no end of the text",
			q.where(), q.j.what)
	}
	return guess(causeStop, "%s: %s", q.where(), q.j.what)
}

// goesOn reports whether a server that ended an answer goes on, with the reference's next token, if
// it is asked for one.
func (d *doctor) goesOn(q *request) bool {
	if q.ref.Prompt == nil || q.j.at >= len(q.ref.Tokens) {
		return false
	}
	rest := q.ref.from(q.j.at)
	rest.Tokens, rest.Ask.Tokens = rest.Tokens[:1], 1
	p, ok := d.try(q.where()+", prompt and answer as ids, one token more", rest, rest.Ask)
	return ok && p.right && p.answer.Counted() == 1 // one that leaves out what ends a text has none now
}

// lastStops reports whether the last token of an answer ends it again: it may be the one that ends a
// text, written among the others.
func (d *doctor) lastStops(q *request) bool {
	rest := q.ref.from(q.j.at - 1)
	rest.Tokens = rest.Tokens[:min(2, len(rest.Tokens))]
	rest.Ask.Tokens = len(rest.Tokens)
	p, ok := d.try(q.where()+", all but the last token as ids, two more", rest, rest.Ask)
	return !ok || p.answer.Counted() < len(rest.Tokens)
}

// ignoresEOS reports whether a server that is told to ignore the token that ends a text gives all of
// the right answer: then it was that token at which it had ended.
func (d *doctor) ignoresEOS(q *request) bool {
	p, ok := d.try(q.where()+", with ignore_eos", q.ref, q.ask.with("ignore_eos", true))
	return ok && p.right && p.answer.Counted() >= len(q.ref.Tokens)
}

// ends decides which answers that ended early ended with the token that ends a text: the reference
// does not say which token that is, where the model's files are not at hand.
func (d *doctor) ends() {
	for _, q := range d.requests {
		if q.j.fault != short || !q.j.unsure {
			continue
		}
		next := q.ref.Tokens[q.j.at]
		special, known := false, false
		if d.model.Vocab != nil {
			special, known = d.model.Vocab.Special(next)
		}
		switch {
		case known && special, !known && d.ignoresEOS(q):
		case known || d.goesOn(q) || q.j.at < len(q.ref.Tokens)-1:
			continue
		}
		q.j.ended, q.j.fault, q.j.what = q.j.at, none, ""
		d.note("%s: ended by the server before token %d, %s, which is taken for the one that ends a text: the model's config.json would say it",
			q.where(), q.j.at, d.model.name(next))
	}
}

// swapped: the log-probability is that of the reference's token, the token is another.
func (d *doctor) swapped(q *request) *finding {
	a, k := &q.answer, q.j.at
	if q.j.fault != tokens || a.LogProbs == nil {
		return nil
	}
	if a.Tokens == nil {
		at, ok := d.model.parting(q.ref, a)
		if !ok || !slices.Contains(q.j.judged, "text") || at >= k {
			return nil
		}
		return proven(causeChoice, "%s: token %d has the log-probability of the reference's, %s, and is written as another", q.where(), at,
			d.model.name(q.ref.Tokens[at]))
	}
	if k >= len(a.LogProbs) || k >= len(q.ref.Rows) {
		return nil
	}
	row, noise := q.ref.Rows[k], q.ref.Rows[k].shift+a.Rounding
	right, _ := row.LogProb(q.ref.Tokens[k])
	own, known := row.LogProb(a.Tokens[k])
	if near(a.LogProbs[k], right, noise) && !(known && near(a.LogProbs[k], own, noise)) {
		return proven(causeChoice, "%s: token %d is %s with the log-probability %.5g, which is that of %s: what was chosen is right, what it is called is not",
			q.where(), k, d.model.name(a.Tokens[k]), a.LogProbs[k], d.model.name(q.ref.Tokens[k]))
	}
	return nil
}

// sampled: another seed gives another answer, or settings that leave no choice give the right one.
func (d *doctor) sampled(q *request) *finding {
	for _, seed := range []int{1, 2} {
		if p, ok := d.try(q.where()+", with a seed", q.ref, q.ask.with("seed", seed)); ok && !d.agree(q.ref, &q.answer, &p.answer) && d.still(q) {
			return proven(causeSampling, "%s: at temperature 0 the answer depends on the seed", q.where())
		}
	}
	penalties := q.ask.with("frequency_penalty", 0).with("presence_penalty", 0)
	for _, of := range []struct {
		what string
		ask  Ask
	}{{"top_k 1", q.ask.with("top_k", 1)}, {"no frequency and presence penalty", penalties},
		{"repetition_penalty 1", q.ask.with("repetition_penalty", 1)}} {
		if p, ok := d.try(q.where()+", with "+of.what, q.ref, of.ask); ok && p.right && d.still(q) {
			return proven(causeSampling, "%s: with %s it is right: the server has another default at temperature 0", q.where(), of.what)
		}
	}
	return nil
}

// notItsBest: the server's own log-probabilities have another token first.
func (d *doctor) notItsBest(q *request) *finding {
	a, k := &q.answer, q.j.at
	if q.j.fault != tokens || k >= len(a.Top) || k >= len(a.LogProbs) || k >= len(q.ref.Rows) {
		return nil
	}
	for text, p := range a.Top[k] {
		if p > a.LogProbs[k]+q.ref.Rows[k].shift+2*a.Rounding {
			return guess(causeSampling, "%s: token %d has the log-probability %.5g, and by the server's own figures %s has %.5g: at temperature 0 it "+
				"would be chosen", q.where(), k, a.LogProbs[k], quoted(text), p)
		}
	}
	return nil
}

// mapped: token by token, behind the right tokens, the server puts one token in the place of
// another wherever the reference has it.
func (d *doctor) mapped(q *request) *finding {
	if q.j.fault != tokens || q.answer.Tokens == nil || q.ref.Prompt == nil {
		return nil
	}
	const most = 16 // places
	var places []place
	for _, ref := range append([]*Reference{q.ref}, d.refs...) {
		for k := range ref.Tokens {
			if ref.Prompt == nil || len(places) == most || ref != q.ref && ref.Case == q.ref.Case {
				break
			}
			rest := ref.from(k)
			rest.Tokens, rest.Ask.Tokens = rest.Tokens[:1], 1
			p, ok := d.try("case "+ref.Case+", prompt and right tokens as ids, one more", rest, rest.Ask)
			if !ok || len(p.answer.Tokens) == 0 {
				return nil
			}
			places = append(places, place{want: ref.Tokens[k], is: p.answer.Tokens[0], right: p.right})
		}
	}
	return d.mapping(q, places)
}

// place is a position at which the server chose a token behind the right ones.
type place struct {
	want, is int
	right    bool
}

// mapping finds what wrong choices have in common.
func (d *doctor) mapping(q *request, places []place) *finding {
	to, times, right := map[int]int{}, map[int]int{}, 0
	for _, p := range places {
		if p.right {
			right++
			continue
		}
		if is, before := to[p.want]; before && is != p.is {
			return nil
		}
		to[p.want] = p.is
		times[p.want]++
	}
	for _, p := range places {
		if _, wrong := to[p.want]; wrong && p.right {
			return nil
		}
	}
	shift, wants := 0, 0
	for want, is := range to {
		switch back, mutual := to[is]; {
		case mutual && back == want:
			return proven(causeChoice, "%s: behind the right tokens it chooses %s where the reference chooses %s, and the other way round", q.where(),
				d.model.name(is), d.model.name(want))
		case times[want] > 1 && right > 0:
			return proven(causeChoice, "%s: behind the right tokens it chooses %s wherever the reference chooses %s, %d times, and is right elsewhere",
				q.where(), d.model.name(is), d.model.name(want), times[want])
		}
		if wants++; wants == 1 {
			shift = is - want
		} else if is-want != shift {
			shift = 0
		}
	}
	switch {
	case wants > 1 && shift != 0 && right == 0:
		return proven(causeChoice, "%s: all token ids are off by %d", q.where(), shift)
	case wants == 1 && right >= 3:
		for want, is := range to {
			return guess(causeChoice, "%s: behind the right tokens it chooses %s where the reference chooses %s, and is right in %d other places",
				q.where(), d.model.name(is), d.model.name(want), right)
		}
	}
	return nil
}
