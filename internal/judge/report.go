package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/internal/weights"
)

// Report returns report.json. With all, the fixture's tolerances judge every port that both sides
// have; without, tests have decided, and the other ports are listed as not judged.
//
// If the context of Compare ended, or a file has changed since it was opened, the verdict is an error, and no row
// is there.
//
// An input never fails a run by itself: it is evidence. Where no output is wrong, a differing input
// is listed and ignored.
func (c *Comparison) Report(name string, all bool) *report.Report {
	c.advise.Do(c.suggest)
	r := &report.Report{Fixture: name, Order: c.Order, Unmatched: c.Unmatched, Source: c.source(), NotJudged: c.notJudged(),
		Stretches: c.stretches(), Tokens: c.tokens()}
	other := c.OtherPrompt()
	wrong, decided := other != nil, map[string]bool{}
	var decisions []*Decision
	if other != nil && c.Verdict.Kind != localise.KindInput {
		r.Notes = append(r.Notes, fmt.Sprintf("case %s: %s", other.Case, other.Text))
	}
	r.Notes = append(r.Notes, c.Notes...)
	for _, p := range c.Ports {
		if p.Actual == nil || !p.Judged() {
			continue
		}
		j := p.decision()
		if j == nil && all {
			j = p.Decide(nil, "", false)
		}
		if j != nil && j.Row.Status != report.StatusIgnored {
			decisions = append(decisions, j)
			decided[p.Layer] = true
			wrong = wrong || j.failed()
		}
	}
	r.Notes = append(r.Notes, allowedVacuous(decisions)...)
	if all {
		c.Demand()
	}
	r.Coverage = c.coverage(all)
	c.rows(r, func(layer string) bool { return all || decided[layer] }, wrong)
	wrong = wrong || slices.ContainsFunc(c.Ports, func(p *Port) bool { return p.lacked.Load() })
	c.verdict(r, wrong, len(decided) > 0)
	if wrong {
		r.Notes = append(r.Notes, c.findingsOf(whenWrong)...)
		if err := c.Found(r); err != nil {
			r.Void(err)
		}
		for _, d := range c.settings() {
			r.Notes = append(r.Notes, "config: "+d.String())
		}
	} else {
		r.Notes = append(r.Notes, c.findingsOf(whenRight)...)
	}
	bare := true // no tensors at all
	for _, k := range c.Cases {
		r.Costs = append(r.Costs, report.CostsOf(k.Name, k.Actual)...)
		bare = bare && len(k.Golden.Entries)+len(k.Actual.Entries) == 0
	}
	prompts, causes := c.Texts()
	r.SetPrompts(prompts, causes, bare)
	loaded, why := c.Loaded()
	r.NotJudged = append(r.NotJudged, why...)
	r.SetWeights(loaded) // a text or an input that differs comes first
	if err := cmp.Or(context.Cause(c.ctx), c.Changed()); err != nil {
		r.Void(err)
	}
	return r
}

// rows adds the rows of all ports to a report, and explains the first that fail. judged says of
// which layers the ports without a decision were meant to be judged.
func (c *Comparison) rows(r *report.Report, judged func(layer string) bool, wrong bool) {
	var failing []*Decision
	var rows []int // of failing
	for _, p := range c.InOrder() {
		if p.Actual == nil {
			if p.lacked.Load() {
				row := p.newRow()
				row.Status, row.Note = report.StatusMissing, c.missing[p.Layer]
				r.Layers = append(r.Layers, *row)
			}
			continue
		}
		j := p.decision()
		if j == nil {
			j = p.undecided(judged(p.Layer), wrong)
		}
		row := j.row()
		if from := c.Blame(p); from != "" && row.Status == report.StatusFail && wrong {
			row.Status, row.Blame = report.StatusInherited, from
		}
		if row.Status == report.StatusFail && len(failing) < maxExplained {
			failing, rows = append(failing, j), append(rows, len(r.Layers))
		} else {
			row.Detail, row.Rows, row.Histogram = nil, nil, nil // one line says it, though a test may have asked for more
		}
		r.Layers = append(r.Layers, row)
	}
	vec.Each(c.ctx, len(failing), func(i int) error {
		failing[i].Explain()
		r.Layers[rows[i]] = failing[i].row()
		return nil
	})
}

