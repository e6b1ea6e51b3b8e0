// Package brief says in at most 2 kB what a report found and what to do next: for people in a
// hurry, for a CI's comments and for coding agents. All of it is taken from the report by [Of];
// [Brief.JSON] has it, and [Brief.Text] is as much of the report's document as there is room for.
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

	report *report.Report
	file   string
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
	b := &Brief{Schema: Schema, Fixture: r.Fixture, Verdict: r.Verdict, Stage: stageOf(r), Kind: r.Kind,
		NotJudged: r.NotJudged, NotCovered: r.Open(), Second: second(r), report: r, file: file}
	if d := r.FirstDivergence; d != nil {
		b.First = &Place{Layer: d.Layer, Port: d.Port, Case: d.Case, Step: d.Step, Place: d.Place, After: d.After,
			Before: d.Before, Proven: d.Proven, Text: d.Text, Reference: d.Reference, Candidate: d.Candidate, Row: d.Row}
		if all := r.Findings(); len(all) > 0 && d.Row != nil {
			b.First.Alike = slices.DeleteFunc(slices.Clone(all[0].Paths), func(path string) bool { return path == d.Path })
		}
	}
	if len(r.Causes) > 0 {
		b.Cause = causeOf(r.Causes[0])
	}
	if c := r.Coverage; c != nil {
		b.Compared, b.Outputs = &c.Compared, &c.Outputs
	}
	next, why := r.Next(file)
	if b.WhyNext = why; next != "" {
		b.Next = &next
	}
	return b.each(report.Clean, report.Clean, func(list []string) []string {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = report.Clean(s)
		}
		return out
	})
}

// each returns the brief with its names, sentences and lists as they are returned for them.
func (b *Brief) each(name, sentence func(string) string, list func([]string) []string) *Brief {
	change := func(f func(string) string, texts ...*string) {
		for _, t := range texts {
			*t = f(*t)
		}
	}
	cause := func(c *Cause) *Cause {
		if c == nil {
			return nil
		}
		out := *c
		change(name, &out.ID, &out.Layer, &out.Doc)
		change(sentence, &out.Text)
		return &out
	}
	out := *b
	change(name, &out.Fixture, &out.Kind)
	change(sentence, &out.WhyNext)
	out.NotJudged, out.NotCovered, out.Cause = list(b.NotJudged), list(b.NotCovered), cause(b.Cause)
	if b.First != nil {
		p := *b.First
		change(name, &p.Layer, &p.Port, &p.Case, &p.Step, &p.Place, &p.After, &p.Before)
		change(sentence, &p.Text, &p.Reference, &p.Candidate)
		if p.Row != nil {
			row := *p.Row
			change(name, &row.Path)
			p.Row = &row
		}
		if len(p.Alike) > 0 {
			p.Alike = list(p.Alike)
		}
		out.First = &p
	}
	if b.Second != nil {
		s := Second{Layer: b.Second.Layer, Text: b.Second.Text, Cause: cause(b.Second.Cause)}
		change(name, &s.Layer)
		change(sentence, &s.Text)
		out.Second = &s
	}
	return &out
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
	return &Cause{ID: c.ID, Layer: c.Layer, Proven: c.Proven, Text: strings.TrimPrefix(c.Text+"; "+c.Evidence(), "; "), Doc: c.Doc()}
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
		s := &Second{Layer: layer}
		if known {
			s.Cause = causeOf(r.Causes[i])
		}
		for _, e := range d.Evidence {
			if text, ok := strings.CutPrefix(e, report.AlsoWrong(layer)); ok {
				s.Text = text
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
	return &Second{Layer: f.First.Layer, Text: f.String() + "; first in " + strings.TrimPrefix(f.First.At(), ", ")}
}

func alike(a, b string) bool {
	return label.Kind(a) == label.Kind(b) || label.Last(a) == label.Last(b) || report.ComponentOf(a) == report.ComponentOf(b)
}

func inherited(r *report.Report, layer string) bool {
	return slices.ContainsFunc(r.Layers, func(l report.Layer) bool {
		return l.Layer == layer && !l.IsInput() && l.Status == report.StatusInherited
	})
}
