package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/subtest"
)

// Text writes the summary that a person reads: the verdict first, then the place and why, the rows,
// and what was left out. It ends with where the two runs come from.
func Text(w io.Writer, r *Report, opt TextOptions) error {
	if err := r.check(); err != nil {
		return err
	}
	p := newPrinter(opt, r.Layers)
	p.title(r)
	if !opt.Found {
		p.found(r)
		if r.Kind != KindServing && p.causes(r) {
			p.heading("What was judged")
		}
	}
	p.verdict(r)
	p.serving(r.Serving)
	if r.Kind != KindServing {
		p.weights(r)
	}
	p.table(r)
	p.benign(r)
	p.costs(r)
	p.unmatched("golden", r.Unmatched.Golden)
	p.unmatched("candidate", r.Unmatched.Actual)
	p.hints(r)
	p.order(r.Order, r.Verdict)
	p.list("Notes", r.Notes, maxNotes)
	if r.hasSource() {
		p.linef("")
		p.prose("", "Source: ", r.Source.String())
	}
	_, err := w.Write(p.Bytes())
	return err
}

// title is the verdict in a line.
func (p *printer) title(r *Report) {
	word, code := strings.ToUpper(string(r.Verdict)), red
	switch r.Verdict {
	case Pass:
		code = green
	case Incomplete:
		code = yellow
	}
	if r.Fixture != "" {
		p.linef("%s", p.color(dim, Clean(r.Fixture)))
	}
	first := true
	for _, line := range wrap(Headline(r), p.opt.Width-width(word)-2) {
		if first {
			p.linef("%s: %s", p.color(bold+";"+code, word), p.color(bold, line))
		} else {
			p.linef("%s%s", strings.Repeat(" ", width(word)+2), p.color(bold, line))
		}
		first = false
	}
}

// found says what is wrong at the first divergence, and where that is in the code of both sides.
func (p *printer) found(r *Report) {
	for _, line := range r.Found() {
		p.prose("  ", "", line)
	}
	d := r.FirstDivergence
	if d == nil {
		return
	}
	for _, e := range d.Evidence {
		p.prose("  ", "- ", e)
	}
	if g := d.Growing(); g != "" {
		p.prose("  ", "grows: ", g)
	}
	if n := p.shown(len(d.Uncaptured), maxUnmatched); n > 0 {
		p.prose("  ", "not recorded, so not compared: ", few(d.Uncaptured, n))
	}
	if d.Port != "" {
		at := "port " + d.Port
		if d.Case != "" {
			at += ", case " + d.Case
		}
		if d.Step != "" {
			at += ", step " + d.Step
		}
		p.prose("  ", "", at)
	}
}

// verdict says what the verdict is about, and what not.
func (p *printer) verdict(r *Report) {
	p.generations(r)
	p.paths(r)
	p.prose("  ", "stages: ", r.StageLine())
	for _, line := range r.quantised() {
		p.prose("  ", "", line)
	}
	for _, t := range r.Texts {
		said := r.Kind == KindText && r.FirstDivergence != nil && r.FirstDivergence.Text == t.Text
		if t.Status != StatusPass && !said {
			p.prose("  ", "text of "+Clean(t.Case)+": ", t.Text)
		}
	}
	if b := r.bisect(); b != nil {
		p.linef("  token %d of %s", b.Token, Clean(b.Case))
		for _, row := range b.rows() {
			p.linef("    %s  %s", pad(row.way, bisectWidth), row.status)
		}
		p.prose("    ", "", b.conclusion())
	}
	if len(r.Weights) > 0 && r.Kind != KindWeights {
		p.prose("  ", "weights: ", r.weighed())
	}
	p.uncovered(r, "  ")
	if len(r.Frontier) > 1 {
		p.prose("  ", "frontier: ", few(r.Frontier, p.shown(len(r.Frontier), maxUnmatched)))
	}
	if s := Count(r.Layers); r.Verdict != Pass || s.Status[StatusIgnored]+s.Status[StatusUnexpected] > 0 {
		if s.counts() != "" {
			p.prose("  ", "", Counts(r))
		}
	}
}

