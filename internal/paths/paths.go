// Package paths judges runs along execution paths by runs of one pass: the place where a path leaves the
// golden, whether the candidate is consistent with its own one pass, and whether a later run repeats the
// first.
//
// A [Continuation] is a generation, in which an engine was forced along the reference's greedy text, token by token
// or in one pass: package generation judges its rows of logits, and where a token or its logits are wrong package
// judge says which layer is the first, in which forward pass.
package paths

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
)

// Goldens are the reference's runs that say what is right. Each sequence of the candidate is looked for in
// all of them, by its tokens.
type Goldens struct {
	Standard, Float64, Encoded []*dump.Run
	Programs                   []*program.Program // for each of Standard, nil for one that was not recorded; nil for none
}

// Runs are those along execution paths, and the runs of one pass that say what is right.
type Runs struct {
	Golden        Goldens
	Actual        []*dump.Run
	OnePass       []*dump.Run         // the candidate's own runs of one pass; nil if there are none
	OnePassGolden Goldens             // judges OnePass where Golden is of the path itself; none: Golden does. Float64 is not read
	Alone         *judge.AloneOptions // Golden has programs alone: what is right is made of these and the runs; nil: it has runs

	// Exact says that a row may depend on tokens after it: a sequence is then judged by a golden of
	// just its tokens, never by the beginning of a longer one.
	Exact bool
	// Forced says that the goldens were forced along the same text as the candidate, in whichever forward
	// passes: their rows are then those of the text, as those of one pass are.
	Forced bool
	// Own keeps how OnePass compares with the golden, for the other paths; nil: it is compared for these runs alone.
	Own *Own
	// Measured says that the golden's rows are known to hold along the path: the reference was run so.
	Measured bool
}

// Own is the candidate's own one pass beside the reference's, which runs along several paths share.
type Own struct {
	mu         sync.Mutex
	runs       []*dump.Run
	comparison *judge.Comparison
}

// Paths is everything that is known of runs along execution paths.
type Paths struct {
	Along         *judge.Comparison   // with the golden; nil if the runs were given other tokens
	onePass       *judge.Comparison   // the candidate's own one pass with the golden; nil if it was not given
	one           *report.Report      // of that
	holds         *bool               // whether it does
	consistent    *judge.Comparison   // with the candidate's own one pass; nil if it was not given
	repeats       []*judge.Comparison // of each run along the path repeat, with its first run
	exact         bool                // repeats have to be equal bit for bit
	tokenMismatch error               // how the tokens differ
}

// Compare compares runs along execution paths with runs of one pass. Where the golden is of the path
// itself, the reference computes something else there than in one pass: its angles depend on how much it has
// seen, or it loses a state between chunks. Who goes on with what it computes in one pass is right, too; and of who is
// wrong in one pass, the program of that tells more than goldens without one.
func Compare(ctx context.Context, runs Runs, opt judge.Options) (*Paths, error) {
	runs.OnePassGolden.Float64 = nil
	p, err := judged(ctx, runs, opt)
	if err != nil || len(runs.OnePassGolden.Standard) == 0 {
		return p, err
	}
	if _, agrees := p.Agreement(); agrees {
		return p, nil
	}
	runs.Golden, runs.OnePassGolden = runs.OnePassGolden, Goldens{}
	if whole, err := judged(ctx, runs, opt); err == nil {
		if compared, _ := whole.Agreement(); compared != nil && (compared.Holds || !whole.OnePassHolds()) {
			return whole, nil
		}
	}
	return p, nil
}

