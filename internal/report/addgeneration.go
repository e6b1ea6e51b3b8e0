package report

// AddGeneration adds what came of another text. The worst verdict is that of all: a wrong token before a
// text that could not be judged.
func (r *Report) AddGeneration(other *Report) {
	r.Generations = append(r.Generations, other.Generations...)
	r.Notes = append(r.Notes, other.Notes...)
	rank := map[Verdict]int{Pass: 0, Incomplete: 1, Error: 2, Fail: 3}
	if alone := r.Error == NothingCompared; alone || rank[other.Verdict] > rank[r.Verdict] {
		r.Verdict, r.Error, r.Kind, r.FirstDivergence = other.Verdict, other.Error, other.Kind, other.FirstDivergence
		r.Frontier, r.Causes, r.Coverage = other.Frontier, other.Causes, other.Coverage
	}
	r.addRows(other.Layers)
}
