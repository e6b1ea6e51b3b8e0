package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/report"
)

// Sampled is the way of requests that draw tokens.
const Sampled = "sampled"

// share is what a token has of the probability, among those that may be drawn.
type share struct {
	id int
	p  float64
}

// distribution is what tokens may be drawn, the largest first, and what is left for all others; 0: none may.
type distribution struct {
	shares []share
	rest   float64
}

// sampling is a setting of sampling, what it makes of a distribution, and what that may be taken for.
type sampling struct {
	distribution
	name     string
	keys     map[string]any
	mistakes []mistake
	behind   int // how many tokens of the reference's text are before the one that is drawn
}

// mistake is what would be drawn if a setting were obeyed otherwise: "as if it were ignored".
type mistake struct {
	as string
	distribution
}

// sampled draws a token of one text many times for each setting, and judges how often each came. The text is the one
// whose first token is the least certain. It is only asked where everything else is right. Draws of all settings are on
// their way together: one that is wrong is drawn again without others, which tells whether these are its fault.
func (r *run) sampled(ctx context.Context, draws int, out *report.Serving) {
	ref := r.uncertain()
	if ref == nil {
		r.note("not judged: sampling: no case has logits and a token that is not all but certain")
		return
	}
	plain, settings := r.undisturbed(ctx, ref), samplings(ref, r.model.drawable)
	plans, together := make([][]*request, len(settings)), []*request{}
	for i, s := range settings {
		plans[i] = drawing(ref, plain, s, draws)
		r.inTurn(ctx, plans[i][:1]) // a setting that the server refuses is refused once
	}
	for n := 1; n < draws; n++ {
		for _, plan := range plans {
			if plan[0].err == nil {
				together = append(together, plan[n])
			}
		}
	}
	r.atOnce(ctx, together, r.parallel)
	for i, s := range settings {
		q := r.judgeDraws(ref, s, plans[i])
		if ctx.Err() != nil {
			return
		}
		f := finding{causeDraws, q.Text, true}
		if q.Status == report.StatusFail {
			again := drawing(ref, plain, s, draws)
			r.atOnce(ctx, again, r.parallel)
			if alone := r.judgeDraws(ref, s, again); alone.Status == report.StatusPass {
				f = finding{causeConcurrency, q.Text + "; without requests of other settings beside them they are right", true}
			}
		}
		if q.Status == report.StatusIgnored {
			r.note("not judged: %s: %s", q.Way, q.Text)
		}
		if tellMore(out, q, f, s.behind); out.Verdict == report.Error {
			return
		}
	}
}

// without is what comes of a setting that got no answer: one that the server refuses is left out, one that may have
// ended it is an error.
func without(err error) report.Status {
	if e, ok := errors.AsType[*AnswerError](err); ok && !e.gone || errors.Is(err, errNameless) {
		return report.StatusIgnored
	}
	return report.StatusError
}

// undisturbed returns the keys that switch off what a server does to a distribution by default, as far as it takes them:
// llama.cpp keeps 40 tokens and those above a twentieth of the best, others read generation_config.json.
func (r *run) undisturbed(ctx context.Context, ref *Reference) map[string]any {
	for _, keys := range []map[string]any{{"top_p": 1, "min_p": 0, "top_k": -1}, {"top_p": 1, "min_p": 0, "top_k": 0}, {"top_p": 1, "min_p": 0}, {"top_p": 1}} {
		ask := ref.Ask.set(keys)
		ask.Tokens = 1
		if _, err := r.client.ask(ctx, ask); !refused(err) {
			return keys
		}
	}
	return nil
}

// uncertain returns the reference whose first token is the least certain; nil where all are all but certain.
func (r *run) uncertain() (best *Reference) {
	most := leastEntropy
	for _, ref := range r.refs {
		if len(ref.Rows) == 0 {
			continue
		}
		if h := entropy(sharesOf(ref.Rows[0], r.model.drawable, 1)); h > most {
			best, most = ref, h
		}
	}
	return best
}

func entropy(s distribution) (h float64) {
	for _, x := range s.shares {
		if x.p > 0 {
			h -= x.p * math.Log(x.p)
		}
	}
	return h
}

// drawable reports whether a token can be chosen: those that the tokenizer does not have cannot.
func (m *Model) drawable(id int) bool {
	_, ok := m.token(id)
	return ok || m.Vocab == nil
}

