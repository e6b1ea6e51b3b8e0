package serving

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/sanitize"
)

// fault is what is wrong with an answer, the first of these.
type fault int

const (
	none     fault = iota
	nothing        // the answer says nothing that could be judged
	prompt         // the server made other token ids of the prompt
	tokens         // it chose another token
	short          // it ended too early
	long           // it did not end
	ending         // it ended where it should, and the server says by something else
	texts          // the tokens are right, what it wrote of them is not
	logProbs       // the tokens are right, their log-probabilities are not
	others         // these are right, too, those of the tokens beside them are not
)

// judgement is what came of one answer.
type judgement struct {
	fault    fault
	at       int    // of fault tokens, short, long, logProbs and others: the token, from 0
	what     string // the fault, a sentence
	right    int    // tokens that are the reference's, or tied with it
	tie      int    // the first token that is not the reference's and may be, −1 if there is none
	ended    int    // where the answer ends before the reference's, −1 if it does not
	judged   []string
	misnamed bool    // the log-probabilities are of other tokens than the answer's
	worst    float64 // largest error of a log-probability, in nats
	unsure   bool    // of short: the reference's next token may be one that ends a text
}

func newJudgement() judgement { return judgement{tie: -1, ended: -1} }

func (j *judgement) fail(f fault, at int, format string, args ...any) {
	if j.fault == none {
		j.fault, j.at, j.what = f, at, fmt.Sprintf(format, args...)
	}
}

func (j *judgement) also(what string) {
	if !slices.Contains(j.judged, what) {
		j.judged = append(j.judged, what)
	}
}

// judge judges an answer by the reference.
func (m *Model) judge(ref *Reference, a *Answer) judgement {
	j := newJudgement()
	if a.Prompt != nil && ref.Prompt != nil {
		j.also("prompt")
		if !slices.Equal(a.Prompt, ref.Prompt) {
			j.fail(prompt, 0, "the server made other token ids of the prompt: %s", difference(a.Prompt, ref.Prompt))
		}
	}
	if j.misnamed = m.misnamed(ref, a); j.misnamed {
		a.Tokens, a.LogProbs, a.Texts, a.Top = nil, nil, nil, nil
	}
	ids := a.Tokens
	if ids != nil {
		j.also("tokens")
		m.tokens(&j, ref, a)
		if right, known := m.text(ref, ids, a.Text); known && !a.Called {
			j.also("text")
			if !right {
				j.fail(texts, 0, "the tokens are the reference's, the text is not: %s", m.quote(ref, ids, a.Text))
			}
		}
	} else {
		ids = m.unnamed(&j, ref, a)
	}
	m.logProbs(&j, ref, a, ids)
	if len(j.judged) == 0 && j.fault == none {
		j.fail(nothing, 0, "the answer has no token ids and no log-probabilities, and the reference's text is not known")
	}
	return j
}

// misnamed reports whether the tokens that the log-probabilities are of are neither the reference's nor those of the
// text: mlx_lm.server 0.32.2 names any of several that are asked for.
func (m *Model) misnamed(ref *Reference, a *Answer) bool {
	if m.Vocab == nil || !a.Named || beginning(a.Tokens, ref.Tokens) {
		return false
	}
	ids := a.Tokens
	if unknown := slices.IndexFunc(ids, func(id int) bool { _, ok := m.token(id); return !ok }); unknown >= 0 {
		ids = ids[:unknown]
	}
	written := func(text string) string { return strings.TrimRight(strings.TrimLeft(text, " "), "\uFFFD") }
	is := written(a.Text)
	for _, skipSpecial := range []bool{true, false} {
		text, ok := m.Vocab.Text(ids, skipSpecial)
		text = written(text)
		if n := min(len(is), len(text)); !ok || n == 0 || is[:n] == text[:n] {
			return false
		}
	}
	return true
}

// tokens compares the ids of an answer with the reference's.
func (m *Model) tokens(j *judgement, ref *Reference, a *Answer) {
	for k, id := range a.Tokens {
		switch {
		case k >= len(ref.Tokens):
			m.length(j, ref, a, len(a.Tokens))
			return
		case id == ref.Tokens[k]:
			j.right++
		case m.tied(ref, a, k, id):
			j.tie = k
			j.right++
			return
		default:
			j.fail(tokens, k, "token %d is %s, the reference's is %s%s", k, m.name(id), m.name(ref.Tokens[k]), gap(ref, k, id))
			return
		}
	}
	m.length(j, ref, a, len(a.Tokens))
}

