package judge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/report"
)

// Along says how the rows of a case were fed.
type Along struct {
	*path.Sheet             // the candidate's
	golden      *path.Sheet // one of the golden's
	onePass     *bool       // whether the candidate's own one pass holds; nil if it was not given

	found    *path.Found
	programs map[*path.Sheet]*program.Program // of the golden's sheets
	wrong    map[*Port]path.Row               // the first row that replay found wrong
}

// Goldens are the runs whose rows are put in the order of a run along an execution path.
type Goldens struct {
	Standard, Float64, Encoded []*path.Sheet
	Measured                   bool // their rows are known to hold along the path
	Programs                   map[*path.Sheet]*program.Program
	Alone                      *AloneOptions // their numbers are made of the programs; nil: they have them
}

// Case puts a run beside the rows of the goldens. onePass says whether the candidate's own one pass holds,
// nil where that is not known. The notes are for people.
func (g Goldens) Case(ctx context.Context, name string, s *path.Sheet, onePass *bool) (k Case, notes []string, err error) {
	found, err := s.From(g.Standard...)
	if err != nil {
		return k, nil, err
	}
	k = Case{Name: name, Golden: found.Run, Actual: s.Run,
		Along: &Along{Sheet: s, golden: g.Standard[0], onePass: onePass, found: found, programs: g.Programs, wrong: map[*Port]path.Row{}}}
	for _, other := range []struct {
		sheets []*path.Sheet
		to     **dump.Run
	}{{g.Float64, &k.Golden64}, {g.Encoded, &k.Encoded}} {
		if len(other.sheets) == 0 {
			continue
		}
		f, err := s.From(other.sheets...)
		if err != nil {
			return k, nil, err
		}
		*other.to = f.Run
	}
	if len(found.Skipped) > 0 {
		k.Actual = without(s.Run, found.Skipped)
		notes = append(notes, fmt.Sprintf("no golden has the tokens of forward pass %s: it was not judged", label.Few(found.Skipped)))
	}
	if found.Assumed && !g.Measured {
		notes = append(notes, "causality assumed: a sequence is the beginning of a longer one of the golden, and its rows were judged by that")
	}
	for i, of := range []*path.Sheet{g.Standard[0], s} {
		if who := []string{"golden", "candidate"}[i]; len(of.Left) > 0 {
			notes = append(notes, fmt.Sprintf("left out, for the rows of the %s are not tokens: %s", who, label.Few(of.Left)))
		}
	}
	if g.Alone != nil {
		k, err = Alone(ctx, k, *g.Alone)
	}
	return k, notes, err
}

// without is a run without some of its steps.
func without(r *dump.Run, steps []string) *dump.Run {
	entries := slices.DeleteFunc(slices.Clone(r.Entries), func(e dump.Entry) bool { return slices.Contains(steps, e.Step) })
	out := dump.New(r.Path, r.Info, r.OrderBy, entries)
	out.Notes = r.Notes
	out.Watch(r.Changed)
	return out
}

// Agreement says how the two sides of a case agree, of all cases if it has no name.
func (c *Comparison) Agreement(caseName string) *report.Agreement {
	a := &report.Agreement{Holds: true, BitForBit: true}
	worst := -1.0
	for _, p := range c.Ports {
		if !p.Judged() || !p.Comparable() || p.Unjudged() || caseName != "" && p.Case != caseName {
			continue
		}
		a.Outputs++
		a.Holds = a.Holds && p.Passes()
		a.BitForBit = a.BitForBit && p.Equal()
		if is := p.WorstRow(); is > worst {
			worst, a.Layer, a.Port, a.Step, a.RowRelL2 = is, p.Layer, p.Port, p.Step, report.Float(is)
		}
	}
	return a
}

// Equal reports whether the two sides have the same values, in one type.
func (p *Port) Equal() bool { return p.Golden.DType() == p.Actual.DType() && p.sameValues() }

func (p *Port) sameValues() bool {
	return p.Base.Result.MaxAbs.Value == 0 && p.Base.Result.BadNonFinite == 0
}

// WorstRow is the relative L2 of the worst row; infinite where a NaN or an infinity has no match.
func (p *Port) WorstRow() float64 {
	if p.Base.Result.BadNonFinite > 0 {
		return math.Inf(1)
	}
	return p.Base.Result.WorstRow.RelL2
}

// LeftOut reports whether some rows of the port could not be judged, as they hang on a choice that may come either way.
func (p *Port) LeftOut() bool { return p.Unjudged() && p.tied || slices.Contains(p.skipped, true) }

// OtherTokens is the verdict about runs that were given other tokens, as an error says.
func OtherTokens(err error) *localise.Verdict {
	return (&localise.Verdict{Step: "0"}).OtherPrompt(err.Error())
}

// witness names a sequence that was fed from its first token on, with an empty cache, and agrees in
// all layers: there the candidate is right in one pass. Of a wrong row that was fed so itself, the
// witness has to have a row of the same position, so that what is wrong at some positions in one pass
// is no fault of a path. Of any other, covers says whether one has.
func (c *Comparison) witness(caseName string, along *Along, wrong *report.Row) (text string, covers bool) {
	at := along.Passes[wrong.Pass]
	whole := at.Items[at.Index(wrong.Sequence)].From == 0
	for _, p := range along.Passes {
		for i, item := range p.Items {
			covers = item.To > wrong.Position
			if item.From > 0 || p == at && item.Sequence == wrong.Sequence || !covers && (whole || text != "") || !c.agreesIn(caseName, along, p, i) {
				continue
			}
			text = fmt.Sprintf("forward pass %s has %s with an empty cache, and agrees with the golden", p.Step, item)
			if covers {
				return text, true
			}
		}
	}
	return text, false
}

