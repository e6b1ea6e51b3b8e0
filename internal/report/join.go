package report

import (
	"cmp"
	"slices"
	"strings"
)

// NothingCompared is the error of a report that no output was decided for.
const NothingCompared = "no output was compared: inputs alone prove nothing"

// severity orders verdicts: what is wrong is known, even if something else could not be judged.
var severity = []Verdict{Pass, Incomplete, Error, Fail}

// AddGeneration adds what came of another text, see join.
func (r *Report) AddGeneration(other *Report) {
	r.Generations = append(r.Generations, other.Generations...)
	r.Notes = append(r.Notes, other.Notes...)
	r.NotJudged = append(r.NotJudged, other.NotJudged...)
	r.join(other)
	r.addRows(other.Layers)
}

// AddPath adds what came of runs along an execution path to the report of others, see join.
func (r *Report) AddPath(name string, along *Report) {
	r.Paths = append(r.Paths, along.Paths...)
	if along.PathDepth != nil {
		if r.PathDepth == nil {
			r.PathDepth = &PathDepth{}
		}
		r.PathDepth.Join(along.PathDepth)
	}
	for _, n := range along.Notes {
		r.addPathNote(name, n)
	}
	alone := r.Error == NothingCompared
	r.join(along)
	if along.Verdict != Pass || alone {
		r.addRows(along.Layers)
	}
}

// addPathNote adds a note on an execution path; what is said of several stands once, as "path decode, batch: …".
func (r *Report) addPathNote(name, note string) {
	for i, n := range r.Notes {
		names, of, _ := strings.Cut(strings.TrimPrefix(n, "path "), ": ")
		switch {
		case of != note || !strings.HasPrefix(n, "path "):
		case slices.Contains(strings.Split(names, ", "), name):
			return
		default:
			r.Notes[i] = "path " + names + ", " + name + ": " + note
			return
		}
	}
	r.Notes = append(r.Notes, "path "+name+": "+note)
}

// join takes over the verdict of a later part of the run where it is worse than that of all before, or
// nothing was compared before. What was compared before stays, and what the later part leaves open is
// added.
func (r *Report) join(later *Report) {
	before := r.Coverage
	alone := r.Error == NothingCompared
	if !alone && slices.Index(severity, later.Verdict) <= slices.Index(severity, r.Verdict) {
		return
	}
	r.Verdict, r.Error, r.Kind, r.FirstDivergence = later.Verdict, later.Error, later.Kind, later.FirstDivergence
	r.Frontier, r.Causes, r.Coverage = later.Frontier, later.Causes, later.Coverage
	if before == nil || alone || later.Coverage == nil {
		r.Coverage = cmp.Or(later.Coverage, before)
		return
	}
	r.Coverage = &Coverage{Compared: before.Compared, Outputs: before.Outputs, Open: slices.Concat(before.Open, later.Coverage.Open)}
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
