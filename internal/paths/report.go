package paths

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/tensor"
)

// Report returns report.json of the generation.
func (o *Continuation) Report(name string) *report.Report {
	row := o.row()
	r := &report.Report{Fixture: name, Verdict: report.Pass, Coverage: &report.Coverage{Compared: 1, Outputs: 1}, Layers: []report.Layer{row}}
	text := o.Text()
	switch {
	case o.Fails() && o.layers != nil && o.layers.Verdict == report.Fail && o.layers.FirstDivergence != nil:
		r = o.layers
		r.Fixture = name
		if r.Paths = slices.DeleteFunc(r.Paths, func(p report.Path) bool { return p.Path == dump.OnePass }); len(r.Paths) == 0 {
			r.PathDepth = nil // one pass is no path of its own
		}
	case o.Fails():
		layer, port := o.Actual.Logits()
		r.Verdict, r.Kind, r.Frontier = report.Fail, report.KindGeneration, []string{}
		r.FirstDivergence = &report.Divergence{Layer: layer, Port: port, Case: o.Case, Step: row.Step, Text: text}
		if o.layers != nil {
			r.Notes = append(r.Notes, "no other layer that both sides recorded is beyond its tolerance")
			r.Notes = append(r.Notes, o.layers.Notes...)
		}
	case o.Verdict == generation.Uninformative:
		r.Verdict, r.Coverage.Open = report.Incomplete, []string{text}
	}
	r.NotJudged = slices.DeleteFunc(slices.Clone(r.NotJudged), func(what string) bool { return strings.HasPrefix(what, "generation (") })
	if n := len(o.Positions); o.left > 0 {
		r.NotJudged = append(r.NotJudged, fmt.Sprintf("the last %d of %d tokens of the golden (%s): the first %d were asked for", o.left, n+o.left, o.Case, n))
	}
	if r.Source.Golden.Name == "" {
		r.Source = report.Source{Golden: engineOf(o.Golden), Actual: engineOf(o.Actual)}
	}
	r.Notes = append(r.Notes, o.Notes...)
	r.Generations = []report.Generation{o.generation(text)}
	return r
}

// Text is the verdict in a sentence.
func (o *Continuation) Text() string {
	n := len(o.Positions)
	switch o.Verdict {
	case generation.Identical:
		return fmt.Sprintf("IDENTICAL: all %d tokens are the reference's", n)
	case generation.Ties:
		p := o.Positions[o.At]
		return fmt.Sprintf("TIE: %d of %d tokens are the reference's; token %d is %d in place of %d, which the reference has ahead by %.2g of the noise",
			o.Agree, n, o.At, p.Candidate, p.Reference, p.Gap)
	case generation.Uninformative:
		return fmt.Sprintf("golden too flat: of %d tokens it decides %.0f %% by less than the noise of %s, so that the others say little: "+
			"take another prompt or a model that was trained", n, 100*o.Flat, o.Encoding)
	case generation.Logits:
		return "the tokens are right, their logits are not: " + o.wrongLogits()
	}
	return fmt.Sprintf("DIVERGED at token %d of %d: %s", o.At, n, o.diverged())
}

func (o *Continuation) diverged() string {
	p := &o.Positions[o.At]
	switch {
	case p.Candidate < 0:
		return fmt.Sprintf("%d of the candidate's logits are NaN or infinite, or all are hidden", p.Bad)
	case p.Said >= 0:
		return fmt.Sprintf("the engine says that it chose %d, and its own logits say %d: it chose by other logits, or sampled", p.Said, p.Candidate)
	case math.IsNaN(p.Gap):
		return fmt.Sprintf("the reference says %d, the candidate %d, which is not among the logits that are known on both sides", p.Reference, p.Candidate)
	}
	return fmt.Sprintf("the reference says %d, %.3g times the noise ahead of %d, which the candidate has ahead by %.3g times", p.Reference, p.Gap,
		p.Candidate, -p.CandidateGap)
}

func (o *Continuation) wrongLogits() string {
	p := &o.Positions[o.At]
	switch n := len(p.Outliers); {
	case n > 0:
		what := "as no rounding makes them"
		if n == 2 {
			what = "as if they were exchanged"
		}
		return fmt.Sprintf("at token %d those of %s alone are off, %s", o.At, strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Outliers), " ", ", "), "[]"), what)
	case p.Hidden > 0 && !(p.Error > o.Limits.RowRelL2 && !math.IsInf(p.Error, 1)):
		return fmt.Sprintf("at token %d the candidate hides tokens that have %.2g of the probability: run it without logits processors", o.At, p.Hidden)
	case o.Grows:
		return fmt.Sprintf("their error grows with the position, to %.3g times what it was, and is %.2g at token %d", o.Growth, p.Error, o.At)
	}
	return fmt.Sprintf("less their mean they are off by rel. L2 %.3g, limit %.3g, and at token %d by %.3g, limit %.3g", o.RelL2, o.Limits.RelL2, o.At,
		p.Error, o.Limits.RowRelL2)
}