// agreesIn reports whether the rows of an item agree in all layers of a forward pass.
func (c *Comparison) agreesIn(caseName string, along *Along, pass *path.Pass, item int) bool {
	compared := false
	for _, p := range c.Ports {
		if p.Case != caseName || p.Step != pass.Step || !p.Judged() || !p.Joined() {
			continue
		}
		compared = true
		if p.Passes() {
			continue
		}
		rows, ok := along.rows(p)
		if !ok {
			return false
		}
		limit := max(p.Criteria.Limits().RowRelL2, p.floor().RowRelL2)
		for _, r := range rows {
			if r.item == item && r.relL2 > limit {
				return false
			}
		}
	}
	return compared
}

// fedRow is a row of a port in a forward pass.
type fedRow struct {
	path.Row
	item  int
	relL2 float64 // infinite for integers that differ and what is not finite
}

// rows returns the errors of all rows of a port; false if it is not known which token each belongs
// to.
func (a *Along) rows(p *Port) (rows []fedRow, ok bool) {
	pass := a.Pass(p.Step)
	if pass == nil || !p.Comparable() {
		return nil, false
	}
	shape, axis, of := p.Golden.Shape(), a.golden.Axis(p.Layer, p.Port), pass.Rows
	switch n := len(of); {
	case len(p.skipped) == n && slices.Contains(p.skipped, true): // the others are a matrix
		axis, of = 0, nil
		for i, row := range pass.Rows {
			if !p.skipped[i] {
				of = append(of, row)
			}
		}
	case axis < 0 || axis >= len(shape) || shape[axis] != n: // the last row of each sequence
		axis, of = 0, nil
		for _, item := range pass.Items {
			of = append(of, path.Row{Sequence: item.Sequence, Position: item.To - 1})
		}
	}
	if len(shape) == 0 || shape[axis] != len(of) {
		return nil, false
	}
	for i, row := range of {
		relL2, err := p.off(axis, i)
		if err != nil {
			return nil, false
		}
		rows = append(rows, fedRow{row, pass.Index(row.Sequence), relL2})
	}
	return rows, true
}

// off is the error of one of the rows along an axis.
func (p *Port) off(axis, row int) (float64, error) {
	golden, err := p.Golden.Slice(axis, row, row+1)
	if err != nil {
		return 0, err
	}
	actual, err := p.Actual.Slice(axis, row, row+1)
	if err != nil {
		return 0, err
	}
	r, err := compare.Tensors(golden, actual, compare.Tolerance{})
	if r.Mismatches > 0 && !p.Golden.DType().IsFloat() {
		return math.Inf(1), err
	}
	return worst(r), err
}

// row is the first wrong row of a port, by its sequence and its position there; of a port that is
// wrong in no row by itself, or nil, the worst one or the first of the forward pass.
func (a *Along) row(p *Port, step string) *report.Row {
	pass := a.Pass(step)
	out := &report.Row{Path: a.Name, Pass: a.Index(step)}
	first := pass.Rows[0]
	if known, ok := a.wrong[p]; ok {
		first = known
	} else if p != nil {
		if rows, ok := a.rows(p); ok && len(rows) > 0 {
			worst := slices.MaxFunc(rows, func(x, y fedRow) int { return cmp.Compare(x.relL2, y.relL2) }).relL2
			limit := p.floor().RowRelL2
			wrong := slices.DeleteFunc(rows, func(r fedRow) bool { return r.relL2 <= limit && r.relL2 < worst })
			first = slices.MinFunc(wrong, func(x, y fedRow) int { return x.Row.Compare(y.Row) }).Row
		}
	}
	out.Sequence, out.Position = first.Sequence, first.Position
	return out
}

// holdsTokens reports whether a port holds the ids of the tokens that were fed.
func (a *Along) holdsTokens(p *Port) bool {
	pass := a.Pass(p.Step)
	if p.Golden.DType().IsFloat() || p.Golden.Len() != len(pass.Rows) {
		return false
	}
	for i, row := range pass.Rows {
		if int(p.Golden.At(i)) != a.Tokens[row.Sequence][row.Position] {
			return false
		}
	}
	return true
}

func (c *Comparison) caseOf(name string) *Case {
	for i := range c.Cases {
		if c.Cases[i].Name == name {
			return &c.Cases[i]
		}
	}
	return nil
}

// RowOf is the first wrong row of a port of a run along an execution path; nil for a run that is
// along none, and for a forward pass that was not judged.
func (c *Comparison) RowOf(p *Port) *report.Row { return c.firstRow(p.Case, p.Step, p) }

func (c *Comparison) firstRow(caseName, step string, p *Port) *report.Row {
	if k := c.caseOf(caseName); k != nil && k.Along != nil && k.Along.Pass(step) != nil {
		return k.Along.row(p, step)
	}
	return nil
}