// judged is what is known of the runs; other tokens are a verdict, and no error.
func judged(ctx context.Context, runs Runs, opt judge.Options) (*Paths, error) {
	p := &Paths{exact: opt.Criteria == nil}
	if err := p.judge(ctx, runs, opt); isOther(err) {
		p.tokenMismatch = err
	} else if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Paths) judge(ctx context.Context, runs Runs, opt judge.Options) error {
	actual, err := runs.sheets(runs.Actual, nil, false)
	if err == nil && runs.Alone != nil {
		runs.Golden.Standard, err = judge.Blanks(runs.Golden.Programs)
	}
	if err != nil {
		return err
	}
	for _, s := range actual {
		if err := s.Check(); err != nil && !runs.Forced {
			return fmt.Errorf("%s: %w", s.Run.Path, err)
		}
	}
	if err := hits(opt.Match.Ignore, slices.Concat(runs.Golden.Standard, runs.Actual)); err != nil {
		return err
	}
	opt.Match.Partial = true // what is no row of a token is left out
	g, err := runs.goldens(runs.Golden, actual[0], actual[0].Name)
	if err != nil {
		return err
	}
	g.Measured, g.Alone = runs.Measured, runs.Alone
	own, err := runs.sheets(runs.OnePass, g.Standard[0], true)
	if err == nil && len(own) > 0 {
		err = p.compareOnePass(ctx, g, own, runs, opt)
	}
	if err != nil {
		return fmt.Errorf("the candidate's own one pass: %w", err)
	}
	if !p.OnePassHolds() {
		opt.Diagnosis.Mode = setting.DiagnoseOff // the report is about the one pass
	}
	if p.Along, err = beside(ctx, g, actual, p.holds, opt); err != nil {
		return err
	}
	return p.compareOwn(ctx, actual, own, opt)
}

// compareOnePass says how the candidate's own one pass compares with the golden's.
func (p *Paths) compareOnePass(ctx context.Context, g judge.Goldens, own []*path.Sheet, runs Runs, opt judge.Options) (err error) {
	if p.onePass, err = runs.compareOnePass(ctx, g, own, opt); err != nil {
		return err
	}
	p.one = p.onePass.Report("", true)
	holds := passes(p.one)
	p.holds = &holds
	return nil
}

// compareOnePass compares the candidate's own one pass with the golden's, which may be another one, unless that is known.
func (runs *Runs) compareOnePass(ctx context.Context, g judge.Goldens, own []*path.Sheet, opt judge.Options) (c *judge.Comparison, err error) {
	if o := runs.Own; o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.comparison != nil && slices.Equal(o.runs, runs.OnePass) {
			return o.comparison, nil
		}
		defer func() { o.runs, o.comparison = runs.OnePass, c }()
	}
	if len(runs.OnePassGolden.Standard) > 0 {
		if g, err = runs.goldens(runs.OnePassGolden, own[0], ""); err != nil {
			return nil, err
		}
		g.Measured = true
	}
	return beside(ctx, g, own, nil, opt)
}

// hits returns an error if a pattern matches nothing in the runs, of which parts are left out later.
func hits(ignores []match.Ignore, runs []*dump.Run) error {
	for _, ig := range ignores {
		p, err := label.CompilePattern(ig.Pattern)
		if err != nil {
			return fmt.Errorf("ignore %q: %w", ig.Pattern, err)
		}
		if !slices.ContainsFunc(runs, func(r *dump.Run) bool {
			return slices.ContainsFunc(r.Entries, func(e dump.Entry) bool { return p.Match(e.Layer) || p.Match(e.Label()) })
		}) {
			return fmt.Errorf("ignore %q matches no layer or port of the runs", ig.Pattern)
		}
	}
	return nil
}

func isOther(err error) bool {
	_, is := errors.AsType[*path.OtherTokensError](err)
	return is
}

