package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Text writes the summary that a person reads: the verdict first, then the place and why, the rows,
// and what was left out. It ends with where the two runs come from.
func Text(w io.Writer, r *Report, opt TextOptions) error {
	if err := r.check(); err != nil {
		return err
	}
	p := newPrinter(opt, r.Layers)
	p.verdict(r)
	p.serving(r.Serving)
	if r.Kind != KindServing {
		p.weights(r)
		p.causes(r)
	}
	p.table(r)
	p.benign(r)
	p.unmatched("golden", r.Unmatched.Golden)
	p.unmatched("candidate", r.Unmatched.Actual)
	p.hints(r.Unmatched)
	p.order(r.Order, r.Verdict)
	p.list("Notes", r.Notes, maxNotes)
	if r.hasSource() {
		p.linef("")
		p.prose("", "Source: ", r.Source.String())
	}
	_, err := w.Write(p.Bytes())
	return err
}

func (p *printer) verdict(r *Report) {
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
	p.generations(r)
	p.paths(r)
	p.prose("  ", "stages: ", r.StageLine())
	for _, line := range r.quantised() {
		p.prose("  ", "", line)
	}
	for _, t := range r.Texts {
		if t.Status != StatusPass && (r.Kind != KindText || r.FirstDivergence.Text != t.Text) {
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
	if d := r.FirstDivergence; d != nil {
		if why := r.KindText(); why != "" {
			p.prose("  ", r.Kind+": ", why)
		} else if r.Kind != "" {
			p.linef("  %s", Clean(r.Kind))
		}
		if d.Text != "" {
			p.prose("  ", "", d.Sentence())
		}
		for _, e := range d.Evidence {
			p.prose("  ", "- ", e)
		}
		if n := len(d.Growth); n > 1 {
			p.prose("  ", "grows: ", growth(d.Growth))
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

func (p *printer) causes(r *Report) {
	causes := r.Causes
	if causes == nil || len(causes) == 0 && (r.FirstDivergence == nil || r.FirstDivergence.Layer == "") {
		return // no one asked, or there is no place to find a cause of
	}
	p.heading("Causes")
	if d := r.FirstDivergence; len(causes) == 0 && d != nil && d.Place != "" {
		p.prose("  ", "", "none can be told from what was recorded: dump the inputs of layers too, and the layers that are missing; join those with other names (parity names)")
		return
	}
	if len(causes) == 0 {
		p.prose("  ", "",
			"unproven: no known cause explains most of the error. Write down what you suspect and try it, parity try --layer "+
				r.FirstDivergence.Layer+" fix.py, see "+CauseDoc)
		return
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
	p.more(len(causes)-n, "")
	p.prose("  ", "", "what they mean and what to do: "+docs(causes[:n]))
}

// benign lists by their notes the rows that pass although their figures differ. A verbose table has
// them.
func (p *printer) benign(r *Report) {
	var notes []string
	byNote := map[string][]string{}
	for i := range r.Layers {
		l := &r.Layers[i]
		if l.Status != StatusPass || !l.Benign || p.opt.Verbose {
			continue
		}
		if byNote[l.Note] == nil {
			notes = append(notes, l.Note)
		}
		byNote[l.Note] = append(byNote[l.Note], p.names.row(l))
	}
	if len(notes) == 0 {
		return
	}
	p.heading("Differ in their figures and not in what they mean, so they pass")
	n := p.shown(len(notes), maxNotes)
	for _, note := range notes[:n] {
		p.group(byNote[note], note)
	}
	p.more(len(notes)-n, "")
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
func (p *printer) hints(u Unmatched) {
	seen := map[string]bool{}
	var hints []string
	for _, l := range append(append([]Lone{}, u.Golden...), u.Actual...) {
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
// was asked and where that was written, how the two sides were joined.
func (l *Layer) FailureText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n", l.Layer, l.Port, strings.ToUpper(string(l.Status)))
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
