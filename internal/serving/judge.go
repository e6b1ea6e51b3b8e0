package serving

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/report"
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

// judgement is what came of one answer: of the report's facts those that it tells, with the fault as text.
type judgement struct {
	report.ServedRequest
	fault    fault
	at       int  // of fault tokens, short, long, logProbs and others: the token, from 0
	misnamed bool // the log-probabilities are of other tokens than the answer's
	unsure   bool // of short: the reference's next token may be one that ends a text
}

func (j *judgement) fail(f fault, at int, format string, args ...any) {
	if j.fault == none {
		j.fault, j.at, j.Text = f, at, fmt.Sprintf(format, args...)
	}
}

func (j *judgement) also(what string) {
	if !slices.Contains(j.Judged, what) {
		j.Judged = append(j.Judged, what)
	}
}

// judge judges an answer by the reference.
func (m *Model) judge(ref *Reference, a *Answer) (j judgement) {
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
	if ids == nil {
		ids = m.unnamed(&j, ref, a)
	} else {
		j.also("tokens")
	}
	if ids != nil {
		m.tokens(&j, ref, a, ids)
	}
	if right, known := m.text(ref, ids, a.Text); known && a.Tokens != nil && !a.Called {
		j.also("text")
		if !right {
			j.fail(texts, 0, "the tokens are the reference's, the text is not: %s", m.quote(ref, ids, a.Text))
		}
	}
	m.logProbs(&j, ref, a, ids)
	if len(j.Judged) == 0 {
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
	if unknown := slices.IndexFunc(ids, func(id int) bool { return !m.Vocab.has(id) }); unknown >= 0 {
		ids = ids[:unknown]
	}
	for _, skipSpecial := range []bool{true, false} {
		text, ok := m.Vocab.Text(ids, skipSpecial)
		is, text := plain(a.Text), plain(text)
		if !ok || strings.HasPrefix(is, text) || strings.HasPrefix(text, is) {
			return false
		}
	}
	return true
}

// unknown is a token of which only that is known that it is not the reference's, or after the last of these.
const unknown = -1

// tokens compares the tokens of an answer with the reference's.
func (m *Model) tokens(j *judgement, ref *Reference, a *Answer, ids []int) {
	for k, id := range ids[:min(len(ids), len(ref.Tokens))] {
		switch {
		case id == ref.Tokens[k]:
			j.Right++
			continue
		case id == unknown && m.otherChoice(ref, a, k), m.tied(ref, a, k, id):
			j.Tie, j.Right = &k, k+1
		case id == unknown:
			j.fail(tokens, k, "token %d is not the reference's, %s: the text is %s", k, m.name(ref.Tokens[k]), m.quote(ref, ref.Tokens, a.Text))
		default:
			j.fail(tokens, k, "token %d is %s, the reference's is %s%s", k, m.name(id), m.name(ref.Tokens[k]), gap(ref, k, id))
		}
		return
	}
	m.length(j, ref, a, ids)
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
	row, more := ref.Rows[k], ""
	best, _ := row.Logit(ref.Tokens[k])
	other, known := row.Logit(id)
	if !known {
		other, more = row.Top[len(row.Top)-1].Value, " or more"
	}
	return fmt.Sprintf("; its logit is %.3g lower%s, noise %.2g", best-other, more, row.noise)
}

// length judges where an answer ends whose tokens are the reference's.
func (m *Model) length(j *judgement, ref *Reference, a *Answer, ids []int) {
	n, want := len(ids), len(ref.Tokens)
	for k := range min(n, want) - 1 {
		if m.ends(ref.Tokens[k]) {
			j.fail(long, k+1, "the answer goes on after token %d, %s, which ends a text", k, m.name(ref.Tokens[k]))
			return
		}
	}
	ended := n > 0 && n <= want && m.ends(ref.Tokens[n-1])
	switch {
	case n == want+1 && a.Stopped() && (m.EOS == nil || ids[want] == unknown || m.ends(ids[want])): // the token that ends the text
	case n > want:
		j.fail(long, want, "the answer has %d tokens, %d were asked for", n, want)
	case n == want:
		if a.Finish == "stop" && a.Reason == "" && m.EOS != nil && n > 0 && !ended {
			j.fail(ending, n-1, "the answer has all %d tokens that were asked for, and the server says that the text ended, by \"stop\" and not by \"length\"", n)
		}
	case ended && !a.Stopped():
		j.fail(ending, n-1, "the answer ends with %s, which ends a text, and the server says that it ended by length", m.name(ref.Tokens[n-1]))
	case ended, m.ends(ref.Tokens[n]) && a.Stopped():
		j.Ended = &n
	case !a.Stopped():
		j.fail(short, n, "the answer has %d of %d tokens, and the server says that it ended by length", n, want)
	default:
		j.Ended, j.unsure = &n, m.EOS == nil && a.Reason == ""
		j.fail(short, n, "the server ended the answer after %d of %d tokens (%s), where the reference goes on with %s", n, want,
			sanitize.Line(cmp.Or(a.Reason, a.Finish)), m.name(ref.Tokens[n]))
	}
}

// unnamed are the tokens of an answer that does not say its ids, by its text and log-probabilities: those of the
// reference, and unknown where these part. It is nil where nothing tells them, or the text is wrong and they are right.
func (m *Model) unnamed(j *judgement, ref *Reference, a *Answer) []int {
	n := a.Counted()
	if a.Text == "" && a.Stopped() && n <= 0 { // it ended at once
		j.also("text")
		return []int{}
	}
	part, whole, told := m.parting(ref, a)
	if n < 0 && whole {
		n = part
	} else if n < 0 { // as many as were asked for
		n = len(ref.Tokens)
	}
	ids := slices.Clone(ref.Tokens[:min(n, len(ref.Tokens))])
	right, known := m.text(ref, ids, a.Text)
	if known && !right && len(ids) > 0 && a.Stopped() { // the last one may end the text, and not be written
		right, _ = m.text(ref, ids[:len(ids)-1], a.Text)
	}
	at, scored := firstOff(ref, a, ids)
	if known {
		j.also("text")
	}
	if scored {
		j.also("logprobs")
	}
	switch allRight := scored && at < 0; {
	case !known && !scored:
		return nil
	case known && right, !known && allRight:
		if known && m.Vocab == nil && a.Stopped() && n >= len(ref.Tokens) && len(plain(a.Text)) < len(ref.plain()) {
			j.Right = len(ids)
			j.fail(short, 0, "the server ended the text after %s, and the reference goes on: %s", quoted(a.Text), quoted(ref.Text))
			return nil
		}
		return append(ids, slices.Repeat([]int{unknown}, max(0, n-len(ids)))...)
	case allRight:
		j.fail(texts, 0, "the log-probabilities are those of the reference's tokens, the text is not: %s", m.quote(ref, ids, a.Text))
		return ids
	case !scored:
		at = max(0, min(part, len(ids)-1))
	case known && told:
		at = min(at, part)
	case at > 0 && !m.otherChoice(ref, a, at) && m.otherChoice(ref, a, at-1): // a tie shows in what follows it
		at--
	}
	return append(ids[:at], unknown)
}

// firstOff returns the first of the reference's tokens that has another log-probability, −1 if none has; told is false
// where there is none to compare.
func firstOff(ref *Reference, a *Answer, ids []int) (off int, told bool) {
	n := min(len(ids), len(a.LogProbs), len(ref.Rows))
	for k := range n {
		p, ok := ref.Rows[k].LogProb(ids[k])
		if ok && !near(a.LogProbs[k], p, ref.noise(k, a)) {
			return k, true
		}
	}
	return -1, n > 0
}

// near reports whether two log-probabilities agree. One that was null is not compared.
func near(a, b, noise float64) bool { return math.IsNaN(a) || math.Abs(a-b) <= noise }

// noise is by how much an answer's log-probabilities of a position may be off.
func (r *Reference) noise(k int, a *Answer) float64 { return r.Rows[k].shift + a.Rounding }

// otherChoice reports whether the log-probability of token k is that of another token that is tied
// with the reference's.
func (m *Model) otherChoice(ref *Reference, a *Answer, k int) bool {
	if k >= min(len(ref.Rows), len(a.LogProbs)) {
		return false
	}
	row := ref.Rows[k]
	return slices.ContainsFunc(row.Top, func(l generation.Logit) bool {
		p, _ := row.LogProb(l.Token)
		return l.Token != ref.Tokens[k] && row.tied(ref.Tokens[k], l.Token, math.NaN(), 0) && near(a.LogProbs[k], p, ref.noise(k, a))
	})
}

// parting is the first token at which a text is not the reference's, by the vocabulary or by the texts of tokens among
// the log-probabilities, and whether the text is whole before it; ok is false if neither tells.
func (m *Model) parting(ref *Reference, a *Answer) (k int, whole, ok bool) {
	if m.Vocab != nil {
		for k = len(ref.Tokens); k > 0; k-- {
			texts, is := m.texts(ref.Tokens[:k]), plain(a.Text)
			if slices.ContainsFunc(texts, func(t string) bool { return t != "" && strings.HasPrefix(is, t) }) {
				return k, slices.Contains(texts, is), true
			}
		}
		return 0, false, true
	}
	solid := strings.NewReplacer(" ", "") // tokens have spaces or not
	want, is := solid.Replace(ref.plain()), ""
	for k, t := range a.Texts {
		if is += solid.Replace(t); want != "" && !strings.HasPrefix(want, is) {
			return k, false, is != "" && strings.HasPrefix(solid.Replace(a.Text), is)
		}
	}
	return 0, false, false
}

const improbable = "token %d is right, %s is %.5g and not %.5g: %.2g off, noise %.2g"

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
	for k := range min(len(ids), len(a.LogProbs), len(ref.Rows), j.Right) {
		p, ok := ref.Rows[k].LogProb(ids[k])
		if !ok || math.IsNaN(a.LogProbs[k]) {
			continue
		}
		off, noise := math.Abs(a.LogProbs[k]-p), ref.noise(k, a)
		if j.LogProb = max(j.LogProb, report.Float(off)); off > noise {
			j.fail(logProbs, k, improbable, k, "its log-probability", a.LogProbs[k], p, off, noise)
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
	row, noise := ref.Rows[k], ref.noise(k, a)
	wrong := func(of string, is, want float64) {
		j.fail(others, k, improbable, k, "the log-probability of "+of+" beside it", is, want, math.Abs(is-want), noise)
	}
	is := slices.SortedFunc(maps.Values(a.Top[k]), func(a, b float64) int { return cmp.Compare(b, a) })
	for i := range min(len(is), len(row.Top)) {
		want := row.Top[i].Value - row.All
		if row.All == row.LSE && is[i] > want+noise || len(is) >= topLogProbs && i < topLogProbs && is[i] < want-noise {
			wrong(fmt.Sprintf("rank %d", i+1), is[i], want)
		}
	}
	least, sharing := row.Top[len(row.Top)-1].Value-row.All, map[string]int{}
	for _, l := range row.Top {
		text, _ := m.token(l.Token)
		sharing[text]++
	}
	for _, l := range row.Top {
		text, ok := m.token(l.Token)
		p, told := a.Top[k][text]
		legible := ok && sharing[text] == 1 && !broken(text) && plain(text) != ""
		if want := l.Value - row.All; legible && told && math.Abs(p-want) > noise && p > least {
			wrong(m.name(l.Token), p, want)
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

// want is the text that is right for tokens.
func (m *Model) want(ref *Reference, ids []int) string {
	if t := m.texts(ids); t != nil {
		return t[0]
	}
	return ref.Text
}

// quote shows what was written and what should be.
func (m *Model) quote(ref *Reference, ids []int, text string) string {
	return fmt.Sprintf("%s, not %s", quoted(text), quoted(m.want(ref, ids)))
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
	const most = 4
	k := alike(is, want)
	show := func(ids []int) []int { return ids[k:min(len(ids), k+most)] }
	return fmt.Sprintf("%d ids, not %d; from id %d on %v, not %v", len(is), len(want), k, show(is), show(want))
}