// paths says what came of each execution path, and which of them show one fault.
func (p *printer) paths(r *Report) {
	for _, line := range r.OnePass() {
		p.prose("  ", "", line)
	}
	for i := range r.Paths {
		for k, line := range r.Paths[i].lines() {
			p.prose(strings.Repeat("  ", min(k, 1)+1), "", line)
		}
	}
	for _, line := range r.findings() {
		p.prose("  ", "", line)
	}
}

// uncovered says what the verdict says nothing about.
func (p *printer) uncovered(r *Report, indent string) {
	open := r.Open()
	if r.Verdict == Incomplete {
		open = open[1:] // the headline says the first
	}
	n := p.shown(len(open), maxNotes)
	for _, text := range open[:n] {
		p.prose(indent, "not covered: ", text)
	}
	p.more(len(open)-n, " not covered")
	if r.Verdict == Incomplete {
		p.prose(indent, "", OpenHelp)
	}
	if len(r.NotJudged) > 0 {
		p.prose(indent, "not judged: ", strings.Join(r.NotJudged, "; "))
	}
}

// causes writes what explains the first divergence, and reports whether there was anything to say.
func (p *printer) causes(r *Report) bool {
	causes := r.Causes
	if causes == nil || len(causes) == 0 && (r.FirstDivergence == nil || r.FirstDivergence.Layer == "") {
		return false // no one asked, or there is no place to find a cause of
	}
	p.heading("Causes")
	if d := r.FirstDivergence; len(causes) == 0 && d != nil && d.Place != "" {
		p.prose("  ", "", "none can be told from what was recorded: dump the inputs of layers too, and the layers that are missing; join those with other names (parity names)")
		return true
	}
	if len(causes) == 0 {
		p.prose("  ", "",
			"unproven: no known cause explains most of the error. Change the reference's program as you suspect, parity try --layer "+
				r.FirstDivergence.Layer+" lists it; see "+CauseDoc)
		return true
	}
	if causes[0].Proven && !p.opt.Verbose { // what fits worse at that place is no news
		causes = slices.DeleteFunc(slices.Clone(causes), func(c Cause) bool { return !c.Proven && c.Layer == causes[0].Layer })
	}
	n := p.shown(len(causes), maxCauses)
	for _, c := range causes[:n] {
		code := dim
		if c.Proven {
			code = green
		}
		p.linef("  %s  %s  %s", p.color(code, pad(c.Word(), 6)), Clean(c.ID), Clean(c.Layer))
		p.prose("          ", "", c.Evidence())
		if c.Text != "" {
			p.prose("          ", "", c.Sentence())
		}
	}
	p.more(len(r.Causes)-n, "")
	p.prose("  ", "", "what they mean and what to do: "+docs(causes[:n]))
	return true
}

// benignHead stands above the rows that pass although their figures differ.
const benignHead = "Differ in their figures and not in what they mean, so they pass"

// benign lists the rows that pass although their figures differ. A verbose table has them.
func (p *printer) benign(r *Report) {
	notes, byNote := r.benign(p.names.row)
	if len(notes) == 0 || p.opt.Verbose {
		return
	}
	p.heading(benignHead)
	n := p.shown(len(notes), maxNotes)
	for _, note := range notes[:n] {
		p.group(byNote[note], note)
	}
	p.more(len(notes)-n, "")
}

// benign returns why rows pass although their figures differ, in the order of the rows, and the rows by that.
func (r *Report) benign(name func(*Layer) string) (notes []string, byNote map[string][]string) {
	byNote = map[string][]string{}
	for i := range r.Layers {
		l := &r.Layers[i]
		if l.Status != StatusPass || !l.Benign {
			continue
		}
		if byNote[l.Note] == nil {
			notes = append(notes, l.Note)
		}
		byNote[l.Note] = append(byNote[l.Note], name(l))
	}
	return notes, byNote
}

// Benign says of how many rows, and of which, why they pass although their figures differ: a line for each
// reason, of some reasons.
func (r *Report) Benign() (lines []string) {
	notes, byNote := r.benign(func(l *Layer) string { return Clean(l.Layer + " " + l.Port) })
	for i, note := range notes {
		if i == maxNotes {
			return append(lines, fmt.Sprintf("… and %d more", len(notes)-i))
		}
		names := byNote[note]
		lines = append(lines, fmt.Sprintf("%d: %s: %s", len(names), Clean(note), few(names, min(len(names), 2))))
	}
	return lines
}

