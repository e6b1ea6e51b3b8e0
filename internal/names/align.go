package names

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