func (o *Continuation) generation(text string) report.Generation {
	g := report.Generation{Case: o.Case, Verdict: string(o.Verdict), Text: text, Incremental: o.Actual.incremental(), Prompt: o.Golden.Prompt, Tokens: len(o.Positions), Agree: o.Agree,
		Ties: o.Result.Ties, Flat: report.Float(o.Flat), Logits: o.Actual.logits.where(), DType: o.Encoding.String(), KL: report.Float(o.KL),
		RelL2: report.Float(o.RelL2), Row: report.Float(o.Positions[o.Worst].Error), Limit: report.Float(o.Limits.RelL2),
		RowMost: report.Float(o.Limits.RowRelL2), Growth: report.Float(o.Growth), Grows: o.Grows, Golden: report.Float(o.Perplexity[0]),
		Actual: report.Float(o.Perplexity[1]), Reference: o.Golden.Shown, Own: o.Actual.Shown}
	if o.At >= 0 {
		g.At = &o.At
	}
	for _, p := range o.Positions {
		t := report.Token{Reference: p.Reference, Candidate: p.Candidate, Choice: string(p.Choice), Gap: report.Float(p.Gap),
			OwnGap: report.Float(p.CandidateGap), Noise: report.Float(p.Noise), KL: report.Float(p.KL), Rank: p.Rank,
			Error: report.Float(p.Error), LogProb: report.Float(p.LogProb), OwnProb: report.Float(p.CandidateLogProb), Wrong: p.Outliers}
		if p.Said >= 0 {
			t.Said = &p.Said
		}
		g.Positions = append(g.Positions, t)
	}
	return g
}

// row is the output with the logits, of all tokens that were judged: less the mean of each.
func (o *Continuation) row() report.Layer {
	layer, port := o.Actual.Logits()
	row := report.Layer{Layer: layer, Port: port, Kind: label.RoleOf(port).String(), Case: o.Case,
		Step: cmp.Or(o.Actual.logits.step, "0"), Stage: report.StageGeneration, Status: report.StatusPass,
		Note:      "the logits that decide a token of the continuation, less the mean of each row",
		Tolerance: report.ToleranceOf(o.Limits.Criteria(), "default for "+o.Encoding.String())}
	if o.Fails() {
		row.Status = report.StatusFail
		row.Violations = []string{o.Text()}
	}
	golden, err := tensor.Of(o.golden, len(o.Positions), generation.Kept)
	actual, err2 := tensor.Of(o.actual, len(o.Positions), generation.Kept)
	var result compare.Result
	if err = cmp.Or(err, err2); err == nil {
		result, err = compare.Tensors(golden, actual, compare.Tolerance{})
	}
	if err != nil {
		row.Status, row.Note = report.StatusError, err.Error()
		return row
	}
	row.Standard = report.MetricsOf(result, golden)
	side := func(s *Side) *report.Side {
		return &report.Side{Name: s.logits.where(), DType: s.logits.of.String(), Shape: golden.Shape()}
	}
	row.Golden, row.Actual = side(o.Golden), side(o.Actual)
	return row
}

// stack adds the logits that both sides know of a token, of the largest of the golden's, less their
// means; 0 for those that one side does not know.
func (o *Continuation) stack(golden, actual generation.Row) {
	x, y := make([]float64, generation.Kept), make([]float64, generation.Kept)
	n := 0
	for _, l := range golden.Top[:min(len(golden.Top), generation.Kept)] {
		if v, ok := actual.Logit(l.Token); ok {
			x[n], y[n] = l.Value, v
			n++
		}
	}
	for _, v := range [][]float64{x[:n], y[:n]} {
		floats.AddConst(-floats.Sum(v)/float64(n), v)
	}
	o.golden, o.actual = append(o.golden, x...), append(o.actual, y...)
}

func engineOf(s *Side) report.Engine {
	if s.Run == nil {
		return report.Engine{Path: s.From}
	}
	i := s.Run.Info
	return report.Engine{Name: i.Engine, Versions: i.Versions, Device: i.Device, Encoding: i.Encoding.String(), Path: s.Run.Path}
}
