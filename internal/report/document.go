package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/subtest"
)

// Document is what a report says to people, in the order in which it says it. [Text], [Markdown] and the page
// write all of it, each in its own form.
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
	Lines   []Line
	Table   *Table
	More    int    // lines, or rows of the table, that the limits leave out
	What    string // more of what: " not covered"
	Folded  bool   // of second rank: a page shows it on request
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

// View says how much a document shows.
type View struct {
	Verbose bool   // every row and every note
	Tested  bool   // it stands below failing tests, which gave the figures of their rows: what is left is short
	Told    bool   // and said where the error is and why
	File    string // where the report lies, for the next command; empty: nowhere
	Times   int    // how many times the limits of a text; 0 is once
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
	v.Times = max(v.Times, 1)
	return &composer{Document: Document{Fixture: Clean(r.Fixture), Verdict: r.Verdict, Title: Clean(Headline(r))}, View: v, r: r, names: namingOf(r.Layers)}
}

// shown is how many of n entries to show; a rest of one is shown too, since saying so takes as much
// room.
func (d *composer) shown(n, limit int) int {
	if limit *= d.Times; d.Verbose || n <= limit+1 {
		return n
	}
	return limit
}

// add adds a section of lines, at most limit of them.
func (d *composer) add(s Section, limit int) {
	n := d.shown(len(s.Lines), limit)
	if s.More += len(s.Lines) - n; n > 0 {
		s.Lines = s.Lines[:n]
		d.Sections = append(d.Sections, s)
	}
}

// lines are texts about one thing; empty ones are none.
func lines(lead string, texts ...string) (out []Line) {
	for _, t := range texts {
		if t != "" {
			out = append(out, Line{Lead: lead, Text: t})
		}
	}
	return out
}

// few joins the first names.
func (d *composer) few(names []string) string { return few(names, d.shown(len(names), maxUnmatched)) }

// place says what is wrong at the first divergence, and where that is in the code of both sides.
func (d *composer) place() {
	at := d.r.FirstDivergence
	if at == nil {
		return
	}
	all := append(lines("", d.r.Found()...), lines("evidence", at.Evidence...)...)
	all = append(all, lines("grows", at.growing())...)
	if len(at.Uncaptured) > 0 {
		all = append(all, Line{Lead: "not recorded, so not compared", Text: d.few(at.Uncaptured)})
	}
	var where []string
	for _, w := range [][2]string{{"port ", at.Port}, {"case ", at.Case}, {"step ", at.Step}} {
		if w[1] != "" {
			where = append(where, w[0]+w[1])
		}
	}
	if at.Port != "" {
		all = append(all, lines("", strings.Join(where, ", "))...)
	}
	d.add(Section{ID: sectionPlace, Lines: all}, len(all))
}

// causes says what explains the first divergence. Those of a server stand with its answers.
func (d *composer) causes() {
	at, causes := d.r.FirstDivergence, d.r.Causes
	placed := at != nil && at.Layer != ""
	s := Section{ID: sectionCauses, Heading: "Causes"}
	switch {
	case d.r.Kind == KindServing || causes == nil || len(causes) == 0 && !placed:
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
		n := d.shown(len(causes), maxCauses)
		if d.Short {
			n = 1
		}
		for _, c := range causes[:n] {
			s.Lines = append(s.Lines, c.lines(c.Evidence(), c.Sentence())...)
		}
		s.More = len(d.r.Causes) - n
		s.Lines = append(s.Lines, Line{Lead: "what they mean and what to do", Text: docs(causes[:n])})
	}
	d.add(s, len(s.Lines))
}

// lines are the cause and what is said of it.
func (c *Cause) lines(said ...string) []Line {
	out := []Line{{Lead: c.word(), Code: c.ID, Text: strings.TrimPrefix(c.At(Clean), " ")}}
	for _, text := range said {
		if text != "" {
			out = append(out, Line{Text: text, Level: 1})
		}
	}
	out[len(out)-1].Cause = c.ID
	return out
}

// layerNumber is the number of a layer in a path: reasons that differ only there are one.
var layerNumber = regexp.MustCompile(`\.\d+\b`)

