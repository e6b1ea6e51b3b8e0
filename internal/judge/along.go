package judge

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
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
	for _, side := range []struct {
		who string
		of  *path.Sheet
	}{{"golden", g.Standard[0]}, {"candidate", s}} {
		if left := side.of.Left; len(left) > 0 {
			notes = append(notes, fmt.Sprintf("left out, for the rows of the %s are not tokens: %s", side.who, label.Few(left)))
		}
	}
	if g.Alone != nil {
		k, err = Alone(ctx, k, *g.Alone)
	}
	return k, notes, err
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
