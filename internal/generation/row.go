package generation

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Row is what is known of the logits of one position.
type Row struct {
	Top    []Logit // the largest, the largest first; of equal ones the lower token
	LSE    float64 // log Σ exp over all of them, that a mask hides none of
	All    float64 // the same over those, too, of tokens that the tokenizer does not have: see [Row.Of]
	Spread float64 // their standard deviation, in nats
	Beyond bool    // the largest of all is that of a token that the tokenizer does not have: see [Row.Of]

	all []float64 // by token; nil where only the largest are known
	bad int       // NaN and +Inf
}

// Logit is the logit of a token.
type Logit struct {
	Token int
	Value float64
}

// NewRow reads the logits of all tokens. −Inf, and what is as low as an attention mask, hides a
// token; NaN and +Inf are counted, see [Row.Bad].
func NewRow(logits []float64) Row {
	r := Row{all: logits, LSE: math.Inf(-1)}
	shown := make([]float64, 0, len(logits))
	for i, x := range logits {
		switch {
		case math.IsNaN(x) || math.IsInf(x, 1):
			r.bad++
		case !vec.Denied(x):
			shown = append(shown, x)
			r.Top = keepLargest(r.Top, Logit{i, x}, Kept, func(l Logit) float64 { return l.Value })
		}
	}
	if len(shown) > 0 {
		r.LSE, r.Spread = floats.LogSumExp(shown), stat.PopStdDev(shown, nil)
	}
	r.All = r.LSE
	return r
}

// Of is the row of the first known tokens, by which an engine chooses. What it returns of probabilities is
// over these, but for All, by which servers tell them.
func (r Row) Of(known int) Row {
	if known <= 0 || known >= len(r.all) {
		return r
	}
	out := NewRow(r.all[:known])
	out.All = r.All
	out.Beyond = len(r.Top) > 0 && r.Top[0].Token >= known
	return out
}

// Largest makes a row of which only the largest logits are known, in any order. lse may be NaN: then
// they are log-probabilities. spread may be 0: then half of the range of the logits stands for it,
// which of 64 is 0.9 to 1.3 times the standard deviation of all.
func Largest(top []Logit, lse, spread float64) Row {
	r := Row{LSE: lse, All: lse, Spread: spread}
	for _, l := range top {
		if math.IsNaN(l.Value) || math.IsInf(l.Value, 1) {
			r.bad++
		} else if !vec.Denied(l.Value) {
			r.Top = append(r.Top, l)
		}
	}
	slices.SortStableFunc(r.Top, func(a, b Logit) int { return cmp.Or(cmp.Compare(b.Value, a.Value), a.Token-b.Token) })
	if math.IsNaN(lse) {
		r.LSE, r.All = 0, 0
	}
	if n := len(r.Top); spread == 0 && n > 1 {
		r.Spread = (r.Top[0].Value - r.Top[n-1].Value) / 2
	}
	return r
}

// Bad counts the logits that are NaN or +Inf.
func (r Row) Bad() int { return r.bad }

// decides reports whether one of the logits may be the largest.
func (r Row) decides() bool { return r.bad == 0 && len(r.Top) > 0 }

// Whole reports whether the logits of all tokens are known.
func (r Row) Whole() bool { return r.all != nil }

// Logit returns the logit of a token; false where it is not known.
func (r Row) Logit(token int) (float64, bool) {
	if r.all != nil {
		if token < 0 || token >= len(r.all) {
			return math.Inf(-1), false
		}
		return r.all[token], true
	}
	for _, l := range r.Top {
		if l.Token == token {
			return l.Value, true
		}
	}
	return math.Inf(-1), false
}

// LogProb returns the log-probability of a token, in nats; −Inf where its logit is not known.
func (r Row) LogProb(token int) float64 {
	x, _ := r.Logit(token)
	return x - r.LSE
}

// Gap is by how much the largest logit exceeds the second; +Inf of a row with one.
func (r Row) Gap() float64 {
	if len(r.Top) < 2 {
		return math.Inf(1)
	}
	return r.Top[0].Value - r.Top[1].Value
}

// Constant reports whether all logits are equal: such a row chooses no token.
func (r Row) Constant() bool {
	n := len(r.Top)
	return n > 1 && r.Top[0].Value == r.Top[n-1].Value &&
		!slices.ContainsFunc(r.all, func(x float64) bool { return finite(x) && x != r.Top[0].Value })
}

// Noise is by how much the difference of two logits of the row may err in an encoding: see [Noise].
func (r Row) Noise(d tensor.DType, a, b float64) float64 {
	return Noise(d, r.Spread, max(math.Abs(a), math.Abs(b)))
}

// Known are the logits that are known, by token.
func (r Row) Known() iter.Seq2[int, float64] {
	if r.all != nil {
		return slices.All(r.all)
	}
	return func(yield func(int, float64) bool) {
		for _, l := range r.Top {
			if !yield(l.Token, l.Value) {
				return
			}
		}
	}
}

// rank is how many tokens are known to have a larger logit.
func (r Row) rank(token int) (n int) {
	x, _ := r.Logit(token)
	for _, y := range r.Known() {
		if y > x {
			n++
		}
	}
	return n
}

// keepLargest adds x to the n that are largest, in order: of equal ones the first.
func keepLargest[T any](list []T, x T, n int, size func(T) float64) []T {
	if len(list) == n && (n == 0 || size(x) <= size(list[n-1])) {
		return list
	}
	at := sort.Search(len(list), func(i int) bool { return size(list[i]) < size(x) })
	return slices.Insert(list, at, x)[:min(len(list)+1, n)]
}

// finite reports whether a logit is a number, of a token that is not hidden.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) && !vec.Denied(x) }

// Noise is by how much the difference of two scores of a row may err in an encoding: the noise floor of
// a row times the spread of its scores, but no less than one rounding of each of the two, of which
// largest is the larger one's size.
//
//	max(floor·spread, 2·ε·largest)
func Noise(d tensor.DType, spread, largest float64) float64 {
	return max(compare.Floor(d).RowRelL2*spread, 2*d.Epsilon()*largest)
}

// WithinNoise reports whether a choice between two scores may come either way, a tie. What follows from
// the choice is another text altogether, which no tolerance is made for: the reference's gap between them is
// within the noise of their difference, and the candidate's own gap differs from it by no more than that.
// own is NaN where the candidate does not tell it.
func WithinNoise(gap, own, noise float64) bool {
	return math.Abs(gap) <= noise && !(math.Abs(own-gap) > noise)
}