// judged says what the verdict is about, and what not.
func (d *composer) judged() {
	r := d.r
	all := append(lines("stages", r.stageLine()), lines("", r.quantised()...)...)
	open := r.Open()
	if r.Verdict == Incomplete {
		open = open[1:] // the headline says the first
	}
	n := d.shown(len(open), maxNotes)
	all = append(all, lines("not covered", open[:n]...)...)
	if len(open) > n {
		all = append(all, lines("not covered", fmt.Sprintf("… and %d more, all in report.json", len(open)-n))...)
	}
	if r.Verdict == Incomplete {
		all = append(all, lines("", OpenHelp)...)
	}
	all = append(all, lines("not judged", strings.Join(r.NotJudged, "; "))...)
	if len(r.Frontier) > 1 && !d.Tested {
		all = append(all, lines("frontier", d.few(r.Frontier))...)
	}
	if s := Count(r.Layers); s.counts() != "" && (r.Verdict != Pass || s.Status[StatusIgnored]+s.Status[StatusUnexpected] > 0) {
		all = append(all, lines("", Counts(r))...)
	}
	s := Section{ID: sectionJudged, Lines: all}
	if len(d.Sections) > 0 {
		s.Heading = "What was judged"
	}
	d.add(s, len(all))
}

// rows are the failing ones, or the worst of those that pass.
func (d *composer) rows() {
	rows, limit := d.r.Failing(), maxFailing
	s := Section{ID: sectionRows, Heading: "Failing rows, in the order in which the values existed"}
	if len(rows) == 0 {
		rows, limit, s.Heading = d.r.worst(), maxPassing, "Worst rows"
	}
	var inherited groups // after rows that are wrong by themselves they take one line
	if i := slices.IndexFunc(rows, func(l *Layer) bool { return l.Status == StatusInherited }); i > 0 && !d.Verbose {
		for _, l := range rows[i:] {
			inherited.add("only pass the error on", d.names.row(l))
		}
		rows = rows[:i]
	}
	if d.Verbose {
		rows, s.Heading = nil, "All rows, in the order in which the values existed"
		for i := range d.r.Layers {
			rows = append(rows, &d.r.Layers[i])
		}
	}
	if len(rows) == 0 {
		return
	}
	n := d.shown(len(rows), limit)
	s.Table, s.Lines, s.More = d.tableOf(rows[:n]), inherited.lines(d), len(rows)-n
	d.Sections = append(d.Sections, s)
}

// groups are names by what holds of them, in the order in which that was first said.
type groups struct {
	what  []string
	names map[string][]string
}

func (g *groups) add(what, name string) {
	if g.names == nil {
		g.names = map[string][]string{}
	}
	if g.names[what] == nil {
		g.what = append(g.what, what)
	}
	g.names[what] = append(g.names[what], name)
}

// lines say of how many names something holds, and the first of them.
func (g *groups) lines(d *composer) (out []Line) {
	for _, what := range g.what {
		names := g.names[what]
		out = append(out, Line{Text: fmt.Sprintf("%d %s: %s", len(names), what, few(names, d.shown(len(names), 2)))})
	}
	return out
}

// benign lists the rows that pass although their figures differ. A table of all rows has them.
func (d *composer) benign() {
	var g groups
	for i := range d.r.Layers {
		if l := &d.r.Layers[i]; l.Status == StatusPass && l.Benign && !d.Verbose {
			g.add(l.Note, d.names.row(l))
		}
	}
	d.add(Section{Heading: "Differ in their figures and not in what they mean, so they pass", Lines: g.lines(d)}, maxNotes)
}

// costs shows of the layers without layers in them, and of attentions, those that took most memory; verbose
// it shows all.
func (d *composer) costs() {
	if len(d.r.Costs) == 0 {
		return
	}
	rows := slices.Clone(d.r.Costs)
	if !d.Verbose {
		rows = slices.DeleteFunc(rows, func(c Cost) bool {
			return c.Entropy == nil && slices.ContainsFunc(d.r.Costs, func(o Cost) bool { return label.Within(o.Layer, c.Layer) && o.Layer != c.Layer })
		})
		slices.SortStableFunc(rows, func(a, b Cost) int { return cmp.Compare(b.PeakBytes, a.PeakBytes) })
	}
	n := d.shown(len(rows), maxCosts)
	t := &Table{Head: []string{"layer", "memory", "time", "entropy"}}
	for _, c := range rows[:n] {
		t.Rows = append(t.Rows, []string{c.Layer, c.Memory(), c.Time(), c.Spread()})
	}
	d.Sections = append(d.Sections, Section{Heading: "What the candidate's layers took: peak memory beyond what was held, seconds, entropy of attention " +
		"(mean of the heads)", Table: t, More: len(d.r.Costs) - n, Folded: true})
}

