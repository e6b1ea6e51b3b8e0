// Package diagnose says what wrong numbers show by themselves, once localise has said where: a factor,
// another order of the elements, zeros in some rows, the rounding of a narrow type, the tensor of
// another layer. What is an edit of the reference's program is in package edit.
//
// A hypothesis predicts, from recorded tensors (and weights and config where they are given), what
// the candidate would have computed if one particular mistake had been made. It is proven when it
// fits the candidate as well as clean layers fit, and far better than the golden does:
//
//	fit        = ‖c − p‖ / ‖p‖   candidate c, prediction p
//	fit_golden = ‖c − g‖ / ‖g‖   golden g
//	proven     ⇔ c agrees with p within the port's noise floor, tensor and worst row,
//	             and fit ≤ fit_golden / margin
//
// At most one cause is proven at a place: of several that fit alike, the one with the fewest
// numbers taken from the candidate. A hypothesis that takes numbers from the candidate (a scale, a
// shift) says how many. What cannot be predicted is a guess, and is marked as one.
//
// A new one is a function beside its like, and a line in the catalogue:
//
//	// negated is a tensor with the other sign.
//	func negated(s *Scene) []prediction {
//		return []prediction{s.says("value/sign", vec.Scaled(s.right, -1), 0, 0, "the sign is wrong: −x")}
//	}
package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/localise"
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
	fits = fits && 2*r.N >= len(s.actual) // half of the rows
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
	t, _ := tensor.Of(x, len(x)/s.width, s.width)
	return t
}

// cause is one kind of mistake, or several that are looked for together.
type cause struct {
	ids     []string // that it finds
	kinds   []string // of verdicts in which it is looked for; nil for errors of a layer
	numbers bool     // it needs floats on both sides
	finds   hypothesis
}

const layer = "" // an error of a layer

// catalogue has all causes that wrong numbers show by themselves, in the order in which they are tried: the cheap
// and likely ones first. docs/causes.md has a row for each.
var catalogue = []cause{
	{[]string{"input/tokens", "input/mask", "embedding/position", "embedding/type", "rope/offset", "image/normalise",
		"image/channels", "image/layout"}, []string{localise.KindInput, layer}, false, asked},
	{[]string{"interaction"}, []string{localise.KindInteraction}, false, interaction},
	{[]string{"drift"}, []string{localise.KindDrift}, false, drift},
	{[]string{"capture/neighbour", "capture/normed"}, []string{localise.KindCapture}, true, neighbour},
	{[]string{"state/stale", "capture/same-file", "capture/wrong-tensor"}, []string{localise.KindCapture, layer}, true, elsewhere},

	{[]string{"value/constant", "value/sign", "value/scale", "value/offset", "embedding/scale", "embedding/type"}, nil, true, values},
	{[]string{"nan/first"}, nil, true, nan},
	{[]string{"dtype/overflow"}, nil, true, overflow},
	{[]string{"dropout"}, nil, true, dropout},

	{[]string{"output/last-token"}, nil, true, lastToken},
	{[]string{"embedding/index", "embedding/position", "embedding/type"}, nil, true, embedding},
	{[]string{"layout/shifted", "layout/transposed", "layout/strided", "layout/permuted", "embedding/position", "linear/qkv-order",
		"linear/gate-up", "modulation/order"}, nil, true, layout},
	{[]string{"dtype/downcast"}, nil, true, downcast},
	{[]string{"rows/from", "rows/set", "columns/set", "head/one"}, nil, true, wrongPlaces},
}

// hypotheses lists those for a scene. A kind that is a cause by itself has only those that say so with numbers:
// what looks like another one there follows from it.
func hypotheses(s *Scene) (out []hypothesis) {
	kind := s.Kind
	if !slices.Contains([]string{localise.KindInput, localise.KindInteraction, localise.KindDrift, localise.KindCapture}, kind) {
		kind = layer
	}
	for _, c := range catalogue {
		if (c.kinds == nil && kind == layer || slices.Contains(c.kinds, kind)) && (!c.numbers || s.golden != nil && s.Target.IsFloat()) {
			out = append(out, c.finds)
		}
	}
	return out
}

