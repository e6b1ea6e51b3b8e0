package match

import "math"

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