// verdict sets the verdict by what was decided.
func (c *Comparison) verdict(r *report.Report, wrong, decided bool) {
	switch {
	case wrong:
		r.Verdict = report.Fail
	case decided && len(c.findingsOf(uncovered)) > 0:
		r.Verdict = report.Incomplete
	case decided:
		r.Verdict = report.Pass
	default:
		r.Verdict, r.Error = report.Error, report.NothingCompared
		if slices.ContainsFunc(c.Ports, func(p *Port) bool { return p.printed != nil }) {
			r.Error = "shortened logs agree where they show values, which proves nothing: dump the tensors to files"
		}
	}
}

// Found adds the first divergence and its causes to a report of a run that is wrong.
func (c *Comparison) Found(r *report.Report) error {
	v := c.Verdict
	if v == nil {
		return nil
	}
	err := mapfile.Guard(func() error {
		r.Causes = c.Causes()
		r.Notes = slices.Concat(r.Notes, c.search.notes)
		return nil
	})
	evidence := v.Evidence
	switch {
	case v.OnePass == nil || !c.search.inOnePass:
	case strings.HasPrefix(r.Causes[0].ID, "state/"):
		evidence = append(slices.Clip(evidence), "no row of that position was fed in one pass, where the model may be as wrong: --also one-pass=DUMP tells")
	default:
		v = v.OnePass
	}
	r.Kind, r.Frontier = v.Kind, append([]string{}, v.Frontier...)
	d := &report.Divergence{Layer: v.Layer, Port: v.Port, Case: v.Case, Step: v.Step, After: v.After, Before: v.Before,
		Place: v.Place, Proven: v.Proven, Text: v.Text, Evidence: evidence, Row: c.firstRow(v.Case, v.Step, c.targetOf(v))}
	for _, g := range v.Growth {
		d.Growth = append(d.Growth, report.Growth{Layer: g.Layer, Error: report.Float(g.Error), Alone: report.Float(g.Alone)})
	}
	if !v.Proven {
		d.Uncaptured = v.Gaps
	}
	r.FirstDivergence = d
	c.code(v, d)
	return err
}

// InOrder lists the ports in the order in which their values existed: a layer had its inputs before
// anything inside it ran, and its outputs after.
func (c *Comparison) InOrder() (ports []*Port) {
	for _, pass := range c.flow.Passes {
		ports = append(ports, c.portsOf(pass)...)
	}
	return ports
}

// portsOf is [Comparison.InOrder] of one forward pass.
func (c *Comparison) portsOf(pass *localise.Pass) (ports []*Port) {
	for _, e := range pass.Events {
		ports = append(ports, c.Ports[e.Index])
	}
	return ports
}

// notJudged lists what run.json brings besides tensors.
func (c *Comparison) notJudged() (out []string) {
	for _, k := range c.Cases {
		for who, r := range k.sides() {
			for _, what := range r.Info.NotJudged() {
				out = append(out, fmt.Sprintf("%s that run.json of the %s brings for case %s", what, who, k.Name))
			}
		}
	}
	return out
}

// undecided judges a port that no test decided: an input, or an output that was not asked for.
func (p *Port) undecided(asked, wrong bool) *Decision {
	j := p.consider(nil, "", false)
	row := j.Row
	switch {
	case !asked:
		row.Status, row.Note = report.StatusIgnored, "no test of this run judged it"
	case row.Status != report.StatusPass && !wrong:
		row.Note = strings.TrimSuffix("differs, but no output does: "+row.Note, ": ")
		row.Status = report.StatusIgnored
	case row.Status == report.StatusError:
		row.Status = report.StatusIgnored
	}
	return j
}