// tied reports whether an answer may choose a token in place of the reference's.
func (m *Model) tied(ref *Reference, a *Answer, k, id int) bool {
	if k >= len(ref.Rows) {
		return false
	}
	best, own := ref.Tokens[k], math.NaN()
	if k < len(a.Top) && k < len(a.LogProbs) { // texts may be those of other tokens, too
		other, _ := m.token(id)
		text, ok := m.token(best)
		p, known := a.Top[k][other]
		b, told := a.Top[k][text]
		if ok && known && told && near(a.LogProbs[k], p, a.Rounding) {
			own = b - p
		}
	}
	return ref.Rows[k].tied(best, id, own, 2*a.Rounding)
}

// gap says how far the reference's logits of its own token and another are apart.
func gap(ref *Reference, k, id int) string {
	if k >= len(ref.Rows) {
		return ""
	}
	row := ref.Rows[k]
	g, _ := row.Logit(ref.Tokens[k])
	other, ok := row.Logit(id)
	switch {
	case ok:
		return fmt.Sprintf("; its logit is %.3g lower, noise %.2g", g-other, row.noise)
	case row.Whole():
		return ", which has no such token"
	}
	return fmt.Sprintf("; its logit is %.3g lower or more, noise %.2g", g-row.Top[len(row.Top)-1].Value, row.noise)
}

// length judges where an answer of n tokens, the reference's, ends.
func (m *Model) length(j *judgement, ref *Reference, a *Answer, n int) {
	for k := range min(n, len(ref.Tokens)) - 1 {
		if m.ends(ref.Tokens[k]) {
			j.fail(long, k+1, "the answer goes on after token %d, %s, which ends a text", k, m.name(ref.Tokens[k]))
			return
		}
	}
	want := len(ref.Tokens)
	switch {
	case n == want:
		if a.Finish == "stop" && a.Reason == "" && m.EOS != nil && n > 0 && !m.ends(ref.Tokens[n-1]) {
			j.fail(ending, n-1, "the answer has all %d tokens that were asked for, and the server says that the text ended, by \"stop\" and not by \"length\"", n)
		}
	case n > want:
		extra := -1
		if a.Tokens != nil {
			extra = a.Tokens[want]
		}
		if n == want+1 && a.Stopped() && (m.EOS == nil || extra < 0 || m.ends(extra)) {
			return // the token that ends the text, counted or not
		}
		j.fail(long, want, "the answer has %d tokens, %d were asked for", n, want)
	case n > 0 && m.ends(ref.Tokens[n-1]) && !a.Stopped():
		j.fail(ending, n-1, "the answer ends with %s, which ends a text, and the server says that it ended by length", m.name(ref.Tokens[n-1]))
	case n > 0 && m.ends(ref.Tokens[n-1]), m.ends(ref.Tokens[n]) && a.Stopped():
		j.ended = n
	case !a.Stopped():
		j.fail(short, n, "the answer has %d of %d tokens, and the server says that it ended by length", n, want)
	default:
		j.ended = n
		j.unsure = m.EOS == nil && a.Reason == ""
		reason := ""
		if a.Reason != "" {
			reason = ", by " + sanitize.Line(a.Reason)
		}
		j.fail(short, n, "the server ended the answer%s after %d of %d tokens, where the reference goes on with %s", reason, n, want,
			m.name(ref.Tokens[n]))
	}
}

