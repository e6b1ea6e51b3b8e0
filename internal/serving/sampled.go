package serving

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// sampling is a setting of sampling, what it makes of a distribution, and what that may be taken for.
type sampling struct {
	ref      *Reference
	after    int // how many tokens of the reference's text are before the one that is drawn
	name     string
	keys     map[string]any
	right    []outcome
	mistakes []outcome
	unknown  string // a key that the server may not know, in which case its first mistake is none
}

// outcome is what draws may be of: where a setting is obeyed, or otherwise, "as if it were ignored".
type outcome struct {
	as string
	distribution
}

// named reports whether an answer says enough to tell which token was drawn after the reference's.
func (s *sampling) named(a *Answer) bool { return s.after == 0 || a.Tokens != nil }

// sampled draws a token of one text many times for each setting, and judges how often each came. The text is the one
// whose first token is the least certain. Draws of all settings are on their way together: one that is wrong is drawn
// again without others, which tells whether these are its fault.
func (r *run) sampled(ctx context.Context) (list []*request) {
	if r.Draws == 0 {
		return nil
	}
	ref := r.uncertain()
	if ref == nil {
		r.note("not judged: sampling: no case has logits and a token that is not all but certain")
		return nil
	}
	plain, settings := r.undisturbed(ctx, ref), append(r.Model.samplings(ref), r.penalised()...)
	before := r.drafts(ctx)
	plans, together := make([][]*request, len(settings)), []*request{}
	for i, s := range settings {
		plans[i] = s.drawing(plain, r.Draws)
		r.send(ctx, plans[i][0]) // a setting that the server refuses is refused once
	}
	for n := 1; n < r.Draws; n++ {
		for i, plan := range plans {
			if plan[0].err == nil && settings[i].named(&plan[0].answer) {
				together = append(together, plan[n])
			}
		}
	}
	r.sendAll(ctx, together, r.Parallel)
	r.draftedDrawn = r.drafts(ctx).since(before)
	for i, s := range settings {
		q := r.judgeDraws(s, plans[i])
		if q.wrong() && !slices.ContainsFunc(list, (*request).wrong) {
			again := s.drawing(plain, r.Draws)
			r.sendAll(ctx, again, r.Parallel)
			if alone := r.judgeDraws(s, again); alone.judged() && !alone.wrong() {
				q.cause = causeConcurrency
				q.j.Text += "; without requests of other settings beside them they are right"
			}
		}
		list = append(list, q)
	}
	return list
}

// undisturbed returns the keys that switch off what a server does to a distribution by default, as far as it takes them:
// llama.cpp keeps 40 tokens and those above a twentieth of the best, others read generation_config.json.
func (r *run) undisturbed(ctx context.Context, ref *Reference) map[string]any {
	for _, keys := range []map[string]any{{"top_p": 1, "min_p": 0, "top_k": -1}, {"top_p": 1, "min_p": 0, "top_k": 0},
		{"top_p": 1, "min_p": 0}, {"top_p": 1}} {
		if _, err := r.client.ask(ctx, ref.first(1).with(keys).Ask); !refused(err) {
			return keys
		}
	}
	return nil
}

// uncertain returns the reference whose first token is the least certain; nil where all are all but certain.
func (r *run) uncertain() (best *Reference) {
	most := leastEntropy
	for _, ref := range r.refs {
		entropy := 0.0
		for _, row := range ref.Rows[:min(1, len(ref.Rows))] {
			for _, x := range r.Model.distribution(row, 1, nil).shares {
				entropy -= x.p * math.Log(max(x.p, math.SmallestNonzeroFloat64))
			}
		}
		if entropy > most {
			best, most = ref, entropy
		}
	}
	return best
}

