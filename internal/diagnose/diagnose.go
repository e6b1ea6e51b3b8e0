package diagnose

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// hypothesis is one mistake, or a family of them: what the candidate's tensor at the target would be
// if it had been made. It must not panic on tensors of any shape.
type hypothesis func(s *Scene) []prediction

// prediction is what a candidate with one mistake would have computed.
type prediction struct {
	id   string // of the cause: "activation/quick-gelu"
	text string // what the candidate does: "quick GELU, x·σ(1.702·x), in place of GELU"
	// value is the candidate's tensor in the rows that are looked at; nil for a guess: a pattern that
	// names a cause and predicts no numbers. A NaN predicts a NaN.
	value []float64
	// params is how many numbers were taken from the candidate to make the prediction: 1 for a
	// scale that was fitted. A whole shift or the choice among a few known variants costs nothing.
	params int
	// known marks the rows that are predicted; nil for all. At least half must be for a proof.
	known []bool
	// rank orders guesses, and predictions that fit alike with as many params: the smaller first. 0
	// is usual. A guess below 0 is sure of what it says, and comes before predictions that fit but
	// loosely.
	rank int
}

// Diagnose looks for the cause at one place, until ctx ends. The causes come best first; the first
// may be proven.
func Diagnose(ctx context.Context, s *Scene) []Cause {
	var causes []Cause
	s.begin(ctx)
	for _, h := range hypotheses(s) {
		if !s.late() {
			causes = append(causes, s.try(h)...)
		}
	}
	floor := compare.Limits{}
	if s.Target != nil {
		floor = s.Target.Floor
	}
	if made := s.read(s.Made); s.golden != nil && made != nil && s.off(made, s.actual, nil).Agrees(floor) { // it is what the candidate's inputs make
		for i := range causes {
			causes[i].Proven = false
		}
	}
	return rank(causes, s.unshown, floor.RelL2)
}

// try judges the predictions of one hypothesis. One that panics predicts nothing: it must not take
// the report with it, nor must a file that was truncated under a mapped tensor.
func (s *Scene) try(h hypothesis) (causes []Cause) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil && s.Failed != nil {
			s.Failed(fmt.Errorf("a hypothesis failed: %v", e))
		}
	}()
	for _, p := range h(s) {
		switch c, ok := s.judge(p); {
		case ok:
			causes = append(causes, c)
		case !c.isGuess():
			s.unshown = append(s.unshown, c)
		}
	}
	return causes
}

// judge measures a prediction. One that is not at least twice as near to the candidate as the
// golden is no cause.
func (s *Scene) judge(p prediction) (c Cause, ok bool) {
	c = Cause{ID: p.id, Layer: s.Layer, Text: p.text, Fit: math.NaN(), FitGolden: math.NaN(), params: p.params, rank: p.rank}
	if s.golden == nil {
		return c, p.value == nil && !s.Open
	}
	base, floor := s.off(s.golden, s.actual, p.known), s.Target.Floor
	c.FitGolden = base.RelL2
	if p.value == nil {
		return c, !s.Open
	}
	r := s.off(p.value, s.actual, p.known)
	if len(p.value) != len(s.actual) || r.N == 0 || r.BadNonFinite > 0 {
		return c, false
	}
	was := base.RelL2
	if base.BadNonFinite > 0 {
		was = math.Inf(1)
	}
	c.Fit = r.RelL2
	c.close = c.Fit <= was/margin
	fits := r.Agrees(floor) && !base.Agrees(floor) && c.close && r.N >= PerParam*p.params
	fits = fits && (p.known == nil || 2*marked(p.known) >= len(s.rows))
	if s.Open {
		return c, fits
	}
	c.Proven = fits
	ok = c.Fit < was/loosely
	if ok && !c.Proven && !c.close && p.params > 0 {
		ok = !s.refutes(p)
	}
	return c, ok
}

// refutes reports whether a prediction with fitted numbers makes a row or a column wrong that the
// candidate has right: numbers that are fitted to the others come nearer to any error. Without such
// numbers it may be the right mistake, less its edges.
func (s *Scene) refutes(p prediction) bool {
	lines := func(x []float64) (d compare.Detail) {
		if a, b := s.tensor(x, p.known), s.tensor(s.actual, p.known); a != nil {
			d, _ = compare.Explain(a, b, compare.Tolerance{})
		}
		return d
	}
	limit := s.Target.Floor.RowRelL2
	worse := func(was, is []compare.Line) bool {
		for i, l := range was {
			if i < len(is) && l.RelL2 <= limit && l.BadNonFinite == 0 && is[i].RelL2 > margin*limit {
				return true
			}
		}
		return false
	}
	was, is := lines(s.golden), lines(p.value)
	return worse(was.Rows, is.Rows) || worse(was.Columns, is.Columns)
}

// off compares numbers in the known rows, nil for all. A NaN on both sides is no error of the candidate's.
func (s *Scene) off(x, actual []float64, known []bool) (r compare.Result) {
	if a, b := s.tensor(x, known), s.tensor(actual, known); a != nil && b != nil {
		r, _ = compare.Tensors(a, b, compare.Tolerance{EqualNaN: true})
	}
	return r
}

// tensor is the known rows of those that are looked at; nil for none.
func (s *Scene) tensor(x []float64, known []bool) *tensor.Tensor {
	if known != nil {
		var some []float64
		for i, is := range known {
			if is {
				some = append(some, s.row(x, i)...)
			}
		}
		x = some
	}
	if len(x) == 0 || len(x)%s.width != 0 {
		return nil
	}
	t, err := tensor.Of(x, len(x)/s.width, s.width)
	if err != nil {
		return nil
	}
	return t
}

func marked(rows []bool) (n int) {
	for _, r := range rows {
		if r {
			n++
		}
	}
	return n
}

// allSame reports whether all numbers are one.
func allSame(x []float64) bool {
	return vec.All(x, func(v float64) bool { return v == x[0] })
}