// unnamed judges an answer that does not say its token ids, by its text and log-probabilities. It
// returns the tokens that it has by these.
func (m *Model) unnamed(j *judgement, ref *Reference, a *Answer) []int {
	if a.Text == "" && a.Stopped() && a.Counted() <= 0 { // it ended at once
		j.also("text")
		m.length(j, ref, a, 0)
		return nil
	}
	n := m.counted(ref, a)
	ids := ref.Tokens[:min(n, len(ref.Tokens))]
	right, known := m.text(ref, ids, a.Text)
	if known && !right && len(ids) > 0 && a.Stopped() { // the last one may end the text, and not be written
		right, _ = m.text(ref, ids[:len(ids)-1], a.Text)
	}
	at := firstOff(ref, a, ids)
	if known {
		j.also("text")
	}
	if at != unjudged {
		j.also("logprobs")
	}
	switch {
	case known && right:
	case !known && at == allRight:
	case !known && at == unjudged:
		return nil
	case at == allRight:
		j.fail(texts, 0, "the log-probabilities are those of the reference's tokens, the text is not: %s", m.quote(ref, ids, a.Text))
		return ids
	case at == unjudged:
		k, _ := m.parting(ref, a)
		j.fail(tokens, k, "the text is not the reference's: %s", m.quote(ref, ids, a.Text))
		return nil
	default:
		j.right = at
		// A tie shows in what follows it, or in the text.
		parts := []int{at, at - 1}
		if k, ok := m.parting(ref, a); ok && known {
			parts = []int{min(at, k)}
		}
		for _, k := range parts {
			if k >= 0 && m.otherChoice(ref, a, k) {
				j.tie, j.right = k, k+1
				return ids[:k]
			}
		}
		if known {
			j.fail(tokens, at, "the text is not the reference's: %s; from token %d on its log-probabilities are others, too",
				m.quote(ref, ids, a.Text), at)
			return nil
		}
		want, _ := ref.Rows[at].LogProb(ref.Tokens[at])
		j.fail(tokens, at, "the log-probability of token %d is %.4g, that of the reference's token is %.4g", at, a.LogProbs[at], want)
		return nil
	}
	j.right = len(ids)
	if text := plain(a.Text); known && m.Vocab == nil && a.Stopped() && n >= len(ref.Tokens) && len(text) < len(ref.plain()) {
		j.fail(short, 0, "the server ended the text behind %s, and the reference goes on: %s", quoted(a.Text), quoted(ref.Text))
		return nil
	}
	m.length(j, ref, a, n)
	return ids
}

// counted is how many tokens an answer has that does not name them: by its usage, its
// log-probabilities or its text, or else as many as were asked for.
func (m *Model) counted(ref *Reference, a *Answer) int {
	if n := a.Counted(); n >= 0 {
		return n
	}
	for n := len(ref.Tokens); n > 0; n-- {
		if slices.Contains(m.texts(ref.Tokens[:n]), plain(a.Text)) {
			return n
		}
	}
	return len(ref.Tokens)
}

// What firstOff returns where no token is off.
const (
	allRight = -1
	unjudged = -2
)

// firstOff returns the first of the reference's tokens that has another log-probability.
func firstOff(ref *Reference, a *Answer, ids []int) int {
	n := min(len(ids), len(a.LogProbs), len(ref.Rows))
	if n == 0 {
		return unjudged
	}
	for k := range n {
		p, ok := ref.Rows[k].LogProb(ids[k])
		if ok && !near(a.LogProbs[k], p, ref.Rows[k].shift+a.Rounding) {
			return k
		}
	}
	return allRight
}

// near reports whether two log-probabilities agree. One that was null is not compared.
func near(a, b, noise float64) bool { return math.IsNaN(a) || math.Abs(a-b) <= noise }

// otherChoice reports whether the log-probability of token k is that of another token that is tied
// with the reference's.
func (m *Model) otherChoice(ref *Reference, a *Answer, k int) bool {
	row := ref.Rows[k]
	for _, l := range row.Top {
		p, _ := row.LogProb(l.Token)
		if l.Token != ref.Tokens[k] && row.tied(ref.Tokens[k], l.Token, math.NaN(), 0) && near(a.LogProbs[k], p, row.shift+a.Rounding) {
			return true
		}
	}
	return false
}

// parting is the first token at which a text is not the reference's, by the vocabulary or by the
// texts of tokens among the log-probabilities; ok is false if neither tells.
func (m *Model) parting(ref *Reference, a *Answer) (k int, ok bool) {
	if m.Vocab != nil {
		for k := len(ref.Tokens); k > 0; k-- {
			for _, t := range m.texts(ref.Tokens[:k]) {
				if t != "" && strings.HasPrefix(plain(a.Text), t) {
					return k, true
				}
			}
		}
		return 0, true
	}
	want, is := solid(ref.plain()), ""
	for k, t := range a.Texts {
		if is += solid(t); want != "" && !strings.HasPrefix(want, is) {
			return k, is != "" && strings.HasPrefix(solid(a.Text), is)
		}
	}
	return 0, false
}

// solid is a text without its spaces, which tokens have or have not.
func solid(text string) string { return strings.ReplaceAll(text, " ", "") }