// group says of how many names something holds, and gives the first.
func (p *printer) group(names []string, what string) {
	n := p.shown(len(names), 2)
	text := strings.Join(names[:n], ", ")
	if n < len(names) {
		text += ", …"
	}
	p.prose("  ", fmt.Sprintf("%4d  ", len(names)), what+": "+text)
}

// layerNumber is the number of a layer in a path: reasons that differ only there are one.
var layerNumber = regexp.MustCompile(`\.\d+\b`)

// unmatched lists the ports that only one side has: first those without a reason, each with its
// nearest name, then the others by reason.
func (p *printer) unmatched(side string, lones []Lone) {
	if len(lones) == 0 {
		return
	}
	var open []Lone
	var reasons []string
	byReason := map[string][]string{}
	for _, l := range lones {
		if l.Reason == "" {
			open = append(open, l)
			continue
		}
		reason := layerNumber.ReplaceAllString(l.Reason, ".*")
		if l.Ignored {
			reason = "ignored: " + reason
		}
		if byReason[reason] == nil {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], l.Name)
	}
	p.heading(fmt.Sprintf("Only the %s has %s", side, count(len(lones), "port")))
	n := p.shown(len(open), maxUnmatched)
	for _, l := range open[:n] {
		text := fmt.Sprintf("%s (%s)", l.Name, l.Shape)
		if l.Nearest != "" {
			text += ", nearest: " + l.Nearest
		}
		p.prose("  ", "", text)
	}
	p.more(len(open)-n, " without a known reason")
	for _, reason := range reasons {
		p.group(byReason[reason], reason)
	}
}

// hints writes the lines to paste, each once.
func (p *printer) hints(r *Report) {
	seen := map[string]bool{}
	var hints []string
	for _, l := range slices.Concat(r.Unmatched.Golden, r.Unmatched.Actual) {
		if l.Hint != "" && !seen[l.Hint] {
			seen[l.Hint] = true
			hints = append(hints, l.Hint)
		}
	}
	if len(hints) == 0 {
		return
	}
	p.heading("To join or to leave out: lines for fixture.yaml")
	n := p.shown(len(hints), 3)
	for _, hint := range hints[:n] {
		for line := range strings.Lines(hint) {
			p.linef("  %s", Clean(strings.TrimRight(line, "\r\n")))
		}
	}
	p.more(len(hints)-n, "")
	if m := r.Made; m != nil && m.Command == "compare" && m.Golden != "" && slices.ContainsFunc(hints, func(h string) bool { return strings.HasPrefix(h, "names:") }) {
		p.linef("  written to a file, and judged by it:")
		p.linef("    %s", subtest.Command("parity", "names", m.Golden, m.Actual, "-o", "names.yaml"))
		p.linef("    %s", subtest.Command("parity", "compare", m.Golden, m.Actual, "--names", "names.yaml"))
	}
}

// order says that the two sides' orders differ; how, only where something fails.
func (p *printer) order(o *Order, verdict Verdict) {
	if o == nil || o.Same {
		return
	}
	text := fmt.Sprintf("The two sides ran %s in another order (reported only: independent siblings may swap)",
		count(o.N, "layer"))
	if verdict == Pass && !p.opt.Verbose {
		p.linef("")
		p.prose("", "", text)
		return
	}
	p.list(text, o.Differences, maxNotes)
}

// FailureText says in a few lines why one port fails: what is violated, where and how much, what
// was asked and where that was written, how the two sides were joined. It begins with the place and
// the cause that were found in the whole run, and what is told of them, where they are known.
func (l *Layer) FailureText(found string, told ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n", l.Layer, l.Port, cmp.Or(found, strings.ToUpper(string(l.Status))))
	for _, line := range told {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if l.Status == StatusError {
		fmt.Fprintf(&b, "  %s\n", l.Note)
		return b.String()
	}
	for _, line := range append(l.Violations[:len(l.Violations):len(l.Violations)], l.Detail...) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if l.Tolerance != nil && l.Tolerance.Source != "" {
		fmt.Fprintf(&b, "  tolerance: %s\n", l.Tolerance.Source)
	}
	if l.Note != "" {
		fmt.Fprintf(&b, "  joined: %s\n", l.Note)
	}
	return b.String()
}
