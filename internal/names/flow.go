package names

import (
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// byFlow pairs the unknown layers that were given the outputs of one pair and go together better than
// with any other.
func (p *proposing) byFlow() (votes []vote) {
	golden, actual := p.golden.consumers(), p.actual.consumers()
	score := func(l, o *layer) float64 {
		g, a := l, o
		if p.golden.named[l.name] != l {
			g, a = o, l
		}
		if !p.unknown(o) || g.sameInputs(a) <= 0 {
			return 0
		}
		return p.score(g, a)
	}
	only := func(l *layer, to map[*value][]*layer) *layer {
		var choices []*layer
		for _, v := range l.in {
			for _, from := range v.from {
				if from.pair != nil && from.pair.value != nil {
					choices = append(choices, to[from.pair.value]...)
				}
			}
		}
		choices = distinct(choices)
		if at, ok := p.best(l, choices, score); ok && len(choices) > 0 && score(l, choices[at]) > 0 {
			return choices[at]
		}
		return nil
	}
	for _, g := range p.golden.layers {
		if !p.unknown(g) {
			continue
		}
		if a := only(g, actual); a != nil && only(a, golden) == g {
			votes = append(votes, vote{g, a})
		}
	}
	return votes
}

// flowing drops the votes that contradict the others: the two layers were given the outputs of layers
// that are no pair.
func flowing(votes []vote) (out []vote) {
	for _, v := range votes {
		v.golden.pair, v.actual.pair = v.actual, v.golden
	}
	for _, v := range votes {
		if v.golden.sameInputs(v.actual) >= 0 {
			out = append(out, v)
		}
	}
	for _, v := range votes {
		v.golden.pair, v.actual.pair = nil, nil
	}
	return out
}

// settled drops the votes for layers that go as well with another one that was given the same: only
// the order speaks for them, in which two engines need not call q, k and v.
func (p *proposing) settled(votes []vote) (out []vote) {
	golden, actual := p.golden.consumers(), p.actual.consumers()
	partner := map[*layer]*layer{}
	for _, v := range votes {
		partner[v.golden], partner[v.actual] = v.actual, v.golden
	}
	for _, v := range votes {
		score := p.score(v.golden, v.actual)
		rivals := func(l *layer, consumers map[*value][]*layer, with func(o *layer) float64) bool {
			return len(l.in) > 0 && slices.ContainsFunc(consumers[l.in[0]], func(o *layer) bool {
				return o != l && p.open(o) && parallel(l, o) && !nested(l, o) && !nested(partner[l], partner[o]) && with(o) > score-margin
			})
		}
		if rivals(v.golden, golden, func(g *layer) float64 { return p.score(g, v.actual) }) ||
			rivals(v.actual, actual, func(a *layer) float64 { return p.score(v.golden, a) }) {
			p.parallel[v.golden] = v.actual
			continue
		}
		out = append(out, v)
	}
	return out
}

// nested reports whether one of two layers lies inside of the other: it returns first.
func nested(l, o *layer) bool {
	return l != nil && o != nil && (label.Inside(l.name, o.name) || label.Inside(o.name, l.name))
}

// parallel reports whether two layers of a run were given the same and nothing else.
func parallel(l, o *layer) bool {
	within := func(a, b []*value) bool {
		return !slices.ContainsFunc(a, func(v *value) bool { return !slices.Contains(b, v) })
	}
	return len(l.in) > 0 && within(l.in, o.in) && within(o.in, l.in)
}

// distinct drops repetitions.
func distinct(layers []*layer) (out []*layer) {
	for _, l := range layers {
		if !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}
