package report

import "slices"

// NothingCompared is the error of a report that no output was decided for.
const NothingCompared = "no output was compared: inputs alone prove nothing"

// AddPath adds what came of runs along an execution path to the report of others. The first path
// that is wrong where all before hold is the verdict, or the first of all where nothing else was
// compared.
func (r *Report) AddPath(name string, along *Report) {
	r.Paths = append(r.Paths, along.Paths...)
	if along.PathDepth != nil {
		if r.PathDepth == nil {
			r.PathDepth = &PathDepth{}
		}
		r.PathDepth.Join(along.PathDepth)
	}
	for _, n := range along.Notes {
		if n = "path " + name + ": " + n; !slices.Contains(r.Notes, n) {
			r.Notes = append(r.Notes, n)
		}
	}
	alone := r.Error == NothingCompared
	if along.Verdict == Pass && !alone {
		return
	}
	if alone || r.Verdict == Pass || r.Verdict == Incomplete && along.Verdict != Incomplete {
		r.Verdict, r.Error, r.Kind, r.FirstDivergence = along.Verdict, along.Error, along.Kind, along.FirstDivergence
		r.Frontier, r.Causes, r.Coverage = along.Frontier, along.Causes, along.Coverage
	}
	r.addRows(along.Layers)
}

// addRows adds rows, but for those that are there: several paths may be judged with the same one
// pass.
func (r *Report) addRows(rows []Layer) {
	type key struct{ layer, port, caseName, step string }
	of := func(l *Layer) key { return key{l.Layer, l.Port, l.Case, l.Step} }
	known := map[key]bool{}
	for i := range r.Layers {
		known[of(&r.Layers[i])] = true
	}
	for i := range rows {
		if !known[of(&rows[i])] {
			r.Layers = append(r.Layers, rows[i])
		}
	}
}