// compareOwn compares the candidate with itself.
func (p *Paths) compareOwn(ctx context.Context, actual, own []*path.Sheet, opt judge.Options) (err error) {
	opt.Diagnosis, opt.Progress = judge.Diagnosis{Mode: setting.DiagnoseOff}, nil
	opt.Scope, opt.Match.Rules, opt.Match.Ignore = nil, nil, nil
	if len(own) > 0 {
		if p.consistent, err = beside(ctx, judge.Goldens{Standard: own}, actual, p.holds, opt); isOther(err) {
			p.Along.Note("it was not compared with its own one pass, which had other tokens: " + err.Error())
		} else if err != nil {
			return fmt.Errorf("with the candidate's own one pass: %w", err)
		}
	}
	for _, s := range actual {
		if s.Path.Kind != dump.Repeat {
			continue
		}
		c, err := beside(ctx, judge.Goldens{Standard: []*path.Sheet{s}}, []*path.Sheet{s}, nil, opt)
		if err != nil {
			return fmt.Errorf("with the first run: %w", err)
		}
		p.repeats = append(p.repeats, c)
	}
	return nil
}

// sheets lays runs out, which have to be of one pass where that is asked for.
func (runs *Runs) sheets(of []*dump.Run, other *path.Sheet, onePass bool) (out []*path.Sheet, err error) {
	for _, r := range of {
		s, err := path.New(r, other)
		if err == nil && onePass {
			s.Exact = runs.Exact
			err = s.IsOnePass()
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// goldens lays out those of one pass, or of runs along the candidate's own path or text: the reference's
// rows there are right, whatever they depend on.
func (runs *Runs) goldens(g Goldens, actual *path.Sheet, along string) (out judge.Goldens, err error) {
	other := func(r *dump.Run) bool { return r.Info.Path == "" || r.Info.Path != along }
	for _, of := range []struct {
		to   *[]*path.Sheet
		runs []*dump.Run
	}{{&out.Standard, g.Standard}, {&out.Float64, g.Float64}, {&out.Encoded, g.Encoded}} {
		onePass := !runs.Forced && slices.ContainsFunc(of.runs, other)
		if *of.to, err = runs.sheets(of.runs, actual, onePass); err != nil {
			return out, err
		}
	}
	out.Programs = map[*path.Sheet]*program.Program{}
	for i, p := range g.Programs {
		if p != nil {
			out.Programs[out.Standard[i]] = p
		}
	}
	return out, nil
}

// beside judges runs beside the rows of the goldens.
func beside(ctx context.Context, g judge.Goldens, runs []*path.Sheet, onePass *bool, opt judge.Options) (*judge.Comparison, error) {
	var cases []judge.Case
	var notes []string
	if g.Alone != nil {
		of := *g.Alone
		of.Match = opt.Match
		g.Alone = &of
	}
	for _, s := range runs {
		k, more, err := g.Case(ctx, name(s, cases), s, onePass)
		if err != nil {
			return nil, err
		}
		cases, notes = append(cases, k), append(notes, more...)
	}
	c, err := judge.Compare(ctx, cases, opt)
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		c.Note(n)
	}
	return c, nil
}

// OnePassHolds reports whether the candidate's own one pass, where it was given, agrees with the
// golden. Where it does not, what is wrong along a path is not the path's.
func (p *Paths) OnePassHolds() bool { return p.holds == nil || *p.holds }

// Agreement says how far the candidate is from the golden along its paths, and whether all that was
// compared is the same within the noise floor.
func (p *Paths) Agreement() (a *report.Agreement, agrees bool) {
	if p.Along == nil {
		return nil, false
	}
	differs := func(port *judge.Port) bool { return !port.Unjudged() && !port.Agrees }
	return p.Along.Agreement(""), first(p.Along, differs) == nil
}

// name is that of a run's case; of several runs of one case, along other paths, with the path.
func name(s *path.Sheet, cases []judge.Case) string {
	name := cmp.Or(s.Run.Info.Case, filepath.Base(filepath.Clean(s.Run.Path)))
	taken := func(k judge.Case) bool { return k.Name == name }
	for more := " " + s.Name; slices.ContainsFunc(cases, taken); more = "'" {
		name += more
	}
	return name
}

// Report returns report.json of the runs along paths. Where the candidate's own one pass is wrong
// too, the report is about that: the path is not what is wrong.
func (p *Paths) Report(name string) *report.Report {
	if p.tokenMismatch != nil {
		v := judge.OtherTokens(p.tokenMismatch)
		return &report.Report{Fixture: name, Verdict: report.Fail, Kind: v.Kind, Frontier: []string{},
			FirstDivergence: &report.Divergence{Step: v.Step, Proven: v.Proven, Text: v.Text}}
	}
	along := rowsOf(p.Along, name)
	r := along
	if r.Verdict == report.Fail && !p.OnePassHolds() {
		one := *p.one
		one.Fixture, r = name, &one
		text := "the candidate's own one pass is wrong too, so this report is about that, and not about the path"
		if d := along.FirstDivergence; d != nil && d.Row != nil {
			text += fmt.Sprintf("; along %s the first divergence is %s", d.Path, d.Where())
		}
		r.Notes = append([]string{text}, r.Notes...)
	}
	if own := p.inconsistentWithOnePass(name); own != nil && passes(r) {
		r = own
	}
	depth := &report.PathDepth{} // how far the runs are off along the depth of the model
	if p.onePass != nil {
		depth.Add(report.OnePass, "", p.one.Layers)
	}
	for _, k := range p.Along.Cases {
		r.Paths = append(r.Paths, p.path(k))
		other := func(l report.Layer) bool { return l.Case != k.Name }
		depth.Add(k.Along.Name, k.Name, slices.DeleteFunc(slices.Clone(along.Layers), other))
	}
	p.judgeRepeats(r)
	r.PathDepth = depth
	p.places(r)
	return r
}

// rowsOf is the report of a comparison whose rows are those of paths.
func rowsOf(c *judge.Comparison, name string) *report.Report {
	r := c.Report(name, true)
	for i := range r.Layers {
		r.Layers[i].Stage = report.StagePaths
	}
	return r
}

// inconsistentWithOnePass is the report of a candidate that is not consistent with its own one pass, where some
// rows could not be judged by the golden: it chose other ways after ties, and there only its own one
// pass tells what is right. It is nil if there is nothing of that. What the golden judged may be written
// otherwise along a path, as absorbed attention is while it decodes.
func (p *Paths) inconsistentWithOnePass(name string) *report.Report {
	if p.consistent == nil {
		return nil
	}
	left := map[string]bool{} // ports, by the candidate's own names
	for _, port := range p.Along.Ports {
		if port.LeftOut() && port.ActualSide != nil {
			left[port.ActualSide.Name] = true
		}
	}
	if first(p.consistent, func(port *judge.Port) bool { return !port.Agrees && left[port.ActualSide.Name] }) == nil {
		return nil
	}
	r := rowsOf(p.consistent, name)
	if r.Verdict != report.Fail || r.Kind != report.KindPath {
		return nil
	}
	r.Notes = append([]string{"the golden's choices after ties are others, so this is what differs from the candidate's own one pass"}, r.Notes...)
	return r
}

// path is the summary of a case.
func (p *Paths) path(k judge.Case) report.Path {
	out := report.Path{Case: k.Name, Path: k.Along.Name, Passes: len(k.Along.Passes), Matches: p.Along.Agreement(k.Name)}
	for _, pass := range k.Along.Passes {
		out.Rows += len(pass.Rows)
	}
	if p.onePass != nil {
		out.OnePass = p.onePass.Agreement("")
	}
	if p.consistent != nil {
		out.Consistent = p.consistent.Agreement(k.Name)
	}
	for _, c := range p.repeats {
		if c.Cases[0].Along.Sheet == k.Along.Sheet {
			out.Repeats = c.Agreement("")
			out.Repeats.Holds = out.Repeats.Holds && (out.Repeats.BitForBit || !p.exact)
		}
	}
	return out
}

// judgeRepeats fails a report where a later run is not that of the first, and says so where the
// first divergence is in a later run alone.
func (p *Paths) judgeRepeats(r *report.Report) {
	ok := passes(r)
	if !ok && r.Kind != report.KindPath {
		return
	}
	for _, c := range p.repeats {
		port := first(c, func(port *judge.Port) bool { return !port.Equal() && (p.exact || !ok || !port.Passes()) })
		if port == nil {
			continue
		}
		cause := unsteady(c, port)
		if ok {
			r.Join(&report.Report{Verdict: report.Fail, Kind: report.KindPath, Frontier: r.Frontier, Causes: append(r.Causes, cause),
				FirstDivergence: &report.Divergence{Layer: port.Layer, Port: port.Port, Case: port.Case, Step: port.Step, Proven: true,
					Row: c.RowOf(port), Text: fmt.Sprintf("%s %s is not what it was in the first run of the same tokens: "+
						"its worst row is off by relative L2 %.3g", port.Layer, port.Port, port.WorstRow())}})
			return
		}
		at := r.FirstDivergence
		known := slices.ContainsFunc(r.Causes, func(k report.Cause) bool { return k.Proven && strings.HasPrefix(k.ID, "state/") })
		if cause.Proven && !known && at.Layer == port.Layer && at.Port == port.Port && at.Step == port.Step {
			r.Causes = []report.Cause{cause} // what else fits says how the later run differs, and not why
		}
	}
}

// unsteady is the cause of the first output that is not what it was in the first run of the same
// tokens: everything recorded before it is the same. It is proven where the layer reads no cache,
// which may hold something else, and was given the same, bit for bit.
func unsteady(c *judge.Comparison, output *judge.Port) report.Cause {
	k := report.Cause{ID: "state/nondeterministic", Layer: output.Layer, Fit: report.Float(math.NaN()), FitGolden: report.Float(output.WorstRow()),
		Text: "another result than in the first run of the same tokens"}
	given := false
	for _, p := range c.InOrder() {
		if p == output {
			break
		}
		if p.Case != output.Case || p.Step != output.Step || !p.Comparable() {
			continue
		}
		if !p.Equal() {
			return k
		}
		given = given || !p.Judged() && p.Layer == output.Layer
	}
	k.Proven = !label.InAttention(output.Layer)
	switch {
	case !k.Proven:
		k.Text += ", or the cache that it reads holds another content"
	case given:
		k.Text += ", though the layer was given the same, bit for bit"
	default:
		k.Text += ", though all that was recorded before it is the same, bit for bit"
	}
	return k
}

// places says of each path of a report where it is wrong first: of that of the verdict as the
// verdict does, of the others by the first output that is wrong by itself.
func (p *Paths) places(r *report.Report) {
	if r.Kind != report.KindPath || r.FirstDivergence.Row == nil {
		return
	}
	d := r.FirstDivergence
	for i := range r.Paths {
		path := &r.Paths[i]
		if path.Case == d.Case {
			path.First = &report.Place{Layer: d.Layer, Port: d.Port, Step: d.Step, Row: *d.Row}
			if len(r.Causes) > 0 && r.Causes[0].Proven {
				path.Cause = r.Causes[0].ID
			}
			continue
		}
		wrong := func(port *judge.Port) bool {
			return port.Case == path.Case && !port.Passes() && p.Along.RowOf(port) != nil
		}
		if port := first(p.Along, wrong); port != nil {
			path.First = &report.Place{Layer: port.Layer, Port: port.Port, Step: port.Step, Row: *p.Along.RowOf(port)}
		}
	}
}

// passes reports whether nothing in a report is wrong.
func passes(r *report.Report) bool { return r.Verdict == report.Pass || r.Verdict == report.Incomplete }

// first is the first output that was compared and is so; nil for none.
func first(c *judge.Comparison, is func(*judge.Port) bool) *judge.Port {
	for _, port := range c.InOrder() {
		if port.Judged() && port.Comparable() && is(port) {
			return port
		}
	}
	return nil
}
