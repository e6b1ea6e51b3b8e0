package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/setting"
)

// PathRuns are runs along execution paths, and the runs of one pass that say what is right. Each
// sequence of the candidate is looked for in all goldens, by its tokens.
type PathRuns struct {
	Golden, Actual    []*dump.Run
	OnePass           []*dump.Run // the candidate's own runs of one pass; nil if there are none
	Golden64, Encoded []*dump.Run // the reference's other runs of one pass
	OnePassGolden     []*dump.Run // what OnePass is judged by, where Golden is of the path itself; nil: Golden

	// Exact says that a row may depend on tokens behind it: a sequence is then judged by a golden of
	// just its tokens, never by the beginning of a longer one.
	Exact bool
	// Forced says that the goldens were forced along the same text as the candidate, in whichever forward
	// passes: their rows are then those of the text, as those of one pass are.
	Forced bool
	// Measured says that the golden's rows are known to hold along the path: the reference was run so.
	Measured bool
}

// Along says how the rows of a case were fed.
type Along struct {
	*path.Sheet             // the candidate's
	golden      *path.Sheet // one of the golden's
	onePass     *bool       // whether the candidate's own one pass holds; nil if it was not given
}

// Paths is everything that is known of runs along execution paths.
type Paths struct {
	along      *Comparison   // with the golden; nil if the runs were given other tokens
	onePass    *Comparison   // the candidate's own one pass with the golden; nil if it was not given
	consistent *Comparison   // with the candidate's own one pass; nil if it was not given
	repeats    []*Comparison // of each run along the path repeat, with its first run
	exact      bool          // repeats have to be equal bit for bit
	other      error         // how the tokens differ
}

// ComparePaths compares runs along execution paths with runs of one pass.
func ComparePaths(ctx context.Context, runs PathRuns, opt Options) (*Paths, error) {
	actual, err := sheets(runs.Actual, nil)
	if err != nil {
		return nil, err
	}
	for _, s := range actual {
		if err := s.Check(); err != nil && !runs.Forced {
			return nil, fmt.Errorf("%s: %w", s.Run.Path, err)
		}
	}
	if err := hits(opt.Match.Ignore, slices.Concat(runs.Golden, runs.Actual)); err != nil {
		return nil, err
	}
	opt.Match.Cut = true // of what is no row of a token
	goldenSheets := goldenSheets
	if runs.Forced {
		goldenSheets = forcedSheets
	}
	golden, err := goldenSheets(runs.Golden, actual[0], runs.Exact)
	if err != nil {
		return nil, err
	}
	p := &Paths{exact: opt.Criteria == nil}
	reference := goldens{standard: golden, measured: runs.Measured}
	if reference.float64, err = goldenSheets(runs.Golden64, actual[0], runs.Exact); err != nil {
		return nil, err
	}
	if reference.encoded, err = goldenSheets(runs.Encoded, actual[0], runs.Exact); err != nil {
		return nil, err
	}
	own, err := onePassSheets(runs.OnePass, golden[0], runs.Exact)
	if err != nil {
		return nil, fmt.Errorf("the candidate's own one pass: %w", err)
	}
	if len(own) > 0 {
		whole := reference
		if len(runs.OnePassGolden) > 0 {
			whole = goldens{measured: true}
			if whole.standard, err = onePassSheets(runs.OnePassGolden, actual[0], runs.Exact); err != nil {
				return nil, err
			}
		}
		if p.onePass, err = whole.compare(ctx, own, nil, opt); err != nil {
			return p.unlessOther(fmt.Errorf("the candidate's own one pass: %w", err))
		}
	}
	if p.along, err = reference.compare(ctx, actual, p.onePassHolds(), opt); err != nil {
		return p.unlessOther(err)
	}
	return p, p.compareOwn(ctx, actual, own, opt)
}

