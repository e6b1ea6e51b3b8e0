package names

import (
	"cmp"
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// evidence says what speaks for a pair of layers, the surest first.
type evidence int

const (
	byValue  evidence = iota // the outputs are equal
	byLayout                 // they are equal in another layout
	byName                   // package match joins them by their names
	byOrder                  // place in the order, shape and names
	byShape                  // shape and names
)

// finding is a pattern that was found, and the pairs that it stands for.
type finding struct {
	pattern
	by    evidence
	pairs [][2]*layer
}

// likeness says how well two layers that may be one go together, by what they are given, by what is
// inside of them and by their names: 0 if nothing is known, 1 and more if much speaks for it.
func (p *proposing) likeness(g, a *layer) float64 {
	score := g.words.affinity(a.words)
	if g.words.contradict(a.words) {
		score -= 3
	}
	if p.golden.nested && p.actual.nested && g.leaf != a.leaf {
		score -= 0.75
	}
	if g.idle != a.idle {
		score -= 1.5
	}
	if g.numbered() != a.numbered() && p.blocks {
		score -= 1.5
	}
	return score + p.sameParent(g, a) + g.sameInputs(a)
}

// sameParent is positive if the layers around two layers are a pair, and negative if they are those of
// others.
func (p *proposing) sameParent(g, a *layer) float64 {
	up, other := p.golden.named[label.Parent(g.name)], p.actual.named[label.Parent(a.name)]
	switch {
	case up == nil || other == nil || up.pair == nil || other.pair == nil:
		return 0
	case up.pair == other:
		return 0.5
	}
	return -0.5
}

// sameInputs is positive if two layers were given the same, and negative if they were not: equal
// values or, behind an error, the outputs of two layers that are a pair. It counts the share of
// inputs for which that is known.
func (l *layer) sameInputs(o *layer) (score float64) {
	if len(l.in) == 0 || len(o.in) == 0 {
		return 0
	}
	for _, v := range l.in {
		switch {
		case v.other != nil && slices.Contains(o.in, v.other):
			score += 1.5
		case slices.ContainsFunc(v.from, func(from *layer) bool { return from.pair != nil && slices.Contains(o.in, from.pair.value) }):
			score++
		}
	}
	if score > 0 {
		return score / float64(max(len(l.in), len(o.in)))
	}
	if slices.ContainsFunc(l.in, (*value).known) && slices.ContainsFunc(o.in, (*value).known) {
		return -1.5
	}
	return 0
}

// known reports whether it is known what a value is in the other run.
func (v *value) known() bool {
	return v.other != nil || slices.ContainsFunc(v.from, func(l *layer) bool { return l.pair != nil })
}

// vote is a pair of layers that holds one value.
type vote struct{ golden, actual *layer }

// byClasses pairs the layers that hold equal values. Where several do, those go together that go
// together better than with any other; with inOrder, what is left goes by the order of execution.
func (p *proposing) byClasses(inOrder bool) (votes []vote) {
	golden, actual := p.golden.holders(), p.actual.holders()
	for _, v := range p.golden.values {
		if v.other != nil {
			votes = append(votes, p.resolve(golden[v], actual[v.other], inOrder)...)
		}
	}
	return votes
}

// resolve pairs layers that hold one value.
func (p *proposing) resolve(golden, actual []*layer, inOrder bool) (votes []vote) {
	for len(golden) > 0 && len(actual) > 0 {
		found := false
		for i, g := range golden {
			j, ok := p.best(g, actual, p.likeness)
			if !ok {
				continue
			}
			a := actual[j]
			if back, ok := p.best(a, golden, func(a, g *layer) float64 { return p.likeness(g, a) }); !ok || back != i {
				continue
			}
			if !g.words.contradict(a.words) {
				votes = append(votes, vote{g, a})
			}
			golden, actual = slices.Delete(golden, i, i+1), slices.Delete(actual, j, j+1)
			found = true
			break
		}
		if !found {
			break
		}
	}
	if inOrder && len(golden) == len(actual) && p.golden.ordered && p.actual.ordered {
		for i, g := range golden {
			if !g.words.contradict(actual[i].words) {
				votes = append(votes, vote{g, actual[i]})
			}
		}
	}
	return votes
}

// best returns the choice that goes best with a layer; ok is false if another one is nearly as good.
func (p *proposing) best(l *layer, choices []*layer, score func(l, choice *layer) float64) (at int, ok bool) {
	scores := make([]float64, len(choices))
	for i, c := range choices {
		scores[i] = score(l, c)
		if scores[i] > scores[at] {
			at = i
		}
	}
	for i, s := range scores {
		if i != at && s > scores[at]-margin {
			return at, false
		}
	}
	return at, true
}

// generalise makes patterns of votes, takes those with most votes, and pairs what they stand for.
// Blocks that are counted from another number must have clearly more.
func (p *proposing) generalise(votes []vote, by evidence) {
	count := map[pattern]float64{}
	affinity := map[pattern]float64{}
	var all []pattern
	add := func(v vote, t pattern) {
		if count[t] == 0 {
			all = append(all, t)
		}
		count[t]++
		affinity[t] = v.golden.words.affinity(v.actual.words)
	}
	for _, v := range votes {
		same, shifted := patternsOf(v.golden, v.actual)
		add(v, same)
		if shifted != same {
			add(v, shifted)
		}
	}
	worth := func(t pattern) float64 {
		switch {
		case t.shift != (shift{}):
			return 0.7 * count[t]
		case !t.open() && p.blocks: // one block against all others
			return 0.5 * count[t]
		}
		return count[t]
	}
	slices.SortStableFunc(all, func(a, b pattern) int {
		return cmp.Or(cmp.Compare(worth(b), worth(a)), cmp.Compare(affinity[b], affinity[a]))
	})
	for _, t := range all {
		p.apply(t, by)
	}
}

// apply pairs all layers for which a pattern stands and that are free.
func (p *proposing) apply(t pattern, by evidence) {
	f := finding{pattern: t, by: by}
	contrary := 0
	for _, g := range p.golden.matching(t.golden) {
		name, ok := t.take(g.name)
		a := p.actual.named[name]
		if !ok || a == nil || !g.free() || !a.free() || g.out == nil || a.out == nil {
			continue
		}
		if !equal(g, a) && g.accounted() && a.accounted() {
			contrary++
		}
		f.pairs = append(f.pairs, [2]*layer{g, a})
	}
	if len(f.pairs) == 0 || 2*contrary > len(f.pairs) {
		return
	}
	for _, pair := range f.pairs {
		pair[0].pair, pair[1].pair = pair[1], pair[0]
		if t.open() {
			p.claimed[pair[0].key()], p.claimed[pair[1].key()] = true, true
		}
	}
	p.found = append(p.found, f)
}
