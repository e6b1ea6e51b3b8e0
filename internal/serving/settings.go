package serving

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/goparity/goparity/internal/generation"
)

// setting is a key of a request that changes logits, and what it makes of one.
type setting struct {
	key    string
	value  any
	shown  float64
	change func(x float64, token int, seen []int) float64
}

func biased(token int, by float64) setting {
	return setting{"logit_bias", map[string]float64{strconv.Itoa(token): by}, by, func(x float64, id int, _ []int) float64 {
		if id == token {
			x += by
		}
		return x
	}}
}

func penalty(key string, value float64) setting {
	return setting{key, value, value, func(x float64, token int, seen []int) float64 {
		n := 0.0
		for _, id := range seen {
			if id == token {
				n++
			}
		}
		switch {
		case n == 0:
		case key == "frequency_penalty":
			x -= n * value
		case key == "presence_penalty":
			x -= value
		case x > 0:
			x /= value
		default:
			x *= value
		}
		return x
	}}
}

// by is the change of logits after tokens that were seen.
func (s setting) by(seen []int) func(x float64, id int) float64 {
	return func(x float64, id int) float64 { return s.change(x, id, seen) }
}

// reading is what a server takes for the tokens that a penalty counts, after the first k of a reference's text.
type reading func(ref *Reference, k int) []int

func justMade(ref *Reference, k int) []int { return ref.Tokens[:k] }

func allSeen(ref *Reference, k int) []int { return slices.Concat(ref.Prompt, ref.Tokens[:k]) }

func lastSeen(ref *Reference, k int) []int {
	seen := allSeen(ref, k)
	return seen[max(0, len(seen)-shortMemory):]
}

// readings are those of servers.
var readings = []reading{justMade, lastSeen, allSeen}

// tried are the values of a penalty of which that is asked that tells the most mistakes. Negative ones, and factors below
// 1, make what was said more probable.
type tried struct {
	key    string
	values []float64
}

var penalties = []tried{
	{"frequency_penalty", []float64{0.25, 0.5, 1, 2, -0.25, -0.5, -1, -2}},
	{"presence_penalty", []float64{0.25, 0.5, 1, 2, -0.25, -0.5, -1, -2}},
	{"repetition_penalty", []float64{1.1, 1.3, 2, 0.9, 0.7, 0.5}},
}

func (t tried) settings() (list []setting) {
	for _, value := range t.values {
		list = append(list, penalty(t.key, value))
	}
	return list
}

// mistakes are what a server may make of a setting.
func (s setting) mistakes() []setting {
	switch s.key {
	case "logit_bias":
		return nil
	case "repetition_penalty":
		return []setting{penalty(s.key, 1/s.shown), penalty(s.key, s.shown*s.shown), penalty("presence_penalty", s.shown)}
	}
	other := map[string]string{"frequency_penalty": "presence_penalty", "presence_penalty": "frequency_penalty"}[s.key]
	return []setting{penalty(s.key, -s.shown), penalty(s.key, 2*s.shown), penalty(other, s.shown), penalty("repetition_penalty", max(s.shown, 0.1))}
}

// altered asks for greedy answers that a setting makes others: the reference's logits say what has to come. Then all of
// them are asked at once, beside requests without any.
func (r *run) altered(ctx context.Context) (list []*request) {
	ask := func(refs []*Reference, settings ...setting) *request {
		q := r.telling(refs, settings)
		if q != nil {
			list = append(list, q)
		}
		return q
	}
	for _, q := range r.eachPath() {
		for _, bias := range [][]setting{r.model.forcing(q.ref), {biased(q.ref.Tokens[0], -100)}} {
			ask([]*Reference{q.ref}, bias...)
		}
	}
	asked := map[string]*request{}
	for _, p := range penalties {
		if q := ask(r.refs, p.settings()...); q != nil {
			asked[p.key] = q
		}
	}
	r.sendAll(ctx, list, 1)
	for key, q := range asked {
		r.obeyed[key] = q.judged()
	}
	return append(list, r.mixed(ctx, list)...)
}

// telling asks a reference by a setting by which another token comes: those that tell the most mistakes.
func (r *run) telling(refs []*Reference, settings []setting) (best *request) {
	most := -1
	for _, s := range settings {
		for _, ref := range refs {
			if ref.Prompt == nil {
				continue // penalties may count its tokens
			}
			tokens := r.model.greedy(ref, s, justMade)
			if tokens == nil || slices.ContainsFunc(readings, func(seen reading) bool { return !slices.Equal(tokens, r.model.greedy(ref, s, seen)) }) {
				continue
			}
			n := 0
			for _, m := range s.mistakes() {
				if as := r.model.greedy(ref, m, justMade); as != nil && len(as) <= len(tokens) && !slices.Equal(as, tokens) {
					n++
				}
			}
			if n > most {
				most, best = n, r.set(ref, s, tokens)
			}
		}
	}
	if best == nil && len(settings) > 0 {
		r.note("not asked: %s: it surely changes no token of those that the golden has the logits of", settings[0].key)
	}
	return best
}

