package serving

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/report"
)

// Causes that show where a request is asked again: by chance, among others, with another setting, or
// after something that the server keeps.

// repeated sends a request again, alone, several times, and as many times more as long as it is right: one that samples
// may be right in some. None where that failed.
func (d *prober) repeated(q *request) []*request {
	if q.again != nil {
		return q.again
	}
	for n := 0; n < repeats || n < 2*repeats && countRight(q.again) == n; n++ {
		p := d.anew(q, "again and alone", nil)
		if !p.came() {
			q.again = []*request{}
			break
		}
		q.again = append(q.again, p)
	}
	return q.again
}

func countRight(got []*request) (n int) {
	for _, p := range got {
		if p.right() {
			n++
		}
	}
	return n
}

// crowded: right alone, wrong among others.
func (d *prober) crowded(q *request) *report.Cause {
	got := d.repeated(q)
	switch right := countRight(got); {
	case len(got) == 0:
		return nil
	case right == len(got):
		return q.proven(causeConcurrency, "wrong among %d requests; alone it is right each time", d.Parallel)
	case right > 0:
		return d.varies(q, fmt.Sprintf("asked %d times alone, it is right %d times", len(got), right))
	case q.twin != nil && same(got):
		return q.proven(causeCache, "right the first time, and wrong each time after, alone too: "+
			"what the server kept of the prompt is not what it computed")
	}
	return nil
}

// repeat: the same request, alone, is answered otherwise.
func (d *prober) repeat(q *request) *report.Cause {
	got := d.repeated(q)
	switch right := countRight(got); {
	case len(got) == 0:
		return nil
	case !same(got):
		return d.varies(q, fmt.Sprintf("asked %d times more, alone and at temperature 0, the server gives different answers, "+
			"%d of them right", len(got), right))
	case right == 0 && agree(q, got[0]):
		return nil // it is always wrong in the same way
	case right == 0:
		return q.guess(causeCache, "another answer the first time than each time after")
	}
	// Right each time after: does it depend on what was asked before?
	if i := slices.Index(d.requests, q); i > 0 && q.way != AtOnce {
		before := d.requests[i-1]
		d.anew(before, "again", nil)
		if d.still(q, "after that") {
			return q.proven(causeCache, "wrong after %s was asked, twice, and right otherwise: "+
				"the server takes what it kept of the one for the other", before.where())
		}
	}
	return nil
}

// remedy is a setting that makes a wrong request right where the server has a fault of its own. Those
// that may make answers vary are tried for these, too, which takes many requests.
type remedy struct {
	cause, name string
	vary        bool
	keys        map[string]any
}

var remedies = []remedy{
	{causeSampling, "top_k 1", true, map[string]any{"top_k": 1}},
	{causeCache, "a cache_salt of its own", true, map[string]any{"cache_salt": ""}}, // another one each time
	{causeSampling, "no frequency and presence penalty", false, map[string]any{frequency: 0, presence: 0}},
	{causeSampling, "repetition_penalty 1", false, map[string]any{repetition: 1}},
}

// remedied reports whether a request is right with a remedy.
func (d *prober) remedied(q *request, r remedy) bool {
	keys := r.keys
	if keys["cache_salt"] != nil {
		keys = map[string]any{"cache_salt": fmt.Sprintf("goparity-%s-%d", q.ref.Case, len(d.out.Probes))}
	}
	return d.anew(q, "with "+r.name, keys).right()
}

// varies is what makes answers vary: a choice by chance, or what the server keeps
// sometimes, as a cache that evicts.
func (d *prober) varies(q *request, how string) *report.Cause {
	for _, r := range remedies {
		if r.vary && d.cures(q, r) {
			return q.proven(r.cause, "%s; with %s it is right each time, and without, asked in between, it is not", how, r.name)
		}
	}
	return q.guess(causeSampling, "%s: it chooses by chance, or keeps something only sometimes", how)
}