// sharesOf is the distribution of a row at a temperature, of the tokens that are known and can be drawn.
func sharesOf(row Row, drawable func(id int) bool, temperature float64) (s distribution) {
	var logits []float64
	add := func(id int, x float64) {
		s.shares, logits = append(s.shares, share{id: id}), append(logits, x/temperature)
	}
	all := row.LSE
	if row.Whole() {
		for id := 0; ; id++ {
			x, ok := row.Logit(id)
			if !ok {
				break
			}
			if drawable(id) {
				add(id, x)
			}
		}
		all = floats.LogSumExp(logits)
	} else {
		for _, l := range row.Top {
			add(l.Token, l.Value)
		}
		s.rest = 1
	}
	for i, x := range logits {
		s.shares[i].p = math.Exp(x - all)
		s.rest = max(s.rest-s.shares[i].p, 0)
	}
	slices.SortStableFunc(s.shares, func(a, b share) int { return cmp.Compare(b.p, a.p) })
	return s
}

// first is the distribution of its first tokens alone.
func (d distribution) first(n int) (out distribution) {
	mass := 0.0
	for _, x := range d.shares[:n] {
		mass += x.p
	}
	for _, x := range d.shares[:n] {
		out.shares = append(out.shares, share{x.id, x.p / mass})
	}
	return out
}

// samplings are the settings that are asked: of the first token, and of the second where the first came as the reference
// has it, which a draft model may have proposed. Each that leaves tokens out does so where the gap between the last
// that stays and the next is widest, so that no noise decides it.
func samplings(ref *Reference, drawable func(id int) bool) (list []sampling) {
	row := ref.Rows[0]
	plain := sharesOf(row, drawable, 1)
	greedy := mistake{"the best token were always taken", plain.first(1)}
	ignored := mistake{"it were ignored", plain}
	list = append(list, sampling{plain, "temperature 1", map[string]any{"temperature": 1}, []mistake{greedy}, 0})
	if len(ref.Rows) > 1 {
		second := sharesOf(ref.Rows[1], drawable, 1)
		list = append(list, sampling{second, "temperature 1, second token", map[string]any{"temperature": 1},
			[]mistake{{greedy.as, second.first(1)}}, 1})
	}
	if row.Whole() {
		list = append(list, sampling{sharesOf(row, drawable, coldest), fmt.Sprintf("temperature %g", coldest), map[string]any{"temperature": coldest},
			[]mistake{ignored, greedy, {"it were applied twice", sharesOf(row, drawable, coldest*coldest)}, {"logits were multiplied by it", sharesOf(row, drawable, 1/coldest)}}, 0})
	}
	n, widest := 0, decisive*row.noise
	for k := 2; k <= mostKept && k < len(plain.shares); k++ {
		if gap := math.Log(plain.shares[k-1].p / plain.shares[k].p); gap > widest {
			n, widest = k, gap
		}
	}
	if n == 0 {
		return list
	}
	best, last, next, mass := plain.shares[0].p, plain.shares[n-1].p, plain.shares[n].p, 0.0
	for _, x := range plain.shares[:n] {
		mass += x.p
	}
	fewer, more := mistake{"one token fewer were kept", plain.first(n - 1)}, mistake{"one token more were kept", plain.first(n + 1)}
	for _, s := range []struct {
		key   string
		value float64
		fewer string
	}{{"top_k", float64(n), fewer.as}, {"top_p", mass - last/2, "the token at which the sum reaches it were left out"}, {"min_p", math.Sqrt(last*next) / best, fewer.as}} {
		fewer.as = s.fewer
		list = append(list, sampling{plain.first(n), fmt.Sprintf("%s %.3g", s.key, s.value), map[string]any{"temperature": 1, s.key: s.value},
			[]mistake{ignored, greedy, fewer, more}, 0})
	}
	return list
}

// Why draws cannot be judged.
var (
	errNameless = errors.New("the server does not say which token it drew, and no vocabulary does")
	errUnsent   = &AnswerError{What: "not all draws were sent: the server was gone", gone: true}
)

// drawing are so many requests for one token, each with a seed of its own.
func drawing(ref *Reference, plain map[string]any, s sampling, draws int) (list []*request) {
	ask := ref.Ask.set(plain).set(s.keys)
	ask.Tokens = 1 + s.behind
	one := *ref
	one.Tokens, one.Rows = ref.Tokens[:ask.Tokens], ref.Rows[:ask.Tokens]
	for i := range draws {
		list = append(list, &request{ref: &one, ask: ask.with("seed", i+1), way: Sampled})
	}
	return list
}