func (c *Comparison) source() report.Source {
	if len(c.Cases) == 0 {
		return report.Source{}
	}
	k := c.Cases[0]
	return report.Source{Golden: engineOf(k.Golden), Actual: engineOf(k.Actual), Live: c.Live, Date: k.Actual.Info.Date}
}

func engineOf(r *dump.Run) report.Engine {
	return report.Engine{Name: r.Info.Engine, Versions: r.Info.Versions, Device: r.Info.Device, Encoding: r.Info.Encoding.String(), Path: r.Path}
}

// finding is a sentence of the comparison as a whole, and when it is told.
type finding struct {
	effect effect
	text   string
}

type effect int

const (
	uncovered effect = iota // it was not shown to be right: a pass is incomplete by it
	whenRight               // a note where nothing is wrong
	whenWrong               // a note where something is
)

// find adds a finding, the same one only once.
func (c *Comparison) find(e effect, text string) {
	if f := (finding{e, text}); !slices.Contains(c.findings, f) {
		c.findings = append(c.findings, f)
	}
}

// findingsOf lists the findings of an effect.
func (c *Comparison) findingsOf(e effect) (texts []string) {
	for _, f := range c.findings {
		if f.effect == e {
			texts = append(texts, f.text)
		}
	}
	return texts
}

// Texts says what the candidate made of the prompts of all cases, and why where that is not what the
// reference made, each cause once.
func (c *Comparison) Texts() (rows []report.Prompt, causes []report.Cause) {
	for _, k := range c.Cases {
		more, why := report.PromptsOf(k.Name, &k.Golden.Info, &k.Actual.Info)
		rows = append(rows, more...)
		for _, x := range why {
			if !slices.ContainsFunc(causes, func(o report.Cause) bool { return o.ID == x.ID }) {
				causes = append(causes, x)
			}
		}
	}
	return rows, causes
}

// textAlone reports whether some side has no tensors at all, and a text can be judged.
func (c *Comparison) textAlone() bool {
	if !slices.ContainsFunc(c.Cases, func(k Case) bool { return len(k.Golden.Entries) == 0 || len(k.Actual.Entries) == 0 }) {
		return false
	}
	rows, _ := c.Texts()
	return slices.ContainsFunc(rows, func(t report.Prompt) bool { return t.Status != report.NotJudged })
}

// tokens is the status of the stage after the text: whether the runs were given the same tokens.
func (c *Comparison) tokens() report.Status {
	if c.OtherPrompt() != nil {
		return report.StatusFail
	}
	for _, k := range c.Cases {
		if len(k.Golden.Info.Asked()) == 0 || len(k.Actual.Info.Asked()) == 0 {
			return report.NotJudged
		}
	}
	return report.StatusPass
}

// Loaded compares the weights that the candidate's engine loaded, see [weights.Loaded], once. It is nil if
// they are not known; why says so, or what was not judged.
func (c *Comparison) Loaded() (list []weights.Result, why []string) { return c.loaded() }

func (c *Comparison) compareLoaded() (list []weights.Result, why []string) {
	var goldens, candidates []*dump.Run
	for _, k := range c.Cases {
		goldens, candidates = append(goldens, k.Golden), append(candidates, k.Actual)
	}
	err := mapfile.Guard(func() (err error) {
		list, err = weights.Loaded(c.ctx, goldens, candidates, c.search.Evidence)
		return err
	})
	if err != nil {
		why = append(why, err.Error())
	}
	for i := range list {
		if w := &list[i]; w.Scaled() && c.undone(label.Parent(w.Reference)) {
			w.Fold()
		}
	}
	return list, why
}