// set asks a reference by a setting, for tokens. One that a server takes and does not know is left out: MAX 26.7.0 takes
// logit_bias and has none, and has penalties with --enable-penalties alone.
func (r *run) set(ref *Reference, s setting, tokens []int) *request {
	ask := ref.Ask.with(map[string]any{s.key: s.value})
	ask.Tokens = len(tokens)
	right := &Reference{Case: ref.Case, Ask: ask, Prompt: ref.Prompt, Tokens: tokens}
	plain := ref.first(len(tokens))
	plain.Text = ""
	return &request{ref: right, ask: ask, way: fmt.Sprintf("%s %v", s.key, s.shown), extra: true, cause: causeSetting, by: func(a *Answer) judgement {
		j := r.model.chosen(right, a)
		if j.fault == short && j.unsure {
			j.fault, j.what = nothing, "the text ends, and no one says which tokens do that"
		}
		if as := r.model.chosen(plain, a); j.fault > nothing && as.fault == none {
			j.fault, j.what = nothing, s.key+" is taken, and the answer is the one without it"
		}
		return j
	}}
}

// chosen judges which tokens were chosen, and no log-probabilities: some servers tell those before a setting, some those after it.
func (m *Model) chosen(ref *Reference, a *Answer) judgement {
	said := *a
	said.LogProbs, said.Texts, said.Top = nil, nil, nil
	return m.judge(ref, &said)
}

// forcing is the setting that makes the most probable token after the first come that is a text of its own.
func (m *Model) forcing(ref *Reference) []setting {
	if len(ref.Rows) == 0 {
		return nil
	}
	for _, l := range ref.Rows[0].Top {
		text, known := m.token(l.Token)
		if l.Token != ref.Tokens[0] && !m.ends(l.Token) && (m.Vocab == nil || known && plain(text) != "" && !broken(text)) {
			return []setting{biased(l.Token, 100)}
		}
	}
	return nil
}

// greedy are the reference's choices with a setting, to the first that is another by it; nil where none is, or where
// noise may decide one.
func (m *Model) greedy(ref *Reference, s setting, seen reading) []int {
	for k, row := range ref.Rows {
		best, gap := m.best(row, s, seen(ref, k))
		switch {
		case !(gap >= decisive*row.noise) || !m.drawable(best) || m.ends(best) || m.ends(ref.Tokens[k]):
			return nil
		case best != ref.Tokens[k]:
			return append(slices.Clone(ref.Tokens[:k]), best)
		}
	}
	return nil
}

// best is the token with the largest logit by a setting, and how far the next one is below it; NaN where that is not
// known. Logits that are not known are at most as large as the least of those that are.
func (m *Model) best(row Row, s setting, seen []int) (best int, gap float64) {
	d := m.distribution(row.keep(seen), 1, s.by(seen))
	if len(d.shares) < 2 || len(row.Top) == 0 {
		return -1, math.NaN()
	}
	best, gap = d.shares[0].id, math.Log(d.shares[0].p/d.shares[1].p)
	least := row.Top[len(row.Top)-1].Value
	x, known := row.Logit(best)
	if !known {
		return best, math.NaN()
	}
	if x = s.change(x, best, seen); !row.Whole() || len(row.Top) == generation.Kept {
		gap = min(gap, x-least)
	}
	for _, id := range seen {
		if _, known := row.Logit(id); !known {
			gap = min(gap, x-s.change(least, id, seen))
		}
	}
	return best, gap
}

// mixed asks what is right by settings again, at once and beside requests without any: each has its own.
func (r *run) mixed(ctx context.Context, settings []*request) (list []*request) {
	for _, q := range settings {
		if q.judged() && !q.wrong() {
			list = append(list, &request{ref: q.ref, ask: q.ask, way: q.way + ", beside others", extra: true, cause: causeConcurrency,
				by: func(a *Answer) judgement { return r.model.chosen(q.ref, a) }})
		}
	}
	if len(list) > 0 {
		list = append(list, r.among("beside settings", r.parallel, mostBeside)...)
		r.sendAll(ctx, list, r.parallel)
	}
	return list
}