// hits returns an error if a pattern matches nothing in the runs, of which parts are left out later.
func hits(ignores []match.Ignore, runs []*dump.Run) error {
	for _, ig := range ignores {
		p, err := glob.Compile(ig.Pattern)
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

// unlessOther makes other tokens a verdict in place of an error.
func (p *Paths) unlessOther(err error) (*Paths, error) {
	if !isOther(err) {
		return nil, err
	}
	p.other = err
	return p, nil
}

func isOther(err error) bool {
	var other *path.OtherTokensError
	return errors.As(err, &other)
}

// onePassHolds reports whether the candidate's own one pass holds; nil if it was not given.
func (p *Paths) onePassHolds() *bool {
	if p.onePass == nil {
		return nil
	}
	v := p.onePass.Report("", true).Verdict
	holds := v == report.Pass || v == report.Incomplete
	return &holds
}

// compareOwn compares the candidate with itself.
func (p *Paths) compareOwn(ctx context.Context, actual, own []*path.Sheet, opt Options) (err error) {
	opt.Diagnosis, opt.Progress = Diagnosis{Mode: setting.DiagnoseOff}, nil
	opt.Scope, opt.Match.Rules, opt.Match.Ignore = nil, nil, nil
	if len(own) > 0 {
		if p.consistent, err = (goldens{standard: own}).compare(ctx, actual, p.onePassHolds(), opt); isOther(err) {
			p.along.Note("it was not compared with its own one pass, which had other tokens: " + err.Error())
		} else if err != nil {
			return fmt.Errorf("with the candidate's own one pass: %w", err)
		}
	}
	for _, s := range actual {
		if s.Path.Kind != dump.Repeat {
			continue
		}
		c, err := goldens{standard: []*path.Sheet{s}}.compare(ctx, []*path.Sheet{s}, nil, opt)
		if err != nil {
			return fmt.Errorf("with the first run: %w", err)
		}
		p.repeats = append(p.repeats, c)
	}
	return nil
}

func sheets(runs []*dump.Run, other *path.Sheet) (out []*path.Sheet, err error) {
	for _, r := range runs {
		s, err := path.New(r, other)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func onePassSheets(runs []*dump.Run, other *path.Sheet, exact bool) ([]*path.Sheet, error) {
	out, err := sheets(runs, other)
	for _, s := range out {
		s.Exact = exact
		err = cmp.Or(err, s.IsOnePass())
	}
	return out, err
}

// goldenSheets are those of one pass, or of runs along the candidate's own path: the reference's
// rows there are right, whatever they depend on.
func goldenSheets(runs []*dump.Run, actual *path.Sheet, exact bool) ([]*path.Sheet, error) {
	if !slices.ContainsFunc(runs, func(r *dump.Run) bool { return r.Info.Path == "" || r.Info.Path != actual.Name }) {
		return sheets(runs, actual)
	}
	return onePassSheets(runs, actual, exact)
}

func forcedSheets(runs []*dump.Run, actual *path.Sheet, _ bool) ([]*path.Sheet, error) {
	return sheets(runs, actual)
}

// goldens are the sheets whose rows are put in the order of a run.
type goldens struct {
	standard, float64, encoded []*path.Sheet
	measured                   bool // their rows are known to hold along the path
}

// compare judges runs beside the rows of the goldens.
func (g goldens) compare(ctx context.Context, runs []*path.Sheet, onePass *bool, opt Options) (*Comparison, error) {
	var cases []Case
	var notes []string
	for _, s := range runs {
		found, err := s.From(g.standard...)
		if err != nil {
			return nil, err
		}
		k := Case{Name: name(s, cases), Golden: found.Run, Actual: s.Run,
			Along: &Along{Sheet: s, golden: g.standard[0], onePass: onePass}}
		for _, other := range []struct {
			sheets []*path.Sheet
			to     **dump.Run
		}{{g.float64, &k.Golden64}, {g.encoded, &k.Encoded}} {
			if len(other.sheets) == 0 {
				continue
			}
			f, err := s.From(other.sheets...)
			if err != nil {
				return nil, err
			}
			*other.to = f.Run
		}
		if len(found.Skipped) > 0 {
			k.Actual = without(s.Run, found.Skipped)
			notes = append(notes, fmt.Sprintf("no golden has the tokens of forward pass %s: it was not judged", label.Few(found.Skipped)))
		}
		if found.Assumed && !g.measured {
			notes = append(notes, "causality assumed: a sequence is the beginning of a longer one of the golden, and its rows were judged by that")
		}
		for _, side := range []struct {
			who string
			of  *path.Sheet
		}{{"golden", g.standard[0]}, {"candidate", s}} {
			if left := side.of.Left; len(left) > 0 {
				notes = append(notes, fmt.Sprintf("left out, for the rows of the %s are not tokens: %s", side.who, label.Few(left)))
			}
		}
		cases = append(cases, k)
	}
	c, err := Compare(ctx, cases, opt)
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		c.Note(n)
	}
	return c, nil
}

// Along is the comparison with the golden; nil if the runs were given other tokens.
func (p *Paths) Along() *Comparison { return p.along }

// OnePassHolds reports whether the candidate's own one pass, where it was given, agrees with the
// golden. Where it does not, what is wrong along a path is not the path's.
func (p *Paths) OnePassHolds() bool {
	holds := p.onePassHolds()
	return holds == nil || *holds
}

// Agreement says how far the candidate is from the golden along its paths, and whether all that was
// compared is the same within the noise floor.
func (p *Paths) Agreement() (a *report.Agreement, agrees bool) {
	if p.along == nil {
		return nil, false
	}
	for _, port := range p.along.Ports {
		if port.Judged() && port.comparable() && port.Elsewhere == "" && !port.Agrees {
			return p.along.agreement(""), false
		}
	}
	return p.along.agreement(""), true
}

// name is that of a run's case; of several runs of one case, along other paths, with the path.
func name(s *path.Sheet, cases []Case) string {
	name := cmp.Or(s.Run.Info.Case, filepath.Base(filepath.Clean(s.Run.Path)))
	taken := func(k Case) bool { return k.Name == name }
	if slices.ContainsFunc(cases, taken) {
		name += " " + s.Name
	}
	for slices.ContainsFunc(cases, taken) {
		name += "'"
	}
	return name
}

// without is a run without some of its steps.
func without(r *dump.Run, steps []string) *dump.Run {
	var entries []dump.Entry
	for _, e := range r.Entries {
		if !slices.Contains(steps, e.Step) {
			entries = append(entries, e)
		}
	}
	out := dump.New(r.Path, r.Info, r.OrderBy, entries)
	out.Notes = r.Notes
	out.Watch(r.Changed)
	return out
}

// Report returns report.json of the runs along paths. Where the candidate's own one pass is wrong
// too, the report is about that: the path is not what is wrong.
func (p *Paths) Report(name string) *report.Report {
	if p.other != nil {
		v := localise.OtherPrompt("", "0", p.other.Error())
		return &report.Report{Fixture: name, Verdict: report.Fail, Kind: v.Kind, Frontier: []string{},
			FirstDivergence: &report.Divergence{Step: v.Step, Proven: v.Proven, Text: v.Text}}
	}
	along := p.along.Report(name, true)
	r := along
	if holds := p.onePassHolds(); r.Verdict == report.Fail && holds != nil && !*holds {
		r = p.onePass.Report(name, true)
		text := "the candidate's own one pass is wrong too, so this report is about that, and not about the path"
		if d := along.FirstDivergence; d != nil && d.Row != nil {
			text += fmt.Sprintf("; along %s the first divergence is %s%s", d.Path, d.Where(), d.At())
		}
		r.Notes = append([]string{text}, r.Notes...)
	}
	if own := p.unlikeItself(name); own != nil && (r.Verdict == report.Pass || r.Verdict == report.Incomplete) {
		r = own
	}
	for _, k := range p.along.Cases {
		r.Paths = append(r.Paths, p.path(k))
	}
	p.judgeRepeats(r)
	r.PathDepth = p.depth(along)
	p.places(r)
	return r
}

// unlikeItself is the report of a candidate that is not consistent with its own one pass, where some
// rows could not be judged by the golden: it chose other ways behind ties, and there only its own one
// pass tells what is right. It is nil if there is nothing of that.
func (p *Paths) unlikeItself(name string) *report.Report {
	unjudged := func(port *Port) bool { return port.Elsewhere != "" || slices.Contains(port.lost, true) }
	if p.consistent == nil || !slices.ContainsFunc(p.along.Ports, unjudged) {
		return nil
	}
	r := p.consistent.Report(name, true)
	if r.Verdict != report.Fail || r.Kind != localise.KindPath {
		return nil
	}
	r.Notes = append([]string{"the golden's choices behind ties are others, so this is what differs from the candidate's own one pass"}, r.Notes...)
	return r
}

// path is the summary of a case.
func (p *Paths) path(k Case) report.Path {
	out := report.Path{Case: k.Name, Path: k.Along.Name, Passes: len(k.Along.Passes), Matches: p.along.agreement(k.Name)}
	for _, pass := range k.Along.Passes {
		out.Rows += len(pass.Rows)
	}
	if p.onePass != nil {
		out.OnePass = p.onePass.agreement("")
	}
	if p.consistent != nil {
		out.Consistent = p.consistent.agreement(k.Name)
	}
	for _, c := range p.repeats {
		if c.Cases[0].Along.Sheet == k.Along.Sheet {
			out.Repeats = c.agreement("")
			out.Repeats.Holds = out.Repeats.Holds && (out.Repeats.BitForBit || !p.exact)
		}
	}
	return out
}

// agreement says how the two sides of a case agree, of all cases if it has no name.
func (c *Comparison) agreement(caseName string) *report.Agreement {
	a := &report.Agreement{Holds: true, BitForBit: true}
	worst := -1.0
	for _, p := range c.Ports {
		if !p.Judged() || !p.comparable() || p.Elsewhere != "" || caseName != "" && p.Case != caseName {
			continue
		}
		r := p.Base.Result
		a.Outputs++
		a.Holds = a.Holds && p.passes()
		a.BitForBit = a.BitForBit && p.equal()
		if is := worstRow(r); is > worst {
			worst, a.Layer, a.Port, a.Step, a.RowRelL2 = is, p.Layer, p.Port, p.Step, report.Float(is)
		}
	}
	return a
}

// equal reports whether the two sides have the same values, in one type.
func (p *Port) equal() bool {
	r := p.Base.Result
	return p.Golden.DType() == p.Actual.DType() && r.MaxAbs.Value == 0 && r.BadNonFinite == 0
}

func worstRow(r compare.Result) float64 {
	if r.BadNonFinite > 0 {
		return math.Inf(1)
	}
	return r.WorstRow.RelL2
}

// judgeRepeats fails a report where a later run is not that of the first, and says so where the
// first divergence is in a later run alone.
func (p *Paths) judgeRepeats(r *report.Report) {
	passes := r.Verdict == report.Pass || r.Verdict == report.Incomplete
	if !passes && r.Kind != localise.KindPath {
		return
	}
	for _, c := range p.repeats {
		at := slices.IndexFunc(c.inOrder(), func(port *Port) bool {
			return port.Judged() && port.comparable() && !port.equal() && (p.exact || !passes || !port.passes())
		})
		if at < 0 {
			continue
		}
		port := c.inOrder()[at]
		cause := c.unsteady(port)
		if passes {
			r.Verdict, r.Kind = report.Fail, localise.KindPath
			r.FirstDivergence = &report.Divergence{Layer: port.Layer, Port: port.Port, Case: port.Case, Step: port.Step, Proven: true,
				Row: c.Cases[0].Along.row(port, port.Step), Text: fmt.Sprintf("%s %s is not what it was in the first run of the same tokens: "+
					"its worst row is off by relative L2 %.3g", port.Layer, port.Port, worstRow(port.Base.Result))}
			r.Causes = append(r.Causes, cause)
			return
		}
		first := r.FirstDivergence
		known := slices.ContainsFunc(r.Causes, func(k report.Cause) bool { return k.Proven && strings.HasPrefix(k.ID, "state/") })
		if cause.Proven && !known && first.Layer == port.Layer && first.Port == port.Port && first.Step == port.Step {
			r.Causes = []report.Cause{cause} // what else fits says how the later run differs, and not why
		}
	}
}

// unsteady is the cause of the first output that is not what it was in the first run of the same
// tokens: everything recorded before it is the same. It is proven where the layer reads no cache,
// which may hold something else, and was given the same, bit for bit.
func (c *Comparison) unsteady(output *Port) report.Cause {
	k := report.Cause{ID: "state/nondeterministic", Layer: output.Layer, Fit: report.Float(math.NaN()), FitGolden: report.Float(worstRow(output.Base.Result)),
		Text: "another result than in the first run of the same tokens"}
	given := false
	for _, p := range c.inOrder() {
		if p == output {
			break
		}
		if p.Case != output.Case || p.Step != output.Step || !p.comparable() {
			continue
		}
		if !p.equal() {
			return k
		}
		given = given || !p.Judged() && p.Layer == output.Layer
	}
	switch {
	case module.InAttention(output.Layer):
		k.Text += ", or the cache that it reads holds another content"
	case given:
		k.Proven = true
		k.Text += ", though the layer was given the same, bit for bit"
	default:
		k.Proven = true
		k.Text += ", though all that was recorded before it is the same, bit for bit"
	}
	return k
}
