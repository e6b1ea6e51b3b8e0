package serving

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/goparity/goparity/internal/generation"
)

// Keys of requests that change logits.
const (
	bias                            = "logit_bias"
	frequency, presence, repetition = "frequency_penalty", "presence_penalty", "repetition_penalty"
)

// penalties are asked for with the value, of several, that tells the most mistakes. Negative ones, and factors below 1,
// make what was said more probable.
var penalties = [][]setting{
	settings(frequency, 0.25, 0.5, 1, 2, -0.25, -0.5, -1, -2),
	settings(presence, 0.25, 0.5, 1, 2, -0.25, -0.5, -1, -2),
	settings(repetition, 1.1, 1.3, 2, 0.9, 0.7, 0.5),
}

// setting is a key of a request that changes logits.
type setting struct {
	key   string
	value float64
	token int // of a bias
}

func settings(key string, values ...float64) (list []setting) {
	for _, value := range values {
		list = append(list, setting{key: key, value: value})
	}
	return list
}

func (s setting) name() string { return fmt.Sprintf("%s %v", s.key, s.value) }

// asked is what a request has of it.
func (s setting) asked() map[string]any {
	if s.key == bias {
		return map[string]any{bias: map[string]float64{strconv.Itoa(s.token): s.value}}
	}
	return map[string]any{s.key: s.value}
}

// by is what a setting makes of a token's logit after others that were seen.
func (s setting) by(seen []int) func(x float64, id int) float64 {
	times := map[int]float64{}
	for _, id := range seen {
		times[id]++
	}
	return func(x float64, id int) float64 {
		switch {
		case s.key == bias && id == s.token:
			return x + s.value
		case s.key == bias, times[id] == 0:
			return x
		case s.key == frequency:
			return x - times[id]*s.value
		case s.key == presence:
			return x - s.value
		case x > 0:
			return x / s.value
		}
		return x * s.value
	}
}

// mistakes are what a server may make of a setting: of a penalty the other sign and twice are the first.
func (s setting) mistakes() []setting {
	v := s.value
	switch s.key {
	case repetition:
		return append(settings(s.key, 1/v, v*v), settings(presence, v)...)
	case frequency, presence:
		other := map[string]string{frequency: presence, presence: frequency}[s.key]
		return slices.Concat(settings(s.key, -v, 2*v), settings(other, v), settings(repetition, max(v, 0.1)))
	}
	return nil
}

// reading is what a server takes for the tokens that a penalty counts, after the first k of a reference's text.
type reading func(ref *Reference, k int) []int

func justMade(ref *Reference, k int) []int { return ref.Tokens[:k] }

func allSeen(ref *Reference, k int) []int { return slices.Concat(ref.Prompt, ref.Tokens[:k]) }

// readings are those of servers: some count the last tokens of all.
var readings = []reading{justMade, func(ref *Reference, k int) []int {
	seen := allSeen(ref, k)
	return seen[max(0, len(seen)-shortMemory):]
}, allSeen}

// altered asks for greedy answers that a setting makes others: the reference's logits say what has to come. Then all of
// them are asked at once, beside requests without any.
func (r *run) altered(ctx context.Context) (list []*request) {
	for _, q := range r.eachPath() {
		r.telling(&list, []*Reference{q.ref}, r.Model.forcing(q.ref))
		r.telling(&list, []*Reference{q.ref}, []setting{{bias, -100, q.ref.Tokens[0]}})
	}
	for _, p := range penalties {
		r.penalties[p[0].key] = r.telling(&list, r.refs, p)
	}
	r.sendAll(ctx, list, 1)
	return append(list, r.mixed(ctx, list)...)
}

// telling adds a request with a setting by which another token comes: of a reference and a setting that tell the most
// mistakes.
func (r *run) telling(list *[]*request, refs []*Reference, settings []setting) (best *request) {
	most := -1
	for _, s := range settings {
		for _, ref := range refs {
			tokens := r.Model.greedy(ref, s, justMade)
			other := func(seen reading) bool { return !slices.Equal(tokens, r.Model.greedy(ref, s, seen)) }
			if tokens == nil || ref.Prompt == nil || slices.ContainsFunc(readings, other) { // penalties may count the prompt
				continue
			}
			n := 0
			for _, m := range s.mistakes() {
				as := r.Model.greedy(ref, m, justMade)
				if as != nil && len(as) <= len(tokens) && !slices.Equal(as, tokens) {
					n++
				}
			}
			if n > most {
				most, best = n, r.set(ref, s, tokens)
			}
		}
	}
	if best != nil {
		*list = append(*list, best)
	} else if len(settings) > 0 {
		r.note("not asked: %s: it surely changes no token of those that the golden has the logits of", settings[0].key)
	}
	return best
}

// set asks a reference by a setting, for tokens. One that a server takes and does not know is left out: MAX 26.7.0 takes
// logit_bias and has none, and has penalties with --enable-penalties alone.
func (r *run) set(ref *Reference, s setting, tokens []int) *request {
	plain := ref.first(len(tokens))
	plain.Text = ""
	right := plain.with(s.asked())
	right.Tokens, right.Rows = tokens, nil
	return &request{ref: right, way: s.name(), extra: true, cause: causeSetting,
		by: func(a *Answer) judgement {
			j := r.Model.chosen(right, a)
			if j.fault == short && j.unsure {
				j.fault, j.Text = nothing, "the text ends, and no one says which tokens do that"
			}
			if as := r.Model.chosen(plain, a); j.fault > nothing && as.fault == none {
				j.fault, j.Text = nothing, s.key+" is taken, and the answer is the one without it"
			}
			return j
		}}
}

