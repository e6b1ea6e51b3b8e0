package report

import (
	"cmp"
	"slices"
	"strings"
)

// NothingCompared is the error of a report that no output was decided for.
const NothingCompared = "no output was compared: inputs alone prove nothing"

// severity orders verdicts, from 1: what is wrong is known, even if something else could not be judged.
var severity = map[Verdict]int{Pass: 1, Incomplete: 2, Error: 3, Fail: 4}

// blank reports whether nothing was judged yet.
func (r *Report) blank() bool { return r.Verdict == "" || r.Error == NothingCompared }

// Join adds what came of another part of a run: the one rule by which several stages have one verdict. The worst is
// the verdict, and of several that are wrong the first stage, since what is wrong in a later one follows from it.
func (r *Report) Join(part *Report) {
	switch c, was := part.Coverage, r.Coverage; {
	case c == nil:
	case was == nil || r.blank():
		r.Coverage = c
	default: // what was compared before stays, and what this leaves open is added
		r.Coverage = &Coverage{Compared: was.Compared, Outputs: was.Outputs, Open: once(slices.Concat(was.Open, c.Open))}
	}
	earlier := part.Verdict == Fail && r.Verdict == Fail && placeOf(part.stage()) < placeOf(r.stage())
	if earlier || severity[part.Verdict] > severity[r.Verdict] || r.blank() {
		r.Verdict, r.Error, r.Kind, r.FirstDivergence = part.Verdict, part.Error, part.Kind, part.FirstDivergence
		r.Frontier, r.Causes = part.Frontier, part.Causes
	}
}

// Refuse fails a report that holds, for what is wrong besides all that was judged.
func (r *Report) Refuse(why string) {
	if r.Notes = append([]string{why}, r.Notes...); r.holds() {
		r.Join(&Report{Verdict: Fail})
	}
}

// Void makes a report of which nothing can be trusted: a file has changed, or the run was stopped.
func (r *Report) Void(err error) {
	r.Verdict, r.Error, r.Kind, r.FirstDivergence = Error, err.Error(), "", nil
	r.Frontier, r.Causes, r.Layers = nil, nil, nil
}

// AddGeneration adds what came of another text.
func (r *Report) AddGeneration(other *Report) {
	r.Generations = append(r.Generations, other.Generations...)
	r.Notes = append(r.Notes, other.Notes...)
	r.NotJudged = append(r.NotJudged, other.NotJudged...)
	r.Join(other)
	r.addRows(other.Layers)
}

// AddPath adds what came of runs along an execution path.
func (r *Report) AddPath(name string, along *Report) {
	r.Paths = append(r.Paths, along.Paths...)
	if along.PathDepth != nil {
		r.PathDepth = cmp.Or(r.PathDepth, &PathDepth{})
		r.PathDepth.Join(along.PathDepth)
	}
	for _, n := range along.Notes {
		r.addPathNote(name, n)
	}
	alone := r.blank()
	r.Join(along)
	if along.Verdict != Pass || alone {
		r.addRows(along.Layers)
	}
}

// addPathNote adds a note on an execution path; what is said of several stands once, as "path decode, batch: …".
func (r *Report) addPathNote(name, note string) {
	for i, n := range r.Notes {
		names, of, _ := strings.Cut(strings.TrimPrefix(n, "path "), ": ")
		if of != note || !strings.HasPrefix(n, "path ") {
			continue
		}
		if !slices.Contains(strings.Split(names, ", "), name) {
			r.Notes[i] = "path " + names + ", " + name + ": " + note
		}
		return
	}
	r.Notes = append(r.Notes, "path "+name+": "+note)
}

// addRows adds rows, but for those that are there: several paths may be judged with one pass.
func (r *Report) addRows(rows []Layer) {
	known := map[[4]string]bool{}
	for i := range r.Layers {
		known[r.Layers[i].place()] = true
	}
	for i := range rows {
		if !known[rows[i].place()] {
			r.Layers = append(r.Layers, rows[i])
		}
	}
}
