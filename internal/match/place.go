package match

import (
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/label"
)

// byPlace pairs what no value and no name pairs, again and again: what is found tells more of the rest.
func (p *search) byPlace() {
	ordered := !p.golden.byName && !p.actual.byName
	for range maxRounds {
		before := len(p.found)
		p.generalise(p.byScore(!ordered), byPlace)
		if ordered {
			p.generalise(p.byOrder(), byPlace)
		}
		if len(p.found) == before {
			return
		}
	}
}

// open reports whether a layer may still get a partner without an equal value.
func (p *search) open(n *node) bool { return n.free() && n.out != nil && !n.accounted() }

// byScore pairs the layers that go together better than with any other and were given the same or,
// by name, are called alike in one block.
func (p *search) byScore(byName bool) []edge {
	golden, actual := keep(p.golden.layers, p.open), keep(p.actual.layers, p.open)
	var edges []edge
	for _, g := range golden[:min(len(golden), maxOpen)] { // the first blocks tell
		for _, a := range actual[:min(len(actual), maxOpen)] {
			given := g.sameInputs(a) > 0
			if !given && (!byName || g.inBlock() != a.inBlock() || !p.sameBlock(g, a)) {
				continue
			}
			if s := p.score(g, a); s >= 1+minScore/2 || given && s >= minScore {
				edges = append(edges, edge{g, a, s})
			}
		}
	}
	pairs, _ := assign(edges)
	return pairs
}

// byOrder pairs layers in the order of execution, between what is paired.
func (p *search) byOrder() (pairs []edge) {
	for _, s := range p.stretches() {
		p.byWidths(s.actual, s.golden)
		p.byWidths(s.golden, s.actual)
	}
	for _, s := range p.stretches() {
		pairs = append(pairs, p.align(s.golden, s.actual)...)
	}
	return p.settled(pairs)
}

// stretches lists the layers between what is paired that may get a partner.
func (p *search) stretches() []stretch {
	out := stretches(p.golden.layers, p.actual.layers, func(n *node) *node { return n.pair })
	for i := range out {
		out[i].golden, out[i].actual = keep(out[i].golden, p.open), keep(out[i].actual, p.open)
	}
	return out
}

// settled drops the pairs of layers that go as well with another one that was given the same: only
// the order speaks for them, in which two engines need not call q, k and v.
func (p *search) settled(pairs []edge) []edge {
	partner := map[*node]*node{}
	for _, e := range pairs {
		partner[e.golden], partner[e.actual] = e.actual, e.golden
	}
	rival := func(c *side, n *node, least float64, score func(*node) float64) bool {
		return slices.ContainsFunc(c.layers, func(o *node) bool {
			return o != n && p.open(o) && parallel(n, o) && !nested(n, o) && !nested(partner[n], partner[o]) && score(o) > least
		})
	}
	return keep(pairs, func(e edge) bool {
		least := p.score(e.golden, e.actual) - margin
		if rival(p.golden, e.golden, least, func(g *node) float64 { return p.score(g, e.actual) }) ||
			rival(p.actual, e.actual, least, func(a *node) float64 { return p.score(e.golden, a) }) {
			p.parallel[e.golden] = e.actual
			return false
		}
		return true
	})
}

// nested reports whether one of two layers lies inside of the other: it returns first.
func nested(n, o *node) bool {
	return n != nil && o != nil && (label.Inside(n.label, o.label) || label.Inside(o.label, n.label))
}

// parallel reports whether a layer was given what another one of its run is about.
func parallel(n, o *node) bool { return len(n.in) > 0 && slices.Contains(o.in, n.in[0]) }

// edge is a possible pair of layers.
type edge struct {
	golden, actual *node
	score          float64 // how well they go together
}

// assign pairs the layers of which each is the other's best choice by the margin. What has a partner
// is no choice of others any more. rest are the edges between layers that got none.
func assign(edges []edge) (pairs, rest []edge) {
	of := map[*node][]edge{}
	for _, e := range edges {
		of[e.golden], of[e.actual] = append(of[e.golden], e), append(of[e.actual], e)
	}
	taken := map[*node]bool{}
	best := func(n *node) (best edge, clear bool) {
		best.score = math.Inf(-1)
		second := best.score
		for _, e := range of[n] {
			switch {
			case taken[e.golden] || taken[e.actual] || e == best:
			case e.score > best.score:
				best, second = e, best.score
			default:
				second = max(second, e.score)
			}
		}
		return best, best.golden != nil && best.score-second >= margin
	}
	for found := true; found; {
		found = false
		for _, e := range edges {
			if taken[e.golden] || taken[e.actual] {
				continue
			}
			mine, clear := best(e.golden)
			if !clear || mine != e {
				continue
			}
			if back, clear := best(e.actual); clear && back == e {
				pairs, found = append(pairs, e), true
				taken[e.golden], taken[e.actual] = true, true
			}
		}
	}
	for _, e := range edges {
		if !taken[e.golden] && !taken[e.actual] {
			rest = append(rest, e)
		}
	}
	return pairs, rest
}

// align pairs two lists in order such that the scores add up to the most, and returns the pairs
// without which it would be clearly less.
func (p *search) align(golden, actual []*node) (pairs []edge) {
	golden, actual = golden[:min(len(golden), maxAligned)], actual[:min(len(actual), maxAligned)]
	n, m := len(golden), len(actual)
	score, before, after := table(n, m), table(n+1, m+1), table(n+1, m+1)
	for i, g := range golden {
		for j, a := range actual {
			if s := p.score(g, a); s >= minScore {
				score[i][j] = s
			}
			before[i+1][j+1] = max(before[i][j+1], before[i+1][j], before[i][j]+score[i][j])
		}
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			after[i][j] = max(after[i+1][j], after[i][j+1], after[i+1][j+1]+score[i][j])
		}
	}
	for i, g := range golden {
		at, best, others := -1, 0.0, 0.0 // the most with the best partner, and without it
		for j := range m + 1 {
			others = max(others, before[i][j]+after[i+1][j])
			if j == m || score[i][j] == 0 {
				continue
			}
			if through := before[i][j] + score[i][j] + after[i+1][j+1]; through > best {
				at, best, others = j, through, max(others, best)
			} else {
				others = max(others, through)
			}
		}
		if at >= 0 && best-others >= margin {
			pairs = append(pairs, edge{g, actual[at], score[i][at]})
		}
	}
	return pairs
}

