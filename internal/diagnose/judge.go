package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/tensor"
)

// Cause is a judged prediction.
type Cause struct {
	ID, Layer, Text string
	Proven          bool
	Fit, FitGolden  float64 // relative L2 of the candidate against the prediction, and against the golden; Fit is NaN for a guess
	params, rank    int
	close           bool // fits far better than the golden
}

// The proof of a prediction.
const (
	// margin is how much better than the golden a proven prediction fits, at least.
	margin = 8
	// alike is the ratio up to which two fits say the same.
	alike = 3
	// perParam is how many elements a fitted number needs to be believed.
	perParam = 32
	// shown is how many causes of a place are kept, and shownLoose how many of them may fit but loosely.
	shown, shownLoose = 5, 2
)

// Options of Diagnose.
type Options struct {
	Budget time.Duration // for all places together; 0 for no limit
	Extra  []Hypothesis  // of the user, tried first
}

// Diagnose looks for the cause at one place. The causes come best first; the first may be proven.
func Diagnose(ctx context.Context, s *Scene, hypotheses []Hypothesis, opt Options) []Cause {
	if opt.Budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opt.Budget)
		defer cancel()
	}
	var causes []Cause
	s.ctx = ctx
	for _, h := range opt.Extra {
		if !s.Late() {
			causes = append(causes, s.tryExtra(h)...)
		}
	}
	for _, h := range hypotheses {
		if s.Late() {
			break
		}
		causes = append(causes, s.try(h)...)
	}
	floor := compare.Limits{}
	if s.Target != nil {
		floor = s.Target.Floor
	}
	return rank(causes, floor.RelL2)
}

// try judges the predictions of one hypothesis. One that panics predicts nothing: it must not take the report with it, nor must a file that was
// truncated under a mapped tensor.
func (s *Scene) try(h Hypothesis) (causes []Cause) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil && s.Failed != nil {
			s.Failed(fmt.Errorf("a hypothesis failed: %v", e))
		}
	}()
	for _, p := range h.Predict(s) {
		if c, ok := s.judge(p); ok {
			causes = append(causes, c)
		}
	}
	return causes
}

// judge gives the fits of a prediction. A prediction that is not at least twice as near to the candidate as the golden is no cause.
func (s *Scene) judge(p Prediction) (Cause, bool) {
	c := Cause{ID: p.ID, Layer: cmp.Or(p.Layer, s.Layer), Text: p.Text, params: p.Params, rank: p.Rank, Fit: math.NaN(), FitGolden: math.NaN()}
	t := s.Target
	if t == nil || t.Actual == nil {
		return c, p.Value == nil
	}
	golden, actual := t.Golden, t.Actual
	rows := predicted(t, p)
	if rows != nil {
		golden, actual = selectRows(golden, rows), selectRows(actual, rows)
	}
	whole := enough(rows, s.Sample())
	if golden == nil || actual == nil {
		return c, false
	}
	// A NaN on both sides is no error of the candidate's.
	base, err := compare.Tensors(golden, actual, compare.Tolerance{EqualNaN: true})
	if err != nil {
		return c, false
	}
	c.FitGolden = base.RelL2
	if p.Value == nil {
		return c, true
	}
	value := p.tensor(t, rows)
	if value == nil {
		return c, false
	}
	r, err := compare.Tensors(value, actual, compare.Tolerance{EqualNaN: true})
	if err != nil || r.BadNonFinite > 0 {
		return c, false
	}
	c.Fit = r.RelL2
	c.Proven = whole && proves(r, base, t.Floor) && r.N >= perParam*p.Params
	c.close = c.Fit <= distance(base)/margin
	return c, c.Fit < distance(base)/2
}

// proves is the rule: made is the candidate against a prediction, base against the golden, from which it must differ.
func proves(made, base compare.Result, floor compare.Limits) bool {
	return made.Agrees(floor) && !base.Agrees(floor) && made.RelL2 <= distance(base)/margin
}

// distance is how far the golden is from the candidate: infinitely where one of them has numbers that are not finite.
func distance(base compare.Result) float64 {
	if base.BadNonFinite > 0 {
		return math.Inf(1)
	}
	return base.RelL2
}

