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

// byFlow pairs the open layers that were given the outputs of one pair and go together better than
// with any other.
func (p *proposing) byFlow() (votes []vote) {
	golden, actual := p.golden.consumers(), p.actual.consumers()
	score := func(l, o *layer) float64 {
		g, a := l, o
		if p.golden.named[l.name] != l {
			g, a = o, l
		}
		if !p.open(o) || g.sameInputs(a) <= 0 {
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
		if !p.open(g) {
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
	for _, v := range votes {
		score := p.score(v.golden, v.actual)
		rivals := func(l *layer, consumers map[*value][]*layer, with func(o *layer) float64) bool {
			return len(l.in) > 0 && slices.ContainsFunc(consumers[l.in[0]], func(o *layer) bool {
				return o != l && p.open(o) && parallel(l, o) && with(o) > score-margin
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

// key is the name of a layer without the numbers of blocks.
func (l *layer) key() string { return starred(l.name, l.runs) }

// open reports whether a layer may still be carried: nothing is known of its value, and its like in
// other blocks have no partners, where this one's would be missing.
func (p *proposing) open(l *layer) bool {
	return l.free() && l.out != nil && !l.idle && !l.accounted() && !p.excluded[l.key()] && !p.claimed[l.key()]
}

// exclude finds the layers that have no partner of their own: those whose value the other run has
// elsewhere, and those that stood alone before the last value that agrees. Their like in other
// blocks have none, either.
func (p *proposing) exclude() {
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
				p.excluded[l.key()] = true
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

// score says how well two layers go together in an alignment; 0 if they do not.
func (p *proposing) score(g, a *layer) float64 {
	if g.words.contradict(a.words) || !p.fits(g, a) {
		return 0
	}
	if (g.given() || a.given()) && g.words.affinity(a.words) == 0 {
		return 0
	}
	s := 1 + p.likeness(g, a)
	return max(0, s+2*g.value.resemblance(a.value))
}

// align pairs two lists in order such that the scores add up to the most, and returns the pairs
// without which it would be clearly less.
func (p *proposing) align(golden, actual []*layer) (votes []vote) {
	part := 1
	for (part+1)*(part+1) <= maxCells {
		part *= 2
	}
	golden, actual = golden[:min(len(golden), part)], actual[:min(len(actual), part)]
	n, m := len(golden), len(actual)
	if n == 0 || m == 0 {
		return nil
	}
	score := make([][]float64, n)
	for i, g := range golden {
		score[i] = make([]float64, m)
		for j, a := range actual {
			if score[i][j] = p.score(g, a); score[i][j] < minScore {
				score[i][j] = 0
			}
		}
	}
	before, behind := table(n+1, m+1), table(n+1, m+1)
	for i := range n {
		for j := range m {
			before[i+1][j+1] = max(before[i][j+1], before[i+1][j], paired(before[i][j], score[i][j]))
		}
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			behind[i][j] = max(behind[i+1][j], behind[i][j+1], paired(behind[i+1][j+1], score[i][j]))
		}
	}
	most := before[n][m]
	through := func(i, j int) float64 {
		if score[i][j] == 0 {
			return 0
		}
		return before[i][j] + score[i][j] + behind[i+1][j+1]
	}
	for i := range n {
		j, without := choose(m, func(j int) float64 { return through(i, j) })
		for k := range m + 1 {
			without = max(without, before[i][k]+behind[i+1][k])
		}
		if j < 0 || most-through(i, j) > 1e-9 || most-without < margin {
			continue
		}
		back, other := choose(n, func(i int) float64 { return through(i, j) })
		for k := range n + 1 {
			other = max(other, before[k][j]+behind[k][j+1])
		}
		if back == i && most-other >= margin {
			votes = append(votes, vote{golden[i], actual[j]})
		}
	}
	return votes
}

// paired is a sum with a pair's score, which is nothing for a pair that cannot be.
func paired(sum, score float64) float64 {
	if score == 0 {
		return 0
	}
	return sum + score
}

func table(n, m int) [][]float64 {
	t := make([][]float64, n)
	for i := range t {
		t[i] = make([]float64, m)
	}
	return t
}

// choose returns the index of the largest value and the second largest; −1 if none is positive.
func choose(n int, of func(int) float64) (at int, second float64) {
	at = -1
	var most float64
	for i := range n {
		if v := of(i); v > most {
			at, most, second = i, v, most
		} else {
			second = max(second, v)
		}
	}
	return at, second
}

// byWords pairs what no order tells apart: layers of one block whose shapes fit and whose names say
// the same.
func (p *proposing) byWords() (votes []vote) {
	var golden, actual []*layer
	for _, g := range p.golden.layers {
		if p.open(g) {
			golden = append(golden, g)
		}
	}
	for _, a := range p.actual.layers {
		if p.open(a) {
			actual = append(actual, a)
		}
	}
	if len(golden) > maxOpen || len(actual) > maxOpen { // the first blocks tell
		golden, actual = golden[:min(len(golden), maxOpen)], actual[:min(len(actual), maxOpen)]
	}
	score := func(g, a *layer) float64 {
		if !p.sameBlock(g, a) || g.numbered() != a.numbered() {
			return 0
		}
		if s := p.score(g, a); s >= 1+minScore || s >= 1+minScore/2 && p.sameParent(g, a) > 0 {
			return s
		}
		return 0
	}
	for i, g := range golden {
		j, ok := p.best(g, actual, score)
		if !ok || len(actual) == 0 || score(g, actual[j]) == 0 {
			continue
		}
		if back, ok := p.best(actual[j], golden, func(a, g *layer) float64 { return score(g, a) }); ok && back == i {
			votes = append(votes, vote{g, actual[j]})
		}
	}
	return votes
}

// shift is from which number the candidate counts its blocks, if the golden counts from 0.
func (p *proposing) shift() int {
	for _, f := range p.found {
		if f.open() {
			return f.shift[0]
		}
	}
	return 0
}
