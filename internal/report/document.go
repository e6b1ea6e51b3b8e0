package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Document is what a report says to people, in order. [Text], [Markdown] and the page write all of it.
type Document struct {
	Heading  string // of a kind of its own; empty for a report's
	Fixture  string
	Verdict  Verdict
	Title    string
	Sections []Section
}

// Section is a part of a document: a table, then lines.
type Section struct {
	ID      string // one of the constants below
	Heading string // empty: it goes on from what stands before
	Table   *Table
	Lines   []Line
	More    int  // rows, or lines, that the limits leave out
	Folded  bool // of second rank: a page shows it on request
}

// Sections that a page shows with more than text.
const (
	sectionPlace       = "place"
	sectionCauses      = "causes"
	sectionJudged      = "judged"
	sectionPaths       = "paths"
	sectionGenerations = "generations"
	sectionRows        = "rows"
	sectionSource      = "source"
	sectionNext        = "next"
)

// InHead reports whether a section says what the verdict is about, and stands with it.
func (s Section) InHead() bool {
	return slices.Contains([]string{sectionPlace, sectionJudged, sectionSource, sectionNext}, s.ID)
}

// Line is a sentence.
type Line struct {
	Lead  string // what it is about: "stages", "proven"
	Code  string // an identifier or name
	Text  string
	Cause string // the cause of which what stands above tells
	Level int    // 1: it belongs to the line above
	Paste bool   // to be copied: it is not broken
}

// Table is a table of metrics.
type Table struct {
	Head    []string
	Rows    [][]string
	Name    int        // the column that names a row
	Metrics int        // how many columns after it are metrics
	Mark    int        // the number of the row of the first divergence, from 1; 0 for none
	Below   [][]string // what else is said of a row, by its place; may end before the last
}

func (t *Table) below(row int) []string {
	if row < len(t.Below) {
		return t.Below[row]
	}
	return nil
}

const (
	noMetric  = "-"     // stands for one that is not there
	unlimited = 1 << 20 // what is always shown has this limit
)

// View says how much a document shows.
type View struct {
	Verbose bool   // every row and every note, as a page has them
	Tested  bool   // it stands below failing tests, which gave the metrics of their rows: what is left is short
	Told    bool   // and said where the error is and why
	File    string // where the report lies, for the next command; empty: nowhere
	Short   bool   // the place, the best cause, what was not judged, and what to do alone
}

// Document says what a report says.
func (r *Report) Document(v View) *Document {
	d := r.composer(v)
	if !v.Told {
		d.place()
		d.causes()
	}
	if v.Short {
		d.another()
	}
	d.judged()
	if v.Short {
		d.next()
		return &d.Document
	}
	d.bisected()
	for _, s := range stages() {
		if s.show != nil {
			s.show(d)
		}
	}
	if !v.Tested {
		d.rows()
	}
	d.benign()
	if !v.Tested || r.FirstDivergence == nil { // where a place is known, what only one side has is no news
		d.costs()
		d.unmatched()
		d.hints()
		d.order()
	}
	d.notes()
	if !v.Tested { // a failing test says how it is run again
		d.next()
	}
	return &d.Document
}

type composer struct {
	Document
	View
	r     *Report
	names naming
}

func (r *Report) composer(v View) *composer {
	return &composer{Document: Document{Fixture: Clean(r.Fixture), Verdict: r.Verdict, Title: Clean(Headline(r))}, View: v, r: r, names: namingOf(r.Layers)}
}

// shown is how many of n entries to show; a rest of one, too, since saying so takes as much room.
func (d *composer) shown(n, limit int) int {
	if d.Verbose || n <= limit+1 {
		return n
	}
	return limit
}

// add adds a section that says anything: at most limit rows of its table, or else lines, then all that comes after.
func (d *composer) add(s Section, limit int, after ...Line) {
	if s.Table != nil {
		n := d.shown(len(s.Table.Rows), limit)
		s.More, s.Table.Rows = s.More+len(s.Table.Rows)-n, s.Table.Rows[:n]
	} else {
		n := d.shown(len(s.Lines), limit)
		s.More, s.Lines = s.More+len(s.Lines)-n, s.Lines[:n:n]
	}
	if s.Lines = append(s.Lines, after...); s.Table != nil || len(s.Lines) > 0 {
		d.Sections = append(d.Sections, s)
	}
}

// lines are texts about one thing; empty ones are none.
func lines(lead string, texts ...string) (out []Line) {
	for _, t := range filled(texts) {
		out = append(out, Line{Lead: lead, Text: t})
	}
	return out
}

func (d *composer) few(names []string) string { return few(names, d.shown(len(names), maxLines)) }

