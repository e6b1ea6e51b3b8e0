package serving

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/report"
)

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
	asIDs := q
	if q.ref.Ask.As != AsIDs {
		if asIDs = d.ids(q, "the reference's ids", want); !asIDs.came() {
			return nil
		}
	}
	if !asIDs.right() {
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
	count, want, isChat := q.answer.PromptCount, len(q.ref.Prompt), q.ref.Ask.As == AsChat
	cause := map[int]string{want + 1: causeBOSTwice, want - 1: causeBOSMissing}[count]
	switch {
	case q.ref.Ask.As == AsIDs || q.ref.Prompt == nil:
	case count >= 0 && (cause != "" || isChat && count != want):
		cause = cmp.Or(cause, causeTemplate)
		return q.guess(cause, "the server counts %d tokens of the prompt, the reference %d", count, want)
	case isChat && d.ids(q, "the reference's ids", q.ref.Prompt).right():
		return q.guess(causeTemplate, "the reference's token ids are answered right, the messages are not")
	}
	return nil
}

// ids asks other ids in place of a prompt, for the same answer.
func (d *prober) ids(q *request, how string, ids []int) *request {
	ref := *q.ref
	ref.Prompt = nil // it does not judge the ids of the prompt
	ref.Ask = Ask{As: AsIDs, IDs: ids, Tokens: ref.Ask.Tokens}
	return d.try(q, how, &ref)
}

// written: the tokens are right, the text is not.
func (d *prober) written(q *request) *report.Cause {
	ids := q.answer.Tokens
	if ids == nil {
		ids = q.ref.Tokens
	}
	is, want := plain(q.answer.Text), plain(d.Model.want(q.ref, ids))
	if q.answer.Finish == "stop" && len(is) < len(want) && strings.HasPrefix(want, is) {
		return q.proven(causeStop, "the tokens are right, and the text is cut off before its end as if a stop were in it: %s",
			q.j.Text)
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

// transformed: the log-probabilities are a known function of the right ones.
func (d *prober) transformed(q *request) *report.Cause {
	a, n := &q.answer, min(len(q.answer.LogProbs), len(q.ref.Rows), len(q.ref.Tokens))
	unnamed := a.Tokens == nil && !slices.Contains(q.j.Judged, "text")
	switch {
	case q.j.fault == others, q.j.fault == logProbs && len(a.LogProbs) < len(a.Tokens)-1:
		return q.proven(causeLogProbs, "%s", q.j.Text)
	case n == 0, q.j.fault != logProbs && !(q.j.fault == tokens && unnamed):
		return nil
	}
	want := func(k int) float64 { // the right one of token k; NaN where there is none
		if k < 0 || k >= n {
			return math.NaN()
		}
		p, _ := q.ref.Rows[k].LogProb(q.ref.Tokens[k])
		return p
	}
	heated := func(k int, temperature float64) float64 { // NaN where not all logits are known
		row, scaled, id := q.ref.Rows[k], []float64(nil), q.ref.Tokens[k]
		for _, x := range row.Known() {
			scaled = append(scaled, x/temperature)
		}
		if !row.Whole() || id >= len(scaled) {
			return math.NaN()
		}
		return scaled[id] - floats.LogSumExp(scaled)
	}
	offset, factor := a.LogProbs[0]-want(0), a.LogProbs[0]/want(0)
	heat := solve(func(temperature float64) float64 { return heated(0, temperature) }, a.LogProbs[0])
	for _, of := range []struct {
		text    string
		enough  int // tokens that show it surely
		formula func(k int) float64
	}{
		{"those of the token after", 3, func(k int) float64 { return want(k + 1) }},
		{"those of the token before", 3, func(k int) float64 { return want(k - 1) }},
		{"probabilities, without the logarithm", 2, func(k int) float64 { return math.Exp(want(k)) }},
		{"logits, from which no log-sum-exp was taken", 2, func(k int) float64 { return want(k) + q.ref.Rows[k].All }},
		{fmt.Sprintf("shifted by %.4g", offset), 2, func(k int) float64 { return want(k) + offset }},
		// To base 2, 1.443 times; to base 10, 0.4343 times; with the other sign, −1 times.
		{fmt.Sprintf("%.4g times the right ones", factor), 2, func(k int) float64 { return want(k) * factor }},
		{fmt.Sprintf("those of a softmax at temperature %.3g", heat), 2, func(k int) float64 { return heated(k, heat) }},
	} {
		fits, compared := true, 0
		for k, is := range a.LogProbs[:n] {
			if p := of.formula(k); !math.IsNaN(is) && !math.IsNaN(p) {
				compared++
				fits = fits && near(is, p, q.ref.noise(k, a))
			}
		}
		if fits && compared > 0 {
			c := q.proven(causeLogProbs, "the log-probabilities are %s", of.text)
			c.Proven = n >= of.enough
			return c
		}
	}
	return nil
}

// swapped: the log-probability is that of the reference's token, the token is another.
func (d *prober) swapped(q *request) *report.Cause {
	a, k := &q.answer, q.j.at
	if q.j.fault != tokens || k >= min(len(a.LogProbs), len(q.ref.Rows)) {
		return nil
	}
	row, noise := q.ref.Rows[k], q.ref.noise(k, a)
	right, _ := row.LogProb(q.ref.Tokens[k])
	another := slices.Contains(q.j.Judged, "text") // it shows that the token is another
	if a.Tokens != nil {
		own, known := row.LogProb(a.Tokens[k])
		another = !known || !near(a.LogProbs[k], own, noise)
	}
	if another && near(a.LogProbs[k], right, noise) {
		return q.proven(causeChoice, "token %d is another with the log-probability %.5g, which is that of %s: what was chosen is right, what it is called is not",
			k, a.LogProbs[k], d.Model.name(q.ref.Tokens[k]))
	}
	return nil
}

// solve is the temperature at which the best token has a log-probability, which falls as it rises; NaN at none.
func solve(heated func(temperature float64) float64, is float64) float64 {
	const low, high, steps = 0.05, 20.0, 1 << 30
	at := func(i int) float64 { return low * math.Pow(high/low, float64(i)/steps) }
	i := sort.Search(steps, func(i int) bool { return heated(at(i)) <= is })
	if i == 0 || i == steps {
		return math.NaN()
	}
	return at(i)
}
