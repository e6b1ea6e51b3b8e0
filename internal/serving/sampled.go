package serving

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Sampled is the way of requests that draw tokens.
const Sampled = "sampled"

// sampling is a setting of sampling, what it makes of a distribution, and what that may be taken for.
type sampling struct {
	distribution
	ref      *Reference
	behind   int // how many tokens of the reference's text are before the one that is drawn
	name     string
	keys     map[string]any
	mistakes []mistake
	also     []distribution // what is right, too
	unknown  string         // a key that the server may not know, in which case its first mistake is none
}

// named reports whether an answer says enough to tell which token was drawn after the reference's.
func (s *sampling) named(a *Answer) bool { return s.behind == 0 || a.Tokens != nil }

// right are the distributions that draws may be of.
func (s *sampling) right() []distribution { return append([]distribution{s.distribution}, s.also...) }

// mistake is what would be drawn if a setting were obeyed otherwise: "as if it were ignored".
type mistake struct {
	as string
	distribution
}

// sampled draws a token of one text many times for each setting, and judges how often each came. The text is the one
// whose first token is the least certain. Draws of all settings are on their way together: one that is wrong is drawn
// again without others, which tells whether these are its fault.
func (r *run) sampled(ctx context.Context) (list []*request) {
	if r.draws == 0 {
		return nil
	}
	ref := r.uncertain()
	if ref == nil {
		r.note("not judged: sampling: no case has logits and a token that is not all but certain")
		return nil
	}
	plain, settings := r.undisturbed(ctx, ref), append(r.model.samplings(ref), r.penalised(r.draws)...)
	before := r.drafts(ctx)
	plans, together := make([][]*request, len(settings)), []*request{}
	for i, s := range settings {
		plans[i] = drawing(plain, s, r.draws)
		r.send(ctx, plans[i][0]) // a setting that the server refuses is refused once
	}
	for n := 1; n < r.draws; n++ {
		for i, plan := range plans {
			if plan[0].err == nil && settings[i].named(&plan[0].answer) {
				together = append(together, plan[n])
			}
		}
	}
	r.sendAll(ctx, together, r.parallel)
	r.draftedDrawn = r.drafts(ctx).since(before)
	found := false
	for i, s := range settings {
		q := r.judgeDraws(s, plans[i])
		if q.wrong() && !found {
			found = true
			again := drawing(plain, s, r.draws)
			r.sendAll(ctx, again, r.parallel)
			if alone := r.judgeDraws(s, again); alone.judged() && !alone.wrong() {
				q.cause, q.j.what = causeConcurrency, q.j.what+"; without requests of other settings beside them they are right"
			}
		}
		list = append(list, q)
	}
	return list
}

// undisturbed returns the keys that switch off what a server does to a distribution by default, as far as it takes them:
// llama.cpp keeps 40 tokens and those above a twentieth of the best, others read generation_config.json.
func (r *run) undisturbed(ctx context.Context, ref *Reference) map[string]any {
	for _, keys := range []map[string]any{{"top_p": 1, "min_p": 0, "top_k": -1}, {"top_p": 1, "min_p": 0, "top_k": 0}, {"top_p": 1, "min_p": 0}, {"top_p": 1}} {
		ask := ref.Ask.with(keys)
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
		if h := r.model.distribution(ref.Rows[0], 1, nil).entropy(); h > most {
			best, most = ref, h
		}
	}
	return best
}