// count counts what came by name.
func (r *run) count(ref *Reference, s sampling, requests []*request) (drawn map[string]int, err error) {
	drawn = map[string]int{}
	for _, q := range requests {
		if q.err != nil {
			return nil, q.err
		}
	}
	for _, q := range requests {
		switch a := &q.answer; {
		case !q.sent:
			return nil, errUnsent
		case s.behind > 0 && a.Tokens == nil:
			return nil, errNameless
		case s.behind > 0 && (len(a.Tokens) <= s.behind || a.Tokens[0] != ref.Tokens[0]): // of another text
		default:
			name, ok := r.drawnBy(a, s.behind)
			if !ok {
				return nil, errNameless
			}
			drawn[name]++
		}
	}
	return drawn, nil
}

// drawnBy names the token of an answer: by its id, or by its text where that is all that is said.
func (r *run) drawnBy(a *Answer, behind int) (string, bool) {
	switch {
	case len(a.Tokens) > behind:
		return fmt.Sprint(a.Tokens[behind]), true
	case r.model.Vocab != nil && !strings.ContainsRune(a.Text, '\uFFFD'):
		return "text " + plain(a.Text), true
	}
	return "", false
}

// expected are the shares by the names that draws have: tokens of one text are one.
func (r *run) expected(d distribution, drawn map[string]int) map[string]float64 {
	byText := false
	for name := range drawn {
		byText = byText || strings.HasPrefix(name, "text ")
	}
	out := map[string]float64{}
	for _, x := range d.shares {
		name := fmt.Sprint(x.id)
		if byText {
			text, _ := r.model.Vocab.Text([]int{x.id}, true)
			name = "text " + plain(text)
		}
		out[name] += x.p
	}
	return out
}

// judgeDraws judges counts by the reference's distribution, and says what else they are.
func (r *run) judgeDraws(ref *Reference, s sampling, requests []*request) (q report.ServedRequest) {
	q = report.ServedRequest{Case: ref.Case, As: ref.Ask.As, Way: Sampled + ", " + s.name, Status: report.StatusPass,
		Judged: []string{}, Tokens: len(requests), LogProb: report.Float(math.NaN())}
	drawn, err := r.count(ref, s, requests)
	if err != nil {
		q.Status, q.Text = without(err), err.Error()
		return q
	}
	n, noise := 0, ref.Rows[s.behind].shift
	for _, times := range drawn {
		n += times
	}
	expected := r.expected(s.distribution, drawn)
	t := test(expected, s.rest, drawn, noise)
	text := fmt.Sprintf("the %d draws are not of the reference's distribution: G = %.3g with %d degrees of freedom, which happens once in %.2g times; %s",
		n, t.g, t.bins-1, 1/max(t.tail, 1e-300), furthest(expected, drawn, n))
	if t.impossible != "" {
		text = fmt.Sprintf("of %d draws %s", n, t.impossible)
	}
	switch {
	case t.impossible != "", t.bins > 2 && t.tail < surelyOther:
		for _, m := range s.mistakes {
			if as := test(r.expected(m.distribution, drawn), m.rest, drawn, noise); as.impossible == "" && as.tail > perhapsOther {
				text += ": as if " + m.as
				break
			}
		}
		q.Status, q.Text = report.StatusFail, s.name+": "+text
	case t.bins < 3:
		q.Status, q.Text = report.StatusIgnored, fmt.Sprintf("%d draws are too few for its distribution", n)
	default:
		q.Tokens, q.Right = n, n
		q.Judged = append(q.Judged, fmt.Sprintf("distribution of %d draws, by which %.2g nats would show", n, shows(t.bins-1, n)))
		if t.tail < perhapsOther {
			r.note("suspect: %s: %s; draw more to tell", s.name, text)
		}
	}
	return q
}

// furthest names the tokens whose counts are the furthest off.
func furthest(expected map[string]float64, drawn map[string]int, n int) string {
	off := func(name string) float64 { return math.Abs(float64(drawn[name]) - expected[name]*float64(n)) }
	var list []string
	for _, name := range slices.SortedFunc(maps.Keys(expected), func(a, b string) int { return cmp.Or(cmp.Compare(off(b), off(a)), cmp.Compare(a, b)) }) {
		if len(list) < 3 {
			list = append(list, fmt.Sprintf("%s came %d times, not %.3g", strings.TrimPrefix(name, "text "), drawn[name], expected[name]*float64(n)))
		}
	}
	return strings.Join(list, ", ")
}
