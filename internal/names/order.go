package names

import (
	"slices"
)

// carry pairs what no value and no name pairs, in the order of execution.
func (p *proposing) carry() {
	for range maxRounds {
		before := len(p.found) + len(p.fused)
		p.generalise(p.byFlow(), byOrder)
		var votes []vote
		if p.golden.ordered && p.actual.ordered {
			p.exclude()
			for _, s := range p.stretches() {
				p.joinInOrder(s)
			}
			for _, s := range p.stretches() {
				votes = append(votes, p.align(s.golden, s.actual)...)
			}
			votes = p.settled(flowing(votes))
		} else {
			votes = p.byWords()
		}
		by := byOrder
		if !p.golden.ordered || !p.actual.ordered {
			by = byShape
		}
		p.generalise(votes, by)
		if len(p.found)+len(p.fused) == before {
			return
		}
	}
}

// key is the name of a layer without the numbers of blocks.
func (l *layer) key() string { return starred(l.name, l.runs) }

// open reports whether a layer may still be carried: nothing is known of its value, and its like in
// other blocks have no partners, where this one's would be missing.
func (p *proposing) open(l *layer) bool { return p.unknown(l) && !p.alone[l.key()] }

// unknown is open also for layers that stood alone in the order.
func (p *proposing) unknown(l *layer) bool {
	return l.free() && l.out != nil && !l.idle && !l.accounted() && !p.excluded[l.key()] && !p.claimed[l.key()]
}

// exclude finds the layers that have no partner of their own: those whose value the other run has
// elsewhere, and those that stood alone before the last value that agrees, beside
// layers that the other run has. Their like in other blocks have none, either.
func (p *proposing) exclude() {
	paired := map[string]bool{} // what some layer lies in that has a partner
	for _, s := range []*side{p.golden, p.actual} {
		for _, l := range s.layers {
			if l.numbered() && l.pair != nil {
				paired[l.around()] = true
			}
		}
	}
	for _, s := range []*side{p.golden, p.actual} {
		for _, l := range s.layers {
			if l.free() && l.accounted() {
				p.excluded[l.key()] = true
			}
		}
	}
	for _, s := range p.stretches() {
		if s.agreed && len(s.golden)*len(s.actual) == 0 {
			for _, l := range slices.Concat(s.golden, s.actual) {
				if !l.numbered() || paired[l.around()] {
					p.alone[l.key()] = true
				}
			}
		}
	}
}

// stretch is what both sides have without partner between two pairs.
type stretch struct {
	golden, actual []*layer
	agreed         bool // the pair behind it holds one value
}

// stretches cuts both orders at the longest list of pairs that is in order on both sides.
func (p *proposing) stretches() (out []stretch) {
	var pairs []*layer
	for _, g := range p.golden.layers {
		if g.pair != nil {
			pairs = append(pairs, g)
		}
	}
	i, j := 0, 0
	cut := func(g, a int, agreed bool) {
		s := stretch{agreed: agreed}
		for ; i < len(p.golden.layers) && p.golden.layers[i].end < g; i++ {
			if p.open(p.golden.layers[i]) {
				s.golden = append(s.golden, p.golden.layers[i])
			}
		}
		for ; j < len(p.actual.layers) && p.actual.layers[j].end < a; j++ {
			if p.open(p.actual.layers[j]) {
				s.actual = append(s.actual, p.actual.layers[j])
			}
		}
		if len(s.golden)+len(s.actual) > 0 {
			out = append(out, s)
		}
	}
	for _, g := range increasing(pairs) {
		cut(g.end, g.pair.end, equal(g, g.pair))
	}
	const end = int(^uint(0) >> 1)
	cut(end, end, false)
	return out
}

// increasing returns the longest list of pairs whose candidates are in order, too.
func increasing(pairs []*layer) []*layer {
	var tails []int // index of the last of the best list of each length
	before := make([]int, len(pairs))
	for i, g := range pairs {
		at, _ := slices.BinarySearchFunc(tails, g.pair.end, func(t, end int) int { return pairs[t].pair.end - end })
		before[i] = -1
		if at > 0 {
			before[i] = tails[at-1]
		}
		if at == len(tails) {
			tails = append(tails, i)
		} else {
			tails[at] = i
		}
	}
	if len(tails) == 0 {
		return nil
	}
	out := make([]*layer, len(tails))
	for k, i := len(tails)-1, tails[len(tails)-1]; k >= 0; k, i = k-1, before[i] {
		out[k] = pairs[i]
	}
	return out
}