// samplings are the settings that are asked: of the first token, and of the second where the first came as the reference
// has it, which a draft model may have proposed. Each that leaves tokens out does so where the gap between the last
// that stays and the next is widest, so that no noise decides it.
func (m *Model) samplings(ref *Reference) (list []sampling) {
	row := ref.Rows[0]
	plain := m.distribution(row, 1, nil)
	greedy := mistake{"the best token were always taken", plain.first(1)}
	ignored := mistake{"it were ignored", plain}
	list = append(list, sampling{distribution: plain, ref: ref, name: "temperature 1", keys: map[string]any{"temperature": 1}, mistakes: []mistake{greedy}})
	if len(ref.Rows) > 1 {
		second, reach := m.distribution(ref.Rows[1], 1, nil), plain.byID()[ref.Tokens[0]]
		list = append(list, sampling{distribution: second.behind(reach), ref: ref, behind: 1, name: "temperature 1, second token",
			keys: map[string]any{"temperature": 1}, mistakes: []mistake{{greedy.as, second.first(1).behind(reach)}}})
	}
	if row.Whole() {
		list = append(list, sampling{distribution: m.distribution(row, coldest, nil), ref: ref, name: fmt.Sprintf("temperature %g", coldest),
			keys: map[string]any{"temperature": coldest}, mistakes: []mistake{ignored, greedy, {"it were applied twice", m.distribution(row, coldest*coldest, nil)},
				{"logits were multiplied by it", m.distribution(row, 1/coldest, nil)}}})
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
	fewer, more := "one token fewer were kept", mistake{"one token more were kept", plain.first(n + 1)}
	for _, s := range []struct {
		key   string
		value float64
		fewer string
	}{{"top_k", float64(n), fewer}, {"top_p", mass - last/2, "the token at which the sum reaches it were left out"}, {"min_p", math.Sqrt(last*next) / best, fewer}} {
		list = append(list, sampling{distribution: plain.first(n), ref: ref, name: fmt.Sprintf("%s %.3g", s.key, s.value),
			keys:     map[string]any{"temperature": 1, s.key: s.value},
			mistakes: []mistake{ignored, greedy, {s.fewer, plain.first(n - 1)}, more}})
	}
	return list
}

// drawing are so many requests for one token, each with a seed of its own.
func drawing(plain map[string]any, s sampling, draws int) (list []*request) {
	one := s.ref.first(1 + s.behind)
	for i := range draws {
		ask := one.Ask.with(plain).with(s.keys).with(map[string]any{"seed": i + 1})
		list = append(list, &request{ref: one, ask: ask, way: Sampled})
	}
	return list
}

// count counts what came by name.
func (r *run) count(s sampling, requests []*request) (drawn map[string]int, err error) {
	drawn = map[string]int{}
	for _, q := range requests {
		if q.err != nil {
			return nil, q.err
		}
	}
	for _, q := range requests {
		a := &q.answer
		name, ok := r.drawnBy(a, s.behind)
		switch {
		case !q.sent:
			return nil, &answerError{What: "not all draws were sent: the server was gone", gone: true}
		case s.named(a) && !beginning(s.ref.Tokens[:s.behind], a.Tokens):
			name = "another text"
		case !s.named(a) || !ok:
			return nil, &answerError{What: "the server does not say which token it drew, and no vocabulary does"}
		}
		drawn[name]++
	}
	return drawn, nil
}

// theEnd is the name of all tokens that end a text: servers return them or not.
const theEnd = "the end of the text"

// drawnBy names the token of an answer: by its id, or by its text where that is all that is said.
func (r *run) drawnBy(a *Answer, behind int) (string, bool) {
	switch {
	case len(a.Tokens) > behind && r.model.ends(a.Tokens[behind]):
		return theEnd, true
	case len(a.Tokens) > behind:
		return fmt.Sprint(a.Tokens[behind]), true
	case a.Tokens != nil && a.Stopped():
		return theEnd, r.model.EOS != nil
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
		if r.model.ends(x.id) {
			name = theEnd
		} else if byText {
			text, _ := r.model.Vocab.Text([]int{x.id}, true)
			name = "text " + plain(text)
		}
		out[name] += x.p
	}
	return out
}

// judgeDraws judges counts by the reference's distribution, and says what else they are. What it returns stands for all of
// the requests.
func (r *run) judgeDraws(s sampling, requests []*request) *request {
	n := len(requests)
	q := &request{ref: s.ref, ask: s.ref.Ask, way: Sampled + ", " + s.name, extra: true, cause: causeDraws, draws: n, sent: true, j: newJudgement()}
	drawn, err := r.count(s, requests)
	if err != nil {
		q.err = err
		r.unanswered(q)
		return q
	}
	t, expected := r.nearest(s, drawn)
	text := fmt.Sprintf("of %d draws %s", n, t.impossible)
	if t.impossible == "" {
		text = fmt.Sprintf("the %d draws are not of the reference's distribution: G = %.3g with %d degrees of freedom, which happens once in %.2g times; %s",
			n, t.g, t.bins-1, 1/max(t.tail, 1e-300), furthest(expected, drawn, n))
	}
	as := r.taken(s, drawn)
	switch {
	case t.impossible == "" && t.few:
		r.leave(q, fmt.Sprintf("%d draws are too few for its distribution", n))
	case t.impossible == "" && t.tail >= surelyOther:
		q.j.right = n
		q.j.also(fmt.Sprintf("distribution of %d draws, by which %.2g nats would show", n, shows(t.bins-1, float64(n), s.noise())))
		var hidden []string
		for i, shown := range s.shown(float64(n)) {
			if as := s.mistakes[i].as; shown < 1 && !slices.Contains(hidden, as) {
				hidden = append(hidden, as)
			}
		}
		if len(hidden) > 0 {
			r.note("%s: %d draws would not surely show it if %s: draw more to tell", s.name, n, strings.Join(hidden, ", or if "))
		}
		if t.tail < perhapsOther {
			r.note("suspect: %s: %s; draw more to tell", s.name, text)
		}
	case s.unknown != "" && as == s.mistakes[0].as:
		r.leave(q, s.unknown+" is taken, and the draws are those without it")
	default:
		if as != "" {
			text += ": as if " + as
		}
		q.j.fail(tokens, s.behind, "%s: %s", s.name, text)
	}
	return q
}

// nearest tests draws by the right distribution that they are the likeliest of.
func (r *run) nearest(s sampling, drawn map[string]int) (best gTest, expected map[string]float64) {
	for _, d := range s.right() {
		by := r.expected(d, drawn)
		if t := test(by, d.rest, drawn, s.noise()); expected == nil || best.impossible != "" || t.impossible == "" && t.tail > best.tail {
			best, expected = t, by
		}
	}
	return best, expected
}

// taken says by which mistake draws come as they do, the likeliest; empty if by none that is known.
func (r *run) taken(s sampling, drawn map[string]int) (as string) {
	best := perhapsOther
	for _, m := range s.mistakes {
		if t := test(r.expected(m.distribution, drawn), m.rest, drawn, s.noise()); t.impossible == "" && t.tail > best {
			best, as = t.tail, m.as
		}
	}
	return as
}

// noise is that of the logarithm of a probability: those of all tokens up to the one that is drawn.
func (s *sampling) noise() (sum float64) {
	for _, row := range s.ref.Rows[:s.behind+1] {
		sum += row.shift
	}
	return sum
}

// shown says of each mistake how well n draws show it, 1 or more if surely: how far it is from all that is right, by how
// far it has to be.
func (s *sampling) shown(n float64) []float64 {
	list := slices.Repeat([]float64{math.Inf(1)}, len(s.mistakes))
	for _, right := range s.right() {
		p := right.byID()
		_, bins, _ := divergence(p, p, n)
		limit := shows(bins-1, n, s.noise())
		for i, m := range s.mistakes {
			list[i] = min(list[i], m.apart(right, n)/limit)
		}
	}
	return list
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