// chosen judges which tokens were chosen, and no log-probabilities: some servers tell those before a setting, some
// those after it.
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
		shown := m.Vocab == nil || known && plain(text) != "" && !broken(text)
		if shown && l.Token != ref.Tokens[0] && !m.ends(l.Token) {
			return []setting{{bias, 100, l.Token}}
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
	d := m.distribution(row.keep(seen), 1, s.by(seen)).ranked()
	if len(d.shares) < 2 || len(row.Top) == 0 {
		return -1, math.NaN()
	}
	best, gap = d.shares[0].id, math.Log(d.shares[0].p/d.shares[1].p)
	least := row.Top[len(row.Top)-1].Value
	x, known := row.Logit(best)
	if !known {
		return best, math.NaN()
	}
	if x = s.by(seen)(x, best); !row.Whole() || len(row.Top) == generation.Kept {
		gap = min(gap, x-least)
	}
	return best, min(gap, x-row.LSE-math.Log(row.unknown(s, seen)))
}

// mixed asks what is right by settings again, at once and beside requests without any: each has its own.
func (r *run) mixed(ctx context.Context, settings []*request) (list []*request) {
	for _, q := range settings {
		if q.judged() && !q.wrong() {
			list = append(list, &request{ref: q.ref, way: q.way + ", beside others", extra: true,
				cause: causeConcurrency, by: func(a *Answer) judgement { return r.Model.chosen(q.ref, a) }})
		}
	}
	if len(list) > 0 {
		list = append(list, r.among("beside settings", r.Parallel, mostBeside)...)
		r.sendAll(ctx, list, r.Parallel)
	}
	return list
}

// penalised are the penalties, each with the text, the token and the value whose draws tell the most. Only a token after
// others is drawn, for what counts is what was said.
func (r *run) penalised() (list []sampling) {
	for _, settings := range penalties {
		key, draws := settings[0].key, float64(r.Draws)
		asked := r.penalties[key]
		if asked != nil && !asked.judged() {
			continue // it is said already
		}
		best, most := sampling{}, 0.0
		for temperature := 1.0; most < 1 && temperature > coolest; temperature *= coldest {
			for _, ref := range r.refs {
				for i, of := range slices.Repeat(settings, max(0, min(mostBehind, len(ref.Rows)-1))) {
					s := r.Model.penalised(ref, of, 1+i/len(settings), temperature, draws)
					if shown := s.shown(draws); len(shown) > 0 && shown[0] >= 1 && slices.Min(shown) > most {
						best, most = s, slices.Min(shown)
					}
				}
			}
		}
		if most == 0 {
			r.note("not drawn: %s: %d draws would not show whether it is obeyed", key, r.Draws)
			continue
		}
		if asked == nil {
			best.unknown = key
		}
		list = append(list, best)
	}
	return list
}

// penalised is what a penalty makes of a token after others of a text; the lower the temperature, the more often these
// come. It has no mistakes where logits that are not known decide it.
func (m *Model) penalised(ref *Reference, of setting, after int, temperature, draws float64) sampling {
	unknown := 0.0
	by := func(as string, of setting, seen reading) (out outcome) {
		reach := 1.0
		for k, row := range ref.Rows[:after+1] {
			lost := row.unknown(of, seen(ref, k))
			d := m.distribution(row.keep(allSeen(ref, after)), temperature, of.by(seen(ref, k)))
			if unknown = max(unknown, reach*lost); temperature != 1 && lost > 0 {
				unknown = math.Inf(1) // what they have then is not known at all
			} else if temperature != 1 {
				unknown = max(unknown, reach*d.rest)
			}
			out = outcome{as, d.after(reach)}
			if k < after {
				reach = out.of(ref.Tokens[k])
			}
		}
		return out
	}
	s := sampling{ref: ref, after: after, name: of.name(), keys: of.asked()}
	if s.keys["temperature"] = temperature; temperature != 1 {
		s.name += fmt.Sprintf(" at temperature %.2g", temperature)
	}
	readings := slices.CompactFunc(slices.Clone(readings), func(a, b reading) bool { return slices.Equal(a(ref, after), b(ref, after)) })
	for _, seen := range readings {
		s.right = append(s.right, by("", of, seen))
	}
	if ref.Prompt == nil || unknown*draws >= 1 {
		return s
	}
	s.mistakes = append(s.mistakes, by("it were ignored", of, func(*Reference, int) []int { return nil }))
	for _, seen := range readings {
		for i, wrong := range of.mistakes()[:2] {
			s.mistakes = append(s.mistakes, by([]string{"it had the other sign", "it were applied twice"}[i], wrong, seen))
		}
	}
	return s
}

// keep is a row of the largest logits and those of tokens that were seen, where there are many: no penalty changes
// another.
func (r Row) keep(seen []int) Row {
	if _, many := r.Logit(mostTokens); !many && r.Whole() {
		return r
	}
	known := slices.Clone(r.Top)
	for _, id := range seen {
		same := func(l generation.Logit) bool { return l.Token == id }
		if x, ok := r.Logit(id); ok && !slices.ContainsFunc(known, same) {
			known = append(known, generation.Logit{Token: id, Value: x})
		}
	}
	r.Row = generation.Largest(known, r.LSE, r.Spread)
	return r
}

// unknown is how much of the probability tokens may have, at most, that were seen and whose logits are not known.
func (r Row) unknown(of setting, seen []int) (p float64) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(seen))) {
		if _, known := r.Logit(id); known || r.Whole() {
			continue
		}
		if len(r.Top) == 0 {
			return math.Inf(1)
		}
		least := r.Top[len(r.Top)-1].Value
		p += math.Exp(max(least, of.by(seen)(least, id)) - r.LSE)
	}
	return p
}