// place says what is wrong at the first divergence, and where that is in the code of both sides.
func (d *composer) place() {
	at := d.r.FirstDivergence
	if at == nil {
		return
	}
	var where []string
	for _, w := range [][2]string{{"port ", at.Port}, {"case ", at.Case}, {"step ", at.Step}} {
		if at.Port != "" && w[1] != "" {
			where = append(where, w[0]+w[1])
		}
	}
	d.add(Section{ID: sectionPlace, Lines: slices.Concat(lines("", d.r.Found()...), lines("evidence", at.Evidence...),
		lines("grows", at.growing()), lines("not recorded, so not compared", d.few(at.Uncaptured)),
		lines("", joined(", ", where...)))}, unlimited)
}

// causes says what explains the first divergence. Those of a server stand with its answers.
func (d *composer) causes() {
	at, causes := d.r.FirstDivergence, d.r.Causes
	s := Section{ID: sectionCauses, Heading: "Causes"}
	switch {
	case d.r.Kind == KindServing || causes == nil || len(causes) == 0 && !d.r.placed():
		return // no one asked, or there is no place to find a cause of
	case len(causes) == 0 && at.Place != "":
		s.Lines = lines("", "none can be told from what was recorded: dump the inputs of layers too, and the layers that are missing; "+
			"join those with other names (parity names)")
	case len(causes) == 0:
		s.Lines = lines("", "unproven: no known cause explains most of the error. Change the reference's program as you suspect: parity compare --edit "+
			at.Layer+" lists it; see "+causeDoc)
	default:
		if causes[0].Proven && !d.Verbose { // what fits worse at that place is no news
			causes = slices.DeleteFunc(slices.Clone(causes), func(c Cause) bool { return !c.Proven && c.Layer == causes[0].Layer })
		}
		n := d.shown(len(causes), maxFew)
		if d.Short {
			n = 1
		}
		for _, c := range causes[:n] {
			s.Lines = append(s.Lines, c.lines(c.Evidence(), c.Sentence())...)
		}
		s.More = len(d.r.Causes) - n
		s.Lines = append(s.Lines, Line{Lead: "what they mean and what to do", Text: docs(causes[:n])})
	}
	d.add(s, unlimited)
}

// judged says what the verdict is about, and what not.
func (d *composer) judged() {
	r, open, help, frontier, counts := d.r, d.r.Open(), "", "", ""
	if r.Verdict == Incomplete {
		open, help = open[1:], OpenHelp // the headline says the first
	}
	n := d.shown(len(open), maxLines)
	covered := slices.Clone(open[:n])
	if len(open) > n {
		covered = append(covered, fmt.Sprintf("… and %d more, all in report.json", len(open)-n))
	}
	if len(r.Frontier) > 1 && !d.Tested {
		frontier = d.few(r.Frontier)
	}
	if s := Count(r.Layers); s.counts() != "" && (r.Verdict != Pass || s.Status[StatusIgnored]+s.Status[StatusUnexpected] > 0) {
		counts = s.compared() + ": " + s.counts()
	}
	s := Section{ID: sectionJudged}
	if len(d.Sections) > 0 {
		s.Heading = "What was judged"
	}
	d.add(s, unlimited, slices.Concat(lines("stages", r.stageLine()), lines("", r.quantised()...), lines("not covered", covered...),
		lines("", help), lines("not judged", strings.Join(r.NotJudged, "; ")), lines("frontier", frontier), lines("", counts))...)
}

// rows are the failing ones, or the worst of those that pass. What inherited an error takes one line.
func (d *composer) rows() {
	rows, limit := d.r.Failing(), maxRows
	s := Section{ID: sectionRows, Heading: "Failing rows, in the order in which the values existed"}
	var inherited groups
	switch i := slices.IndexFunc(rows, (*Layer).inherits); {
	case d.Verbose:
		rows = d.r.rows(func(*Layer) bool { return true })
		s.Heading = "All rows, in the order in which the values existed"
	case len(rows) == 0:
		rows, limit, s.Heading = d.r.worst(), maxFew, "Worst rows"
	case i > 0:
		for _, l := range rows[i:] {
			inherited.add("only pass the error on", d.names.row(l))
		}
		rows = rows[:i]
	}
	if len(rows) > 0 {
		s.Table = d.tableOf(rows)
		d.add(s, limit, inherited.lines(d)...)
	}
}

// groups are names by what holds of them, in the order in which that was first said.
type groups []group

func (g *groups) add(what, name string) {
	i := slices.IndexFunc(*g, func(x group) bool { return x.what == what })
	if i < 0 {
		i, *g = len(*g), append(*g, group{what: what})
	}
	(*g)[i].names = append((*g)[i].names, name)
}

