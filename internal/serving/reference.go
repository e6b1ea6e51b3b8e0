package serving

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/tie"
	"github.com/goparity/goparity/tensor"
)

// Reference is what the reference says of one sequence of a case.
type Reference struct {
	Case   string
	Ask    Ask    // as the case is written, for as many tokens as there are
	Prompt []int  // token ids; nil if they are not known
	Tokens []int  // the reference's choices, in greedy order
	Rows   []Row  // the logits by which it chose each; nil where the golden has none
	Text   string // of the tokens, and maybe of more that follow; empty if it is not known
}

// from returns the reference of what follows the first k tokens, asked as ids.
func (r *Reference) from(k int) *Reference {
	out := &Reference{Case: r.Case, Prompt: append(r.Prompt[:len(r.Prompt):len(r.Prompt)], r.Tokens[:k]...), Tokens: r.Tokens[k:]}
	if r.Rows != nil {
		out.Rows = r.Rows[k:]
	}
	out.Ask = Ask{As: AsIDs, IDs: out.Prompt, Tokens: len(out.Tokens)}
	return out
}

// Row has the logits of one position.
type Row struct {
	logits []float32 // by token id
	lse    float64   // log-sum-exp of all
	noise  float64   // of the difference of two of them
	shift  float64   // of a log-probability
}

// NewRow returns a row of logits, by token id, of a model that is served in type d. The noise of the
// difference of two is that of [tie.Noise], with their standard deviation as the spread. A log-probability
// is judged by what passes in tensors, not by the noise floor, and has the rounding of the sum over all. It
// may be off by
//
//	2 · compare.Default(d)[RowRelL2] · root mean square of the logits
//
// or the noise, if that is more. MAX serves SmolLM2 in float32 with log-probabilities that are off by
// 2.1e-4, where this is 8e-4. November 2026.
func NewRow(logits []float64, d tensor.DType) Row {
	r := Row{logits: make([]float32, len(logits)), lse: floats.LogSumExp(logits)}
	known := make([]float64, 0, len(logits))
	for i, x := range logits {
		r.logits[i] = float32(x)
		if !math.IsInf(x, 0) {
			known = append(known, x)
		}
	}
	if len(known) > 0 {
		square := floats.Dot(known, known) / float64(len(known))
		r.noise = tie.Noise(d, stat.PopStdDev(known, nil), max(math.Abs(floats.Max(known)), math.Abs(floats.Min(known))))
		r.shift = max(r.noise, 2*compare.Default(d)[compare.RowRelL2]*math.Sqrt(square))
	}
	return r
}

// Best is the token with the largest logit, the first of equal ones.
func (r Row) Best() int {
	best := 0
	for id, x := range r.logits {
		if x > r.logits[best] {
			best = id
		}
	}
	return best
}

// Logit is that of a token; ok is false for one that is not in the row.
func (r Row) Logit(id int) (logit float64, ok bool) {
	if id < 0 || id >= len(r.logits) {
		return 0, false
	}
	return float64(r.logits[id]), true
}

// LogProb is the logarithm of the probability of a token.
func (r Row) LogProb(id int) (p float64, ok bool) {
	x, ok := r.Logit(id)
	return x - r.lse, ok
}
