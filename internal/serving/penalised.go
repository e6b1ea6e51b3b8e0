package serving

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/generation"
)

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
func (m *Model) penalised(ref *Reference, of setting, behind int, temperature, draws float64) sampling {
	unknown := 0.0
	by := func(as string, of setting, seen reading) (out outcome) {
		reach := 1.0
		for k, row := range ref.Rows[:behind+1] {
			lost := row.unknown(of, seen(ref, k))
			d := m.distribution(row.keep(allSeen(ref, behind)), temperature, of.by(seen(ref, k)))
			if unknown = max(unknown, reach*lost); temperature != 1 && lost > 0 {
				unknown = math.Inf(1) // what they have then is not known at all
			} else if temperature != 1 {
				unknown = max(unknown, reach*d.rest)
			}
			out = outcome{as, d.behind(reach)}
			if k < behind {
				reach = out.byID()[ref.Tokens[k]]
			}
		}
		return out
	}
	s := sampling{ref: ref, behind: behind, name: of.name(), keys: of.asked()}
	if s.keys["temperature"] = temperature; temperature != 1 {
		s.name += fmt.Sprintf(" at temperature %.2g", temperature)
	}
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
		p += math.Exp(max(least, of.change(least, id, seen)) - r.LSE)
	}
	return p
}
