package match

import (
	"math"
	"slices"
)

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
	score, before, behind := table(n, m), table(n+1, m+1), table(n+1, m+1)
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
			behind[i][j] = max(behind[i+1][j], behind[i][j+1], behind[i+1][j+1]+score[i][j])
		}
	}
	for i, g := range golden {
		at, best, others := -1, 0.0, 0.0 // the most with the best partner, and without it
		for j := range m + 1 {
			others = max(others, before[i][j]+behind[i+1][j])
			if j == m || score[i][j] == 0 {
				continue
			}
			if through := before[i][j] + score[i][j] + behind[i+1][j+1]; through > best {
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
	after, before  *node // the golden layers of the pairs; nil at the beginning and the end
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
	var after *node
	i, j := 0, 0
	for _, cut := range slices.Backward(cuts) {
		out = append(out, stretch{after, golden[cut], golden[i:cut], actual[j:other[cut]]})
		after, i, j = golden[cut], cut+1, other[cut]+1
	}
	return append(out, stretch{after, nil, golden[i:], actual[j:]})
}