// undone reports whether all that a module makes is written otherwise, and what is made of it undoes that.
func (c *Comparison) undone(module string) bool {
	ports := slices.DeleteFunc(slices.Clone(c.Ports), func(p *Port) bool {
		return !p.Judged() || !p.Joined() || p.Layer != module && !strings.HasSuffix(p.Layer, "."+module)
	})
	return len(ports) > 0 && !slices.ContainsFunc(ports, func(p *Port) bool { return !p.rewritten() })
}

// settings lists what the two engines read otherwise of the model's config, where the candidate's run says
// what it read. The reference's is that of its run, or else the config that is at hand for causes.
func (c *Comparison) settings() []checkpoint.Difference {
	actual := checkpoint.Flat(c.Cases[0].Actual.Info.Config)
	golden := checkpoint.Flat(c.Cases[0].Golden.Info.Config)
	if actual != nil && golden == nil && c.search.Evidence != nil {
		_, golden, _ = c.search.Evidence() // an error of it is told where causes are looked for
	}
	return checkpoint.Diff(golden, actual)
}

// noteDoubts notes what makes a comparison worth less than it looks, whatever its verdict: goldens that
// cannot show an error, and a dump that is a copy of the other.
func (c *Comparison) noteDoubts() {
	var nan, strange []string
	for _, p := range c.Ports {
		if !p.Comparable() || !p.Judged() || !p.Golden.DType().IsFloat() {
			continue
		}
		if p.Base.Result.NaNGolden > 0 {
			nan = append(nan, p.Layer+" "+p.Port)
		}
		if p.float64Err != nil {
			strange = append(strange, p.Layer+" "+p.Port)
		}
	}
	c.noteFew("the golden itself has NaN, so that nothing after it can be judged", nan)
	c.noteFew("the float64 golden is not of this run, or not finite, and was not used", strange)
	k := &c.Cases[0]
	same := k.Golden.Path == k.Actual.Path && !c.otherEngines() // which is noted
	if n, equal := c.equalOutputs(); n > 1 && equal && !k.alone && !c.otherRecordings() && !same {
		c.find(whenRight, fmt.Sprintf("all %d compared outputs are equal bit for bit: if one dump is a copy of the other, "+
			"this shows only that it can be read", n))
	}
}

// equalOutputs counts the outputs of floats, and reports whether all of them are equal bit for bit.
func (c *Comparison) equalOutputs() (n int, equal bool) {
	equal = true
	for _, p := range c.Ports {
		if p.Comparable() && p.Judged() && p.Golden.DType().IsFloat() && p.Golden.Len() > 0 {
			n, equal = n+1, equal && p.sameValues()
		}
	}
	return n, equal
}

// IsCopy reports whether the candidate may be the golden itself: nothing tells the two apart, every
// output of floats is equal bit for bit, and the runs name neither two engines nor two recordings. One
// output is enough where both name the same engine.
func (c *Comparison) IsCopy() bool {
	least := 1
	for _, k := range c.Cases {
		if k.Golden.Info.Engine == "" || k.Actual.Info.Engine == "" {
			least = 2
		}
	}
	n, equal := c.equalOutputs()
	return n >= least && equal && !c.otherEngines() && !c.otherRecordings()
}

// otherRecordings reports whether both sides say which recording they are, and it is not the same: the
// candidate ran, whatever it is equal to.
func (c *Comparison) otherRecordings() bool {
	return c.differ(func(r *dump.Run) string { return r.Info.Nonce })
}

// otherEngines reports whether both sides name their engine and the two differ.
func (c *Comparison) otherEngines() bool {
	return c.differ(func(r *dump.Run) string { return strings.ToLower(r.Info.Engine) })
}

// differ reports whether the two runs of a case say something, and not the same.
func (c *Comparison) differ(of func(*dump.Run) string) bool {
	return slices.ContainsFunc(c.Cases, func(k Case) bool {
		g, a := of(k.Golden), of(k.Actual)
		return g != "" && a != "" && g != a
	})
}
