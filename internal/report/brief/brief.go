// Package brief says in at most 2 kB what a report found and what to do next: for people in a
// hurry, for a CI's comments and for coding agents. All of it is taken from the report by [Of];
// [Brief.JSON] and [Brief.Text] are two ways to write it.
package brief

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
)

// Schema is the version of the JSON form.
const Schema = 1

// Brief is a report in short. docs/report.md says what each key means.
type Brief struct {
	Schema     int            `json:"schema"`
	Fixture    string         `json:"fixture"`
	Verdict    report.Verdict `json:"verdict"`
	Stage      string         `json:"stage"`
	Kind       string         `json:"kind"`
	First      *Place         `json:"first_divergence"`
	Cause      *Cause         `json:"cause"`
	Compared   *int           `json:"compared"`
	Outputs    *int           `json:"outputs"`
	NotJudged  []string       `json:"not_judged"`
	NotCovered []string       `json:"not_covered"`
	Second     *Second        `json:"second"`
	Next       *string        `json:"next"`
	WhyNext    string         `json:"why_next"`
}

// Place is the first divergence.
type Place struct {
	Layer  string `json:"layer"`
	Port   string `json:"port"`
	Case   string `json:"case"`
	Step   string `json:"step"`
	Place  string `json:"place"`
	After  string `json:"after"`
	Before string `json:"before"`
	Proven bool   `json:"proven"`
	Text   string `json:"text"`

	Reference string `json:"reference,omitempty"` // the code of the place, as in report.json
	Candidate string `json:"candidate,omitempty"`

	*report.Row          // of a run along an execution path
	Alike       []string `json:"alike,omitempty"` // other paths that fail at this layer with this cause
}

// Cause is why it happens.
type Cause struct {
	ID     string `json:"id"`
	Layer  string `json:"layer"`
	Proven bool   `json:"proven"`
	Text   string `json:"text"`
	Doc    string `json:"doc"`
}

// Second is another layer that makes an error of its own.
type Second struct {
	Layer string `json:"layer"`
	Text  string `json:"text"`
	Cause *Cause `json:"cause"`
}

// stageRun says that nothing could be judged.
const stageRun = "run"

// Of returns a report in short; file is where it lies, for the next command.
func Of(r *report.Report, file string) *Brief {
	b := &Brief{Schema: Schema, Fixture: report.Clean(r.Fixture), Verdict: r.Verdict, Stage: stageOf(r), Kind: report.Clean(r.Kind),
		NotJudged: cleaned(r.NotJudged), NotCovered: cleaned(r.Open())}
	if d := r.FirstDivergence; d != nil {
		b.First = &Place{Layer: report.Clean(d.Layer), Port: report.Clean(d.Port), Case: report.Clean(d.Case),
			Step: report.Clean(d.Step), Place: report.Clean(d.Place), After: report.Clean(d.After),
			Before: report.Clean(d.Before), Proven: d.Proven, Text: report.Clean(d.Text), Reference: report.Clean(d.Reference), Candidate: report.Clean(d.Candidate)}
		if d.Row != nil {
			row := *d.Row
			row.Path = report.Clean(row.Path)
			b.First.Row = &row
		}
		if all := r.Findings(); len(all) > 0 && d.Row != nil {
			for _, path := range all[0].Paths {
				if path != d.Path {
					b.First.Alike = append(b.First.Alike, report.Clean(path))
				}
			}
		}
	}
	if len(r.Causes) > 0 {
		b.Cause = causeOf(r.Causes[0])
	}
	if c := r.Coverage; c != nil {
		b.Compared, b.Outputs = &c.Compared, &c.Outputs
	}
	b.Second = second(r)
	next, why := r.Next(file)
	if next != "" {
		b.Next = &next
	}
	b.WhyNext = report.Clean(why)
	return b
}

// Broken is the brief of what left no report: why says what happened.
func Broken(fixture, why string) *Brief {
	return Of(&report.Report{Fixture: fixture, Verdict: report.Error, Error: why}, "")
}

func stageOf(r *report.Report) string {
	if r.Verdict == report.Error {
		return stageRun
	}
	return r.Subject()
}

func causeOf(c report.Cause) *Cause {
	return &Cause{ID: report.Clean(c.ID), Layer: report.Clean(c.Layer), Proven: c.Proven,
		Text: report.Clean(strings.TrimPrefix(c.Text+"; "+c.Evidence(), "; ")), Doc: report.Clean(c.Doc())}
}

func cleaned(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = report.Clean(t)
	}
	return out
}

// second returns the first layer besides the place that makes an error which is known to be
// another one; nil if there is none. One mistake shows in all layers that are built alike, and in
// parts of one component: these are another fault only where another cause is proven.
func second(r *report.Report) *Second {
	d := r.FirstDivergence
	if r.Kind == "path" {
		return secondPath(r)
	}
	if d == nil || d.Layer == "" || r.Kind != "local" && r.Kind != "between" {
		return nil // the other kinds concern the whole run
	}
	layers := slices.Clone(r.Frontier)
	for _, c := range r.Causes {
		layers = append(layers, c.Layer)
	}
	for _, layer := range layers {
		if label.Within(layer, d.Layer) || label.Inside(d.Layer, layer) || layer == d.Before || layer == d.After {
			continue
		}
		i := slices.IndexFunc(r.Causes, func(c report.Cause) bool { return c.Layer == layer && c.Proven })
		known := i >= 0 && r.Causes[i].ID != r.Causes[0].ID
		if !known && (!slices.Contains(r.Frontier, layer) || i >= 0 || alike(layer, d.Layer)) || inherited(r, layer) {
			continue
		}
		s := &Second{Layer: report.Clean(layer)}
		if known {
			s.Cause = causeOf(r.Causes[i])
		}
		for _, e := range d.Evidence {
			if text, ok := strings.CutPrefix(e, report.AlsoWrong(layer)); ok {
				s.Text = report.Clean(text)
			}
		}
		return s
	}
	return nil
}

// secondPath is what goes wrong along other execution paths, at another layer or with another
// cause; nil if there is nothing.
func secondPath(r *report.Report) *Second {
	all := r.Findings()
	if len(all) < 2 {
		return nil
	}
	f := all[1]
	return &Second{Layer: report.Clean(f.First.Layer), Text: f.String() + "; first in " + strings.TrimPrefix(f.First.At(), ", ")}
}

func alike(a, b string) bool {
	return label.Kind(a) == label.Kind(b) || label.Last(a) == label.Last(b) || report.ComponentOf(a) == report.ComponentOf(b)
}

func inherited(r *report.Report, layer string) bool {
	return slices.ContainsFunc(r.Layers, func(l report.Layer) bool {
		return l.Layer == layer && !l.IsInput() && l.Status == report.StatusInherited
	})
}