// samplings are the settings that are asked: of the first token, and of the second where the first came as the reference
// has it, which a draft model may have proposed. Each that leaves tokens out does so where the gap between the last
// that stays and the next is widest, so that no noise decides it.
func (m *Model) samplings(ref *Reference) (list []sampling) {
	add := func(key string, value float64, right distribution, mistakes ...outcome) {
		list = append(list, sampling{ref: ref, name: fmt.Sprintf("%s %.3g", key, value), right: []outcome{{"", right}},
			keys: map[string]any{"temperature": 1, key: value}, mistakes: mistakes})
	}
	row := ref.Rows[0]
	plain := m.distribution(row, 1, nil).ranked()
	ignored, greedy := outcome{"it were ignored", plain}, outcome{"the best token were always taken", plain.first(1)}
	add("temperature", 1, plain, greedy)
	if len(ref.Rows) > 1 {
		second, reach := m.distribution(ref.Rows[1], 1, nil).ranked(), plain.of(ref.Tokens[0])
		add("temperature", 1, second.after(reach), outcome{greedy.as, second.first(1).after(reach)})
		list[1].after, list[1].name = 1, list[1].name+", second token"
	}
	if row.Whole() {
		at := func(temperature float64) distribution { return m.distribution(row, temperature, nil) }
		add("temperature", coldest, at(coldest), ignored, greedy, outcome{"it were applied twice", at(coldest * coldest)},
			outcome{"logits were multiplied by it", at(1 / coldest)})
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
	best, last, next := plain.shares[0].p, plain.shares[n-1].p, plain.shares[n].p
	right, more := plain.first(n), outcome{"one token more were kept", plain.first(n + 1)}
	fewer := outcome{"one token fewer were kept", plain.first(n - 1)}
	unreached := outcome{"the token at which the sum reaches it were left out", fewer.distribution}
	add("top_k", float64(n), right, ignored, greedy, fewer, more)
	add("top_p", plain.mass(n)-last/2, right, ignored, greedy, unreached, more)
	add("min_p", math.Sqrt(last*next)/best, right, ignored, greedy, fewer, more)
	return list
}

// drawing are so many requests for one token, each with a seed of its own.
func (s *sampling) drawing(plain map[string]any, draws int) (list []*request) {
	one := s.ref.first(1 + s.after)
	for i := range draws {
		seeded := one.with(plain).with(s.keys).with(map[string]any{"seed": i + 1})
		list = append(list, &request{ref: seeded, way: Sampled})
	}
	return list
}

// theEnd is the name of all tokens that end a text: servers return them or not.
const theEnd = "the end of the text"

// drawn names the token of an answer: by its id, or by its text where that is all that is said.
func (m *Model) drawn(a *Answer, after int) (name string, ok bool) {
	switch {
	case len(a.Tokens) > after:
		return m.called(a.Tokens[after], false), true
	case a.Stopped() && (a.Tokens != nil || m.EOS != nil && a.Text == ""):
		return theEnd, m.EOS != nil
	case m.Vocab != nil && !broken(a.Text):
		return strconv.Quote(plain(a.Text)), true
	}
	return "", false
}

// called is what a token is called among draws: those of one text are one where texts are all that is said.
func (m *Model) called(id int, byText bool) string {
	switch {
	case m.ends(id):
		return theEnd
	case byText:
		text, _ := m.Vocab.Text([]int{id}, true)
		return strconv.Quote(plain(text))
	}
	return strconv.Itoa(id)
}

// likeliest tests draws by each of several outcomes, and returns the test of that which they are the likeliest of.
func (m *Model) likeliest(list []outcome, drawn map[string]int, noise float64) (best gTest) {
	byText := false
	for name := range drawn {
		byText = byText || strings.HasPrefix(name, `"`)
	}
	for i, of := range list {
		expected := map[string]float64{}
		for _, x := range of.shares {
			expected[m.called(x.id, byText)] += x.p
		}
		t := test(expected, of.rest, drawn, noise)
		if t.outcome = of; i == 0 || best.impossible != "" || t.impossible == "" && t.tail > best.tail {
			best = t
		}
	}
	return best
}

// judgeDraws judges counts by the reference's distribution, and says what else they are. What it returns stands for all
// of the requests.
func (r *run) judgeDraws(s sampling, requests []*request) *request {
	n := len(requests)
	q := &request{ref: s.ref, way: Sampled + ", " + s.name, extra: true, cause: causeDraws, draws: n, sent: true}
	drawn := map[string]int{}
	for i := 0; i < n && q.err == nil; i++ {
		one := requests[i]
		name, ok := r.Model.drawn(&one.answer, s.after)
		switch named := s.named(&one.answer); {
		case one.err != nil:
			q.err = one.err
		case !one.sent:
			q.err = &answerError{What: "not all draws were sent: the server was gone", gone: true}
		case named && !beginning(s.ref.Tokens[:s.after], one.answer.Tokens):
			name = "another text"
		case !named || !ok:
			q.err = &answerError{What: "the server does not say which token it drew, and no vocabulary does"}
		}
		drawn[name]++
	}
	if q.err != nil {
		r.unanswered(q)
		return q
	}
	t, as := r.Model.likeliest(s.right, drawn, s.noise()), ""
	if by := r.Model.likeliest(s.mistakes, drawn, s.noise()); by.impossible == "" && by.tail > perhapsOther {
		as = by.as
	}
	text := fmt.Sprintf("of %d draws %s", n, t.impossible)
	if t.impossible == "" {
		text = fmt.Sprintf("the %d draws are not of the reference's distribution: G = %.3g with %d degrees of freedom, "+
			"which happens once in %.2g times; %s", n, t.g, t.bins-1, 1/max(t.tail, 1e-300), t.furthest(drawn, n))
	}
	switch {
	case t.impossible == "" && t.few:
		r.leave(q, fmt.Sprintf("%d draws are too few for its distribution", n))
	case t.impossible == "" && t.tail >= surelyOther:
		q.j.Right = n
		power := shows(t.bins-1, float64(n), s.noise())
		q.j.also(fmt.Sprintf("distribution of %d draws, by which %.2g nats would show", n, power))
		var hidden []string
		for i, shown := range s.shown(float64(n)) {
			if as := s.mistakes[i].as; shown < 1 && !slices.Contains(hidden, as) {
				hidden = append(hidden, as)
			}
		}
		if all := strings.Join(hidden, ", or if "); all != "" {
			r.note("%s: %d draws would not surely show it if %s: draw more to tell", s.name, n, all)
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
		q.j.fail(tokens, s.after, "%s: %s", s.name, text)
	}
	return q
}

// noise is that of the logarithm of a probability: those of all tokens up to the one that is drawn.
func (s *sampling) noise() (sum float64) {
	for _, row := range s.ref.Rows[:s.after+1] {
		sum += row.shift
	}
	return sum
}

// shown says of each mistake how well n draws show it, 1 or more if surely: how far it is from all that is right, by how
// far it has to be.
func (s *sampling) shown(n float64) []float64 {
	list := slices.Repeat([]float64{math.Inf(1)}, len(s.mistakes))
	var mistakes []map[int]float64
	for _, m := range s.mistakes {
		mistakes = append(mistakes, m.byID())
	}
	for _, right := range s.right {
		p := right.byID()
		_, bins, _ := divergence(p, p, n)
		limit := shows(bins-1, n, s.noise())
		for i, is := range mistakes {
			list[i] = min(list[i], apart(is, p, right.rest, n)/limit)
		}
	}
	return list
}

// furthest names the tokens whose counts are the furthest off.
func (t *gTest) furthest(drawn map[string]int, n int) string {
	off := func(name string) float64 { return math.Abs(float64(drawn[name]) - t.expected[name]*float64(n)) }
	names := slices.SortedFunc(maps.Keys(t.expected), func(a, b string) int {
		return cmp.Or(cmp.Compare(off(b), off(a)), cmp.Compare(a, b))
	})[:min(3, len(t.expected))]
	for i, name := range names {
		names[i] = fmt.Sprintf("%s came %d times, not %.3g", name, drawn[name], t.expected[name]*float64(n))
	}
	return strings.Join(names, ", ")
}