func table(n, m int) [][]float64 {
	t := make([][]float64, n)
	for i := range t {
		t[i] = make([]float64, m)
	}
	return t
}

// stretch is what lies between two pairs on both sides.
type stretch struct {
	after, before  string // the golden labels of the pairs; "" at the beginning and the end
	golden, actual []*node
}

// stretches cuts both orders at the longest list of pairs that is in order on both sides.
func stretches(golden, actual []*node, partner func(golden *node) *node) (out []stretch) {
	places := map[*node]int{} // in the candidate's order
	for i, a := range actual {
		places[a] = i
	}
	other, before := make([]int, len(golden)), make([]int, len(golden)) // the partner's place, the pair before in the list
	tails := []int{-1}                                                  // by length, the last pair of the best list of it
	for i, g := range golden {
		at, ok := places[partner(g)]
		if !ok {
			continue
		}
		n, _ := slices.BinarySearchFunc(tails[1:], at, func(tail, at int) int { return other[tail] - at })
		other[i], before[i] = at, tails[n]
		tails = slices.Replace(tails, n+1, min(n+2, len(tails)), i)
	}
	var cuts []int
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		cuts = append(cuts, i)
	}
	after, i, j := "", 0, 0
	for _, cut := range slices.Backward(cuts) {
		out = append(out, stretch{after, golden[cut].label, golden[i:cut], actual[j:other[cut]]})
		after, i, j = golden[cut].label, cut+1, other[cut]+1
	}
	return append(out, stretch{after, "", golden[i:], actual[j:]})
}

// likeness says how well two layers that may be one go together, by what they are given, by what is
// inside of them and by their names: 0 if nothing is known, 1 and more if much speaks for it.
func (p *search) likeness(g, a *node) float64 {
	score := g.words.affinity(a.words)
	if p.golden.nested && p.actual.nested && g.leaf != a.leaf {
		score -= 0.75
	}
	return score + p.sameParent(g, a) + g.sameInputs(a)
}

// sameParent is positive if the layers around two layers are a pair, and negative if they are those of
// others.
func (p *search) sameParent(g, a *node) float64 {
	up, other := p.golden.named[label.Parent(g.label)], p.actual.named[label.Parent(a.label)]
	switch {
	case up == nil || other == nil || up.pair == nil || other.pair == nil:
		return 0
	case up.pair == other:
		return 0.5
	}
	return -0.5
}

// sameInputs is positive if two layers were given the same: equal values or, after an error, the
// outputs of two layers that are a pair.
func (n *node) sameInputs(o *node) float64 {
	partnersMade := func(from *node) bool { return from.pair != nil && slices.Contains(o.in, from.pair.value) }
	for _, v := range n.in {
		if v.other != nil && slices.Contains(o.in, v.other) || slices.ContainsFunc(v.from, partnersMade) {
			return 1
		}
	}
	return 0
}

// score says how well two layers go together that no equal value pairs; 0 if they do not.
func (p *search) score(g, a *node) float64 {
	if !p.shapesFit(g, a) {
		return 0
	}
	return max(0, 1+p.likeness(g, a)+2*g.value.resemblance(a.value))
}

// shapesFit reports whether the outputs of two layers may be one tensor by type and shape.
func (p *search) shapesFit(g, a *node) bool {
	if g.out == nil || a.out == nil || g.out.dtype.Kind() != a.out.dtype.Kind() {
		return false
	}
	end := !g.inBlock() && !a.inBlock() // of a generating model, which may have the last row only
	_, ok := p.padding.Fit(g.out.shape, a.out.shape, allowance{LastRow: p.opt.Generating || end})
	return ok
}

// accounted reports whether a layer of the other run holds the value.
func (n *node) accounted() bool {
	return n.value != nil && n.value.other != nil && len(n.value.other.from) > 0
}

// foreign says why the two runs seem to be of two models: too few different values are in both, or
// alike, that hold something of the model. "" if they do not.
func (p *search) foreign() string {
	if 2*len(p.joins) >= len(p.golden.layers) {
		return "" // the names say that it is one
	}
	n := len(keep(p.golden.values, func(g *value) bool { return g.other != nil && !g.table && !g.other.table }))
	if n < minValues {
		n += p.resembling()
	}
	if n >= minValues {
		return ""
	}
	return fmt.Sprintf("%d of the outputs of the golden (%d layers) are among those of the candidate (%d layers), or one like them, and "+
		"two models may share an embedding: the two runs are of two models, of other weights or of another input",
		n, len(p.golden.layers), len(p.actual.layers))
}

// resembling counts the golden's values that the candidate has nearly: as after an error in the
// first layer.
func (p *search) resembling() (n int) {
	actual := p.actual.layers[:min(len(p.actual.layers), maxOpen)]
	for _, g := range p.golden.layers[:min(len(p.golden.layers), maxOpen)] {
		first := g.value != nil && g.value.from[0] == g && !g.accounted()
		if first && slices.ContainsFunc(actual, func(a *node) bool { return g.value.resemblance(a.value) >= alike }) {
			n++
		}
	}
	return n
}