// IDs lists the ids of all causes.
func IDs() []string {
	// The first is found by what judges the runs of one prompt, internal/judge; text needs no tensors.
	ids := append([]string{"state/nondeterministic"}, textIDs()...)
	for _, c := range catalogue {
		ids = append(ids, c.ids...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Cause is a judged prediction.
type Cause struct {
	ID, Layer, Text string
	Proven          bool
	Fit, FitGolden  float64 // relative L2 of the candidate against prediction and golden; Fit is NaN for a guess
	// Next is the id of the prediction that fits best of those with another one, and NextFit how well, of
	// the first cause if that is a prediction and not proven; else "".
	Next         string
	NextFit      float64
	params, rank int
	close        bool // fits far better than the golden
}

func (c Cause) isGuess() bool { return math.IsNaN(c.Fit) }

// The classes of causes, which come before their fits.
const (
	isProven = iota
	isClose  // fits far better than the golden
	isSure   // a guess that is sure of what it says
	isLoose  // fits better than the golden
	isGuess
)

func (c Cause) class() int {
	switch {
	case c.Proven:
		return isProven
	case c.isGuess() && c.rank < 0:
		return isSure
	case c.isGuess():
		return isGuess
	case c.close:
		return isClose
	}
	return isLoose
}

// rank puts the best first and leaves at most one proven cause: others that fit as well say the
// same with less. others are the predictions that fit too little to be shown.
func rank(causes, others []Cause, floor float64) (out []Cause) {
	slices.SortStableFunc(causes, func(a, b Cause) int {
		if c := cmp.Compare(a.class(), b.class()); c != 0 || !a.isGuess() {
			return cmp.Or(c, cmp.Compare(a.Fit, b.Fit))
		}
		return cmp.Compare(a.rank, b.rank)
	})
	if len(causes) > 0 && !causes[0].isGuess() {
		// Those that fit about as well as the best: fewest fitted numbers first.
		best := causes[0]
		limit := alike * max(best.Fit, floor*belowFloor)
		n := 1
		for n < len(causes) && causes[n].class() == best.class() && causes[n].Fit <= limit {
			n++
		}
		slices.SortStableFunc(causes[:n], func(a, b Cause) int {
			return cmp.Or(cmp.Compare(a.params, b.params), cmp.Compare(a.rank, b.rank), cmp.Compare(a.Fit, b.Fit))
		})
	}
	others = append(slices.Clone(causes), others...)
	seen, loose := map[string]bool{}, 0
	for _, c := range decided(causes, others) {
		if len(out) == shown || len(out) > 0 && out[0].Proven && c.class() > isClose {
			break // no one needs guesses beside a proof
		}
		if seen[c.ID] || c.class() == isLoose && loose == shownLoose {
			continue
		}
		if c.class() == isLoose {
			loose++
		}
		seen[c.ID] = true
		c.Proven = c.Proven && len(out) == 0
		out = append(out, c)
	}
	if len(out) > 0 && !out[0].Proven && !out[0].isGuess() {
		if next := nextTo(out[0], others); next != nil {
			out[0].Next, out[0].NextFit = next.ID, next.Fit
		}
	}
	return out
}

// nextTo returns the best prediction of another id than a cause's; nil if there is none.
func nextTo(c Cause, others []Cause) (next *Cause) {
	for i, o := range others {
		if o.ID != c.ID && !o.isGuess() && (next == nil || o.Fit < next.Fit) {
			next = &others[i]
		}
	}
	return next
}

// decided leaves out causes that fit but loosely if the best of them is not clearly nearer than any
// other prediction: two that explain an error alike explain nothing.
func decided(causes, others []Cause) []Cause {
	isLoosely := func(c Cause) bool { return c.class() == isLoose }
	at := slices.IndexFunc(causes, isLoosely)
	if at < 0 {
		return causes
	}
	if next := nextTo(causes[at], others); next != nil && next.Fit < apart*causes[at].Fit {
		return slices.DeleteFunc(causes, isLoosely)
	}
	return causes
}