// logProbs compares the log-probabilities of the tokens that were chosen.
func (m *Model) logProbs(j *judgement, ref *Reference, a *Answer, ids []int) {
	if a.LogProbs == nil || ref.Rows == nil || ids == nil {
		return
	}
	j.also("logprobs")
	if n := len(a.Tokens); a.Tokens != nil && (len(a.LogProbs) < n-1 || len(a.LogProbs) > n+1) {
		j.fail(logProbs, 0, "the answer has %d tokens and %d log-probabilities", n, len(a.LogProbs))
		return
	}
	for k := range min(len(ids), len(a.LogProbs), len(ref.Rows), j.right) {
		p, ok := ref.Rows[k].LogProb(ids[k])
		if !ok || math.IsNaN(a.LogProbs[k]) {
			continue
		}
		off, noise := math.Abs(a.LogProbs[k]-p), ref.Rows[k].shift+a.Rounding
		j.worst = max(j.worst, off)
		if off > noise {
			j.fail(logProbs, k, "token %d is right, its log-probability is %.5g and not %.5g: %.2g off, noise %.2g", k, a.LogProbs[k], p,
				off, noise)
		}
		m.others(j, ref, a, k)
	}
}

// others compares the most probable tokens of a position. A server that names them by their texts returns one
// of several with the same text: what it has is at most what the reference has at its rank, and is that
// where it returned as many as were asked for. Tokens that only the model has, and not the tokenizer, may be among
// them: MAX 26.7.0 returns these, too.
func (m *Model) others(j *judgement, ref *Reference, a *Answer, k int) {
	if k >= len(a.Top) {
		return
	}
	row, noise := ref.Rows[k], ref.Rows[k].shift+a.Rounding
	all := row.All == row.LSE
	is := slices.SortedFunc(maps.Values(a.Top[k]), func(a, b float64) int { return cmp.Compare(b, a) })
	for i := range min(len(is), len(row.Top)) {
		p := row.Top[i].Value - row.All
		if all && is[i] > p+noise || len(is) >= topLogProbs && i < topLogProbs && is[i] < p-noise {
			j.fail(others, k, "token %d is right, the log-probability of rank %d beside it is %.5g and not %.5g: %.2g off, noise %.2g", k, i+1,
				is[i], p, math.Abs(is[i]-p), noise)
			return
		}
	}
	for _, l := range row.Top {
		text, ok := m.token(l.Token)
		p, told := a.Top[k][text]
		shared := func(o generation.Logit) bool {
			t, _ := m.token(o.Token)
			return o.Token != l.Token && t == text
		}
		if want := l.Value - row.All; ok && told && math.Abs(p-want) > noise && !slices.ContainsFunc(row.Top, shared) &&
			!strings.ContainsRune(text, '\uFFFD') && plain(text) != "" && p > row.Top[len(row.Top)-1].Value-row.All {
			j.fail(others, k, "token %d is right, the log-probability of %s beside it is %.5g and not %.5g: %.2g off, noise %.2g", k,
				m.name(l.Token), p, want, math.Abs(p-want), noise)
			return
		}
	}
}

// name shows a token: its id, and its text where that is known.
func (m *Model) name(id int) string {
	if text, ok := m.token(id); ok {
		return fmt.Sprintf("%d (%s)", id, quoted(text))
	}
	return fmt.Sprint(id)
}

// quote shows what was written and what should be.
func (m *Model) quote(ref *Reference, ids []int, text string) string {
	want := ref.Text
	if t := m.texts(ids); t != nil {
		want = t[0]
	}
	return fmt.Sprintf("%s, not %s", quoted(text), quoted(want))
}

func quoted(text string) string {
	const most = 60 // bytes
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Sprintf("%q", sanitize.Line(text))
}

// alike is with how many ids two lists begin alike.
func alike(a, b []int) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// difference shows where two lists of ids part.
func difference(is, want []int) string {
	k := alike(is, want)
	show := func(ids []int) string {
		const before, after = 1, 4
		from, to := max(0, k-before), min(len(ids), k+after)
		text := strings.Trim(fmt.Sprint(ids[from:to]), "[]")
		if from > 0 {
			text = "… " + text
		}
		if to < len(ids) {
			text += " …"
		}
		return "[" + text + "]"
	}
	return fmt.Sprintf("%d ids, not %d, from id %d on %s, not %s", len(is), len(want), k, show(is), show(want))
}