// lines say of how many names something holds, and the first of them.
func (g groups) lines(d *composer) (out []Line) {
	for _, x := range g {
		n := len(x.names)
		out = append(out, Line{Text: fmt.Sprintf("%d %s: %s", n, x.what, few(x.names, d.shown(n, 2)))})
	}
	return out
}

// benign lists the rows that pass although their metrics differ. A table of all rows has them.
func (d *composer) benign() {
	var g groups
	for _, l := range d.r.rows(func(l *Layer) bool { return l.Status == StatusPass && l.Benign && !d.Verbose }) {
		g.add(l.Note, d.names.row(l))
	}
	d.add(Section{Heading: "Differ in their metrics and not in what they mean, so they pass", Lines: g.lines(d)}, maxLines)
}

// costs shows of layers without layers in them, and of attentions, those that took most memory; verbose all.
func (d *composer) costs() {
	rows := slices.Clone(d.r.Costs)
	if !d.Verbose {
		rows = slices.DeleteFunc(rows, func(c Cost) bool {
			return c.Entropy == nil && slices.ContainsFunc(d.r.Costs, func(o Cost) bool { return label.Within(o.Layer, c.Layer) && o.Layer != c.Layer })
		})
		slices.SortStableFunc(rows, func(a, b Cost) int { return cmp.Compare(b.PeakBytes, a.PeakBytes) })
	}
	s := Section{Heading: "What the candidate's layers took: peak memory beyond what was held, seconds, entropy of attention (mean of the heads)",
		More: len(d.r.Costs) - len(rows), Folded: true}
	for _, c := range rows {
		s.Lines = append(s.Lines, Line{Code: c.Layer, Text: c.String()})
	}
	d.add(s, maxFew)
}

// layerNumber is the number of a layer in a path: reasons that differ only there are one.
var layerNumber = regexp.MustCompile(`\.\d+\b`)

// unmatched lists the ports that only one side has: those without a reason, then the others by reason.
func (d *composer) unmatched() {
	for _, side := range []struct {
		name  string
		lones []Lone
	}{{"golden", d.r.Unmatched.Golden}, {"candidate", d.r.Unmatched.Actual}} {
		var g groups
		s := Section{Heading: fmt.Sprintf("Only the %s has %s", side.name, count(len(side.lones), "port")), Folded: true}
		for _, l := range side.lones {
			reason := layerNumber.ReplaceAllString(l.Reason, ".*")
			switch {
			case l.Reason == "":
				line := fmt.Sprintf("%s (%s), nearest: %s", l.Name, l.Shape, l.Nearest)
				s.Lines = append(s.Lines, Line{Text: strings.TrimSuffix(line, ", nearest: ")})
			case l.Ignored:
				g.add("ignored: "+reason, l.Name)
			default:
				g.add(reason, l.Name)
			}
		}
		d.add(s, maxLines, g.lines(d)...)
	}
}

func (d *composer) hints() {
	var hints []string
	for _, l := range slices.Concat(d.r.Unmatched.Golden, d.r.Unmatched.Actual) {
		hints = append(hints, l.Hint)
	}
	hints = once(filled(hints))
	n := d.shown(len(hints), maxFew)
	s := Section{Heading: "To join: lines for fixture.yaml, or for the file of parity compare --names", More: len(hints) - n, Folded: true}
	for _, hint := range hints[:n] {
		for line := range strings.Lines(hint) {
			s.Lines = append(s.Lines, Line{Text: Clean(strings.TrimRight(line, "\r\n")), Paste: true})
		}
	}
	d.add(s, unlimited)
}

func (d *composer) order() {
	if o := d.r.Order; o != nil && !o.Same {
		d.add(Section{Heading: fmt.Sprintf("The two sides ran %s in another order (reported only: independent siblings may swap)", count(o.N, "layer")),
			Lines: lines("", o.Differences...), Folded: true}, maxLines)
	}
}

func (d *composer) notes() {
	limit := maxLines
	if d.Tested {
		limit = maxTestNotes
	}
	d.add(Section{Heading: "Notes", Lines: lines("", d.r.Notes...), Folded: true}, limit)
	if r := d.r; r.Serving == nil || len(r.Layers) > 0 { // a server says nothing of its versions
		d.source()
	}
}

func (d *composer) source() {
	d.add(Section{ID: sectionSource, Lines: lines("Source", d.r.Source.String())}, 1)
}

// next says what to do, as the last lines of a text.
func (d *composer) next() {
	command, why := d.r.Next(d.File)
	if why == "" || strings.Contains(why, d.Title) { // said already
		return
	}
	s := Section{ID: sectionNext, Lines: lines("next", why)}
	if command != "" {
		s.Lines = []Line{{Lead: "next", Text: command, Paste: true}, {Text: why, Level: 1}}
	}
	d.add(s, len(s.Lines))
}

type group struct {
	what  string
	names []string
}
