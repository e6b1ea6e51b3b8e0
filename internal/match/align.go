package match

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
