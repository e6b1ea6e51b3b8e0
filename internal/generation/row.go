package generation

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/mask"
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
	r := Row{all: logits}
	most, n, sum := math.Inf(-1), 0, 0.0
	for i, x := range logits {
		switch {
		case math.IsNaN(x) || math.IsInf(x, 1):
			r.bad++
		case !mask.Denies(x):
			most = max(most, x)
			sum += x
			n++
			r.Top = insert(r.Top, Logit{i, x})
		}
	}
	mean, squares, exps := sum/float64(max(n, 1)), 0.0, 0.0
	for _, x := range logits {
		if finite(x) {
			squares += (x - mean) * (x - mean)
			exps += math.Exp(x - most)
		}
	}
	r.LSE, r.Spread = most+math.Log(exps), math.Sqrt(squares/float64(max(n, 1)))
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
		} else if !mask.Denies(l.Value) {
			r.Top = append(r.Top, l)
		}
	}
	slices.SortStableFunc(r.Top, order)
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

// insert keeps the largest logits in order. It is called for tokens in their order.
func insert(top []Logit, l Logit) []Logit {
	if n := len(top); n == Kept && l.Value <= top[n-1].Value {
		return top
	}
	at, _ := slices.BinarySearchFunc(top, l, func(x, y Logit) int {
		if x.Value >= y.Value {
			return -1
		}
		return 1
	})
	top = slices.Insert(top, at, l)
	return top[:min(len(top), Kept)]
}

func order(a, b Logit) int { return cmp.Or(cmp.Compare(b.Value, a.Value), a.Token-b.Token) }

// finite reports whether a logit is a number, of a token that is not hidden.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) && !mask.Denies(x) }