// cures reports whether a request that is right sometimes is right each time with a remedy, while it
// is wrong in between as it was, so often that it is no chance. The two do not take turns: what a
// server keeps may.
func (d *prober) cures(q *request, r remedy) bool {
	wrong := 0
	for n := range cured {
		if !d.remedied(q, r) {
			return false
		}
		for range 1 + n%2 {
			p := d.anew(q, "as before", nil)
			if !p.came() {
				return false
			}
			if !p.right() {
				wrong++
			}
		}
	}
	return wrong >= uncured
}

// otherDefault: a setting makes a request right that is always wrong, or a seed makes it another: the server has another
// default, or keeps what it must not.
func (d *prober) otherDefault(q *request) *report.Cause {
	for seed := 1; seed <= 2; seed++ {
		p := d.anew(q, "with a seed", map[string]any{"seed": seed})
		if p.came() && !agree(q, p) && d.still(q, "as before") {
			return q.proven(causeSampling, "at temperature 0 the answer depends on the seed")
		}
	}
	for _, r := range remedies {
		if d.remedied(q, r) && d.still(q, "as before") {
			return q.proven(r.cause, "with %s it is right, and without, asked after that, it is not", r.name)
		}
	}
	return nil
}

// still reports whether a request is answered as it was, wrong.
func (d *prober) still(q *request, how string) bool {
	p := d.anew(q, how, nil)
	return !p.right() && agree(q, p)
}

// others: the answer is that of a prompt that was asked before.
func (d *prober) others(q *request) *report.Cause {
	for _, o := range d.requests[:slices.Index(d.requests, q)] {
		if o.ref.Prompt != nil && !slices.Equal(o.ref.Prompt, q.ref.Prompt) && d.speaks(o.ref, &q.answer) {
			return q.proven(causeCache, "the answer is that to %s, which was asked before and begins with the same %d tokens", o.where(),
				alike(o.ref.Prompt, q.ref.Prompt))
		}
	}
	return nil
}

// evicted: the answer is right once another prompt was asked, of which the server can use nothing.
func (d *prober) evicted(q *request) *report.Cause {
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
	d.ids(q, "a prompt that begins otherwise", unlike)
	if d.anew(q, "after that", nil).right() {
		return q.proven(causeCache, "right after a prompt that begins otherwise was asked")
	}
	return nil
}

// agree reports whether two answers to a request came and say the same: the same tokens, or where one does not say
// which, the same text, with the same log-probabilities.
func agree(q, p *request) bool {
	a, b := &q.answer, &p.answer
	same := plain(a.Text) == plain(b.Text) // chats are trimmed, completions are not
	if a.Tokens != nil && b.Tokens != nil {
		same = slices.Equal(a.Tokens, b.Tokens)
	}
	for k := range min(len(a.LogProbs), len(b.LogProbs), len(q.ref.Rows)) {
		same = same && near(a.LogProbs[k], b.LogProbs[k], q.ref.noise(k, a)+b.Rounding)
	}
	return same && q.came() && p.came()
}

// same reports whether all answers say the same.
func same(all []*request) bool {
	return !slices.ContainsFunc(all, func(p *request) bool { return !agree(all[0], p) })
}

// speaks reports whether an answer is another reference's, as far as it goes.
func (d *prober) speaks(ref *Reference, a *Answer) bool {
	n := len(ref.Tokens)
	if c := a.Counted(); c >= 0 {
		n = min(n, c)
	}
	ids := ref.Tokens[:n]
	off, scored := firstOff(ref, a, ids)
	switch allRight := scored && off < 0; {
	case n == 0, n == 1 && !allRight: // one token may be the same by chance
		return false
	case a.Tokens != nil:
		return slices.Equal(a.Tokens[:n], ids)
	default:
		right, known := d.Model.text(ref, ids, a.Text)
		if !slices.Contains(d.Model.texts(ids), plain(a.Text)) { // any text is the end of a longer one
			right = right && ref.plain() != "" && strings.HasPrefix(ref.plain(), plain(a.Text))
		}
		return known && right || !known && allRight && n > 1
	}
}
