package serving

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/generation"
)

// penalised are the penalties, each with the text, the token and the value whose draws tell the most. Only a token after
// others is drawn, for what counts is what was said.
func (r *run) penalised(draws int) (list []sampling) {
	for _, p := range penalties {
		obeyed, asked := r.obeyed[p.key]
		if asked && !obeyed {
			continue // it is said already
		}
		best, most := sampling{}, 0.0
		for temperature := 1.0; most < 1 && temperature > coolest; temperature *= coldest {
			for _, ref := range r.refs {
				for i, of := range slices.Repeat(p.settings(), max(0, min(mostBehind, len(ref.Rows)-1))) {
					s := r.model.penalised(ref, of, 1+i/len(p.values), temperature, float64(draws))
					if shown := s.shown(float64(draws)); len(shown) > 0 && shown[0] >= 1 && slices.Min(shown) > most {
						best, most = s, slices.Min(shown)
					}
				}
			}
		}
		if most == 0 {
			r.note("not drawn: %s: %d draws would not show whether it is obeyed", p.key, draws)
			continue
		}
		if !obeyed {
			best.unknown = p.key
		}
		list = append(list, best)
	}
	return list
}

// penalised is what a penalty makes of a token after others of a text; the lower the temperature, the more often these
// come. It has no mistakes where logits that are not known decide it.
func (m *Model) penalised(ref *Reference, of setting, behind int, temperature, draws float64) sampling {
	unknown := 0.0
	by := func(of setting, seen reading) (d distribution) {
		reach := 1.0
		for k := range behind + 1 {
			lost := ref.Rows[k].unknown(of, seen(ref, k))
			d = m.distribution(ref.Rows[k].keep(allSeen(ref, behind)), temperature, of.by(seen(ref, k)))
			if unknown = max(unknown, reach*lost); temperature != 1 && lost > 0 {
				unknown = math.Inf(1) // what they have then is not known at all
			} else if temperature != 1 {
				unknown = max(unknown, reach*d.rest)
			}
			d = d.behind(reach)
			if k < behind {
				reach = d.byID()[ref.Tokens[k]]
			}
		}
		return d
	}
	s := sampling{distribution: by(of, justMade), ref: ref, behind: behind, name: fmt.Sprintf("%s %v", of.key, of.shown),
		keys: map[string]any{"temperature": temperature, of.key: of.value}, also: []distribution{by(of, lastSeen), by(of, allSeen)}}
	if temperature != 1 {
		s.name += fmt.Sprintf(" at temperature %.2g", temperature)
	}
	if ref.Prompt == nil || unknown*draws >= 1 {
		return s
	}
	s.mistakes = append(s.mistakes, mistake{"it were ignored", by(of, func(*Reference, int) []int { return nil })})
	wrong := of.mistakes() // the other sign and twice are the first
	for _, seen := range readings {
		s.mistakes = append(s.mistakes, mistake{"it had the other sign", by(wrong[0], seen)}, mistake{"it were applied twice", by(wrong[1], seen)})
	}
	return s
}

// keep is a row of the largest logits and those of tokens that were seen, where there are many: no penalty changes another.
func (r Row) keep(seen []int) Row {
	if _, many := r.Logit(mostTokens); !many && r.Whole() {
		return r
	}
	known := slices.Clone(r.Top)
	for _, id := range seen {
		if x, ok := r.Logit(id); ok && !slices.ContainsFunc(known, func(l generation.Logit) bool { return l.Token == id }) {
			known = append(known, generation.Logit{Token: id, Value: x})
		}
	}
	r.Row = generation.Largest(known, r.LSE, r.Spread)
	return r
}

// unknown is how much of the probability tokens may have, at most, that were seen and whose logits are not known.
func (r Row) unknown(of setting, seen []int) (p float64) {
	said := map[int]bool{}
	for _, id := range seen {
		if _, known := r.Logit(id); known || said[id] || r.Whole() {
			continue
		}
		said[id] = true
		if len(r.Top) == 0 {
			return math.Inf(1)
		}
		least := r.Top[len(r.Top)-1].Value
		p += math.Exp(max(least, of.change(least, id, seen)) - r.LSE)
	}
	return p
}