// tensor is the predicted value at the rows that count; nil if the hypothesis made something of another size.
func (p Prediction) tensor(t *Port, rows []bool) *tensor.Tensor {
	w := max(t.Golden.RowLen(), 1)
	if n := marked(p.Rows); p.Rows != nil && len(p.Value.Data) == n*w && n < t.Golden.Len()/w {
		value, err := tensor.Of(p.Value.Data, n, w)
		if err != nil {
			return nil
		}
		// Of the predicted rows those that are not padding.
		keep := make([]bool, 0, n)
		for i, is := range p.Rows {
			if is {
				keep = append(keep, rows[i])
			}
		}
		return selectRows(value, keep)
	}
	if len(p.Value.Data) != t.Golden.Len() {
		return nil
	}
	value, err := tensor.Of(p.Value.Data, t.Golden.Shape()...)
	if err != nil {
		return nil
	}
	if rows != nil {
		value = selectRows(value, rows)
	}
	return value
}

// enough reports whether at least half of the sampled rows are predicted, or half of all.
func enough(rows, sample []bool) bool {
	if rows == nil {
		return true
	}
	of := len(rows)
	if sample != nil {
		of = marked(sample)
	}
	return 2*marked(rows) >= of
}

func marked(rows []bool) (n int) {
	for _, r := range rows {
		if r {
			n++
		}
	}
	return n
}

// predicted marks the rows that count: those of the prediction that are not padding. nil is all.
func predicted(t *Port, p Prediction) []bool {
	if p.Rows == nil && t.PadRows == nil {
		return nil
	}
	rows := make([]bool, t.Golden.Len()/max(t.Golden.RowLen(), 1))
	for i := range rows {
		rows[i] = (p.Rows == nil || i < len(p.Rows) && p.Rows[i]) && (t.PadRows == nil || i < len(t.PadRows) && !t.PadRows[i])
	}
	return rows
}

// selectRows gives the marked rows as a tensor of two axes; nil if there are none.
func selectRows(t *tensor.Tensor, rows []bool) *tensor.Tensor {
	w := max(t.RowLen(), 1)
	flat, err := t.Reshape(t.Len()/w, w)
	if err != nil {
		return nil
	}
	if flat, err = flat.SelectRows(rows); err != nil || flat.Len() == 0 {
		return nil
	}
	return flat
}

// rank puts the best first and leaves at most one proven cause: others that fit as well say the same with less.
func rank(causes []Cause, floor float64) []Cause {
	slices.SortStableFunc(causes, func(a, b Cause) int {
		if ca, cb := a.class(), b.class(); ca != cb {
			return ca - cb
		}
		if math.IsNaN(a.Fit) {
			return cmp.Compare(a.rank, b.rank)
		}
		return cmp.Compare(a.Fit, b.Fit)
	})
	if len(causes) > 0 && !math.IsNaN(causes[0].Fit) {
		// Those that fit about as well as the best: fewest fitted numbers first.
		best := causes[0]
		limit := alike * max(best.Fit, floor/10)
		n := 1
		for n < len(causes) && causes[n].class() == best.class() && causes[n].Fit <= limit {
			n++
		}
		slices.SortStableFunc(causes[:n], func(a, b Cause) int {
			return cmp.Or(cmp.Compare(a.params, b.params), cmp.Compare(a.rank, b.rank), cmp.Compare(a.Fit, b.Fit))
		})
	}
	var out []Cause
	seen, loosely := map[string]bool{}, 0
	for _, c := range causes {
		if seen[c.ID] {
			continue
		}
		if len(out) > 0 && out[0].Proven && c.class() > 1 {
			break // nobody needs guesses beside a proof
		}
		if c.class() == 3 {
			if loosely++; loosely > shownLoose {
				continue
			}
		}
		seen[c.ID] = true
		c.Proven = c.Proven && len(out) == 0
		if out = append(out, c); len(out) == shown {
			break
		}
	}
	return out
}

// class orders causes before their fits do: proven ones, those that fit far better than the golden, guesses that are sure, loose fits, guesses.
func (c Cause) class() int {
	guess := math.IsNaN(c.Fit)
	switch {
	case c.Proven:
		return 0
	case !guess && c.close:
		return 1
	case guess && c.rank < 0:
		return 2
	case !guess:
		return 3
	}
	return 4
}

// String quotes both fits.
func (c Cause) String() string {
	switch {
	case math.IsNaN(c.Fit):
		return fmt.Sprintf("%s: %s (a guess: no numbers prove it)", c.ID, c.Text)
	case c.Proven:
		return fmt.Sprintf("%s: %s; proven: it fits the candidate to %.1e, the golden to %.1e", c.ID, c.Text, c.Fit, c.FitGolden)
	}
	return fmt.Sprintf("%s: %s; unproven: it fits the candidate to %.1e, the golden to %.1e", c.ID, c.Text, c.Fit, c.FitGolden)
}