// unmatched lists the ports that only one side has: first those without a reason, each with its
// nearest name, then the others by reason.
func (d *composer) unmatched() {
	for _, side := range []struct {
		name  string
		lones []Lone
	}{{"golden", d.r.Unmatched.Golden}, {"candidate", d.r.Unmatched.Actual}} {
		var open []Line
		var g groups
		for _, l := range side.lones {
			reason := layerNumber.ReplaceAllString(l.Reason, ".*")
			switch {
			case l.Reason == "":
				line := fmt.Sprintf("%s (%s), nearest: %s", l.Name, l.Shape, l.Nearest)
				open = append(open, Line{Text: strings.TrimSuffix(line, ", nearest: ")})
			case l.Ignored:
				g.add("ignored: "+reason, l.Name)
			default:
				g.add(reason, l.Name)
			}
		}
		n := d.shown(len(open), maxUnmatched)
		s := Section{Heading: fmt.Sprintf("Only the %s has %s", side.name, count(len(side.lones), "port")), Lines: append(open[:n:n], g.lines(d)...),
			More: len(open) - n, What: " without a known reason", Folded: true}
		d.add(s, len(s.Lines))
	}
}

// hints are the lines to paste, each once.
func (d *composer) hints() {
	var hints []string
	for _, l := range slices.Concat(d.r.Unmatched.Golden, d.r.Unmatched.Actual) {
		if l.Hint != "" && !slices.Contains(hints, l.Hint) {
			hints = append(hints, l.Hint)
		}
	}
	s := Section{Heading: "To join or to leave out: lines for fixture.yaml", Folded: true}
	n := d.shown(len(hints), maxHints)
	for _, hint := range hints[:n] {
		for line := range strings.Lines(hint) {
			s.Lines = append(s.Lines, Line{Text: strings.TrimRight(line, "\r\n"), Paste: true})
		}
	}
	s.More = len(hints) - n
	if m := d.r.Made; m != nil && m.Golden != "" && slices.ContainsFunc(hints, func(h string) bool { return strings.HasPrefix(h, "names:") }) {
		s.Lines = append(s.Lines, Line{Text: "written to a file, and judged by it:"},
			Line{Text: "  " + subtest.Command("parity", "names", m.Golden, m.Actual, "-o", "names.yaml"), Paste: true},
			Line{Text: "  " + subtest.Command("parity", "compare", m.Golden, m.Actual, "--names", "names.yaml"), Paste: true})
	}
	d.add(s, len(s.Lines))
}

// order says that the two sides' orders differ; how, only where something fails.
func (d *composer) order() {
	o := d.r.Order
	if o == nil || o.Same {
		return
	}
	s := Section{Heading: fmt.Sprintf("The two sides ran %s in another order (reported only: independent siblings may swap)", count(o.N, "layer")), Folded: true}
	if d.r.Verdict != Pass || d.Verbose || d.Times > 1 {
		s.Lines = lines("", o.Differences...)
	}
	n := d.shown(len(s.Lines), maxNotes)
	s.Lines, s.More = s.Lines[:n], len(s.Lines)-n
	d.Sections = append(d.Sections, s)
}

func (d *composer) notes() {
	limit := maxNotes
	if d.Tested {
		limit = maxTestNotes
	}
	d.add(Section{Heading: "Notes", Lines: lines("", d.r.Notes...), Folded: true}, limit)
	if d.r.hasSource() {
		d.source()
	}
}

func (d *composer) source() {
	d.Sections = append(d.Sections, Section{ID: sectionSource, Lines: lines("Source", d.r.Source.String())})
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
	d.Sections = append(d.Sections, s)
}
