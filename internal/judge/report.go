package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/vec"
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
	r := &report.Report{Fixture: name, Order: c.Order, Notes: c.Notes, Unmatched: c.Unmatched, Source: c.source()}
	other := c.OtherPrompt()
	wrong, decided := other != nil, map[string]bool{}
	var decisions []*Decision
	if other != nil && c.Verdict.Kind != localise.KindInput {
		r.Notes = append([]string{fmt.Sprintf("case %s: %s", other.Case, other.Text)}, r.Notes...)
	}
	for _, p := range c.Ports {
		if p.Actual == nil || !p.Judged() {
			continue
		}
		j := p.decision()
		if j == nil && all {
			j = p.Decide(nil, "")
		}
		if j != nil && j.Row.Status != report.StatusIgnored {
			decisions = append(decisions, j)
			decided[p.Layer] = true
			wrong = wrong || j.failed()
		}
	}
	r.Notes = append(slices.Clip(r.Notes), allowedVacuous(decisions)...)
	r.NotJudged = c.notJudged()
	if all {
		c.Demand()
	}
	r.Coverage = c.coverage(all)
	c.rows(r, func(layer string) bool { return all || decided[layer] }, wrong)
	wrong = wrong || len(c.Layers.lacking()) > 0
	c.verdict(r, wrong, len(decided) > 0)
	told := whenRight
	if wrong {
		told = whenWrong
	}
	r.Notes = slices.Concat(r.Notes, c.findingsOf(told))
	if wrong {
		if err := c.Found(r); err != nil {
			r.Void(err)
		}
		for _, d := range c.settings() {
			r.Notes = append(slices.Clip(r.Notes), "config: "+d.String())
		}
	}
	r.Stretches = c.stretches()
	for _, k := range c.Cases {
		r.Costs = append(r.Costs, report.CostsOf(k.Name, k.Actual)...)
	}
	r.Tokens = c.tokens()
	prompts, causes := c.Texts()
	r.SetPrompts(prompts, causes, !slices.ContainsFunc(c.Cases, func(k Case) bool { return len(k.Golden.Entries) > 0 || len(k.Actual.Entries) > 0 }))
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
	absent := c.Layers.lacking()
	for _, p := range c.InOrder() {
		if p.Actual == nil {
			if absent[p] {
				r.Layers = append(r.Layers, c.Layers.missingRow(p))
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
			row.Detail, row.Rows, row.Histogram = nil, nil, nil // one line says it
		}
		if row.Status == report.StatusFail {
			if len(failing) < maxExplained {
				failing, rows = append(failing, j), append(rows, len(r.Layers))
			} else {
				row.Detail, row.Rows, row.Histogram = nil, nil, nil // though a test may have asked for it
			}
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
	for _, pass := range c.flow().Passes {
		for _, e := range pass.Events {
			ports = append(ports, c.Ports[e.Index])
		}
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
