package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the assets
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/goparity/goparity/docs"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/brief"
)

// uPlot 1.6.32, MIT licence: assets/uPlot.LICENSE. A minified file keeps no comment, so that the
// page repeats the licence.
var (
	//go:embed assets/uPlot.min.js
	uplotJS string
	//go:embed assets/uPlot.min.css
	uplotCSS string
	//go:embed assets/uPlot.LICENSE
	uplotLicence string
	//go:embed assets/page.js
	pageJS string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/page.html
	pageHTML string
)

var page = template.Must(template.New("page").Funcs(template.FuncMap{"upper": upper, "about": about}).Parse(pageHTML))

// content is what the template takes.
type content struct {
	Policy  string
	Style   template.CSS
	Scripts []template.JS
	Data    template.JS // JSON, in which Go escapes <, > and &

	Title, Headline, Counts, Source, Kind, Growing, Licence string
	Next, Why                                               string
	Report                                                  *report.Report
	Paths                                                   []alongRow
	Findings, OnePass, Benign                               []string
	Texts                                                   []textChart
	Serving                                                 string
	Served                                                  []string
	LeftOut                                                 int
}

// alongRow is an execution path in the table of them.
type alongRow struct{ Name, Ran, Matches, Consistent, Repeats, First string }

func alongRows(r *report.Report) (rows []alongRow) {
	for i := range r.Paths[:min(len(r.Paths), maxPaths)] {
		p := &r.Paths[i]
		row := alongRow{Name: text(p.Path), Ran: p.Ran(), Matches: p.Matches.Short(), Consistent: p.Consistent.Short(), Repeats: p.Repeats.Short()}
		if p.First != nil {
			row.First = text(p.First.String())
		}
		rows = append(rows, row)
	}
	return rows
}

// Write writes the page of the report that lies in file, which the next command names. Reports of more than 8,000 rows are shown in part: the failing ones first,
// then outputs.
func Write(w io.Writer, r *report.Report, file string) error {
	d := dataOf(r)
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	style := uplotCSS + "\n" + pageCSS
	c := content{Style: template.CSS(style), Scripts: []template.JS{template.JS(uplotJS), template.JS(pageJS)},
		Data:  template.JS(data),
		Title: text(r.Fixture), Headline: text(report.Headline(r)), Counts: report.Counts(r),
		Source: text(r.Source.String()), Kind: r.KindText(),
		Licence: uplotLicence, Report: cleaned(r), Paths: alongRows(r), Texts: textCharts(r), LeftOut: d.LeftOut}
	for _, f := range r.Findings() {
		c.Findings = append(c.Findings, text(f.String()))
	}
	c.Findings, c.OnePass, c.Benign = texts(c.Findings, maxNotes), texts(r.OnePass(), maxNotes), texts(r.Benign(), maxNotes)
	if s := r.Serving; s != nil {
		c.Serving, c.Served = text(s.Title()), texts(s.Lines(), maxServed)
	}
	short := brief.Of(r, file)
	if c.Why = text(short.WhyNext); short.Next != nil {
		c.Next = *short.Next // a command is shown whole
	}
	if f := r.FirstDivergence; f != nil {
		c.Growing = text(f.Growing())
	}
	hashes := make([]string, len(c.Scripts))
	for i, s := range c.Scripts {
		hashes[i] = hash(string(s))
	}
	c.Policy = fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'",
		strings.Join(hashes, " "), hash(style))
	var b bytes.Buffer
	if err := page.Execute(&b, c); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// hash is how a policy names a text that it allows.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// about is what docs/causes.md says about a cause, but for its ids.
func about(id string) []docs.Part {
	if parts := docs.Cause(id); parts != nil {
		return parts[1:]
	}
	return nil
}

func upper(v report.Verdict) string { return strings.ToUpper(string(v)) }

// text makes a string from a dump fit to show.
func text(s string) string {
	s = report.Clean(s)
	if r := []rune(s); len(r) > maxText {
		s = string(r[:maxText-1]) + "…"
	}
	return s
}

func texts(list []string, most int) []string {
	out := []string{}
	for i, s := range list {
		if i == most {
			out = append(out, fmt.Sprintf("… and %d more, all in report.json", len(list)-most))
			break
		}
		out = append(out, text(s))
	}
	return out
}

// cleaned is the part of a report that the template shows, fit to show.
func cleaned(r *report.Report) *report.Report {
	out := &report.Report{Verdict: r.Verdict, Kind: text(r.Kind), Frontier: texts(r.Frontier, maxFrontier),
		NotJudged: texts(r.NotJudged, maxNotes), Notes: texts(r.Notes, maxNotes),
		Coverage: &report.Coverage{Open: texts(r.Open(), maxNotes)}}
	if d := r.FirstDivergence; d != nil {
		out.FirstDivergence = &report.Divergence{Layer: text(d.Layer), Port: text(d.Port), Case: text(d.Case),
			Step: text(d.Step), After: text(d.After), Before: text(d.Before),
			Proven: d.Proven, Text: text(d.Sentence()), Uncaptured: texts(d.Uncaptured, maxFrontier),
			Evidence: slices.Concat(texts(d.Code(), maxNotes), texts(d.Evidence, maxNotes))}
		if d.Row != nil {
			row := *d.Row
			row.Path = text(row.Path)
			out.FirstDivergence.Row = &row
		}
	}
	if o := r.Order; o != nil {
		out.Order = &report.Order{Same: o.Same, N: o.N, Differences: texts(o.Differences, maxNotes)}
	}
	for _, c := range r.Causes[:min(len(r.Causes), maxCauses)] {
		if r.Kind == report.KindServing {
			break // they stand with the server's answers
		}
		c.ID, c.Layer, c.Text = text(c.ID), text(c.Layer), text(c.Sentence())
		out.Causes = append(out.Causes, c)
	}
	for _, c := range r.Costs[:min(len(r.Costs), maxCosts)] {
		c.Layer = text(c.Layer)
		out.Costs = append(out.Costs, c)
	}
	for side, from := range map[*[]report.Lone][]report.Lone{&out.Unmatched.Golden: r.Unmatched.Golden,
		&out.Unmatched.Actual: r.Unmatched.Actual} {
		for _, l := range from[:min(len(from), maxUnmatched)] {
			l.Name, l.Reason, l.Nearest = text(l.Name), text(l.Reason), text(l.Nearest)
			*side = append(*side, l)
		}
	}
	return out
}
