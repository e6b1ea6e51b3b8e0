package serving

import (
	"maps"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
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

	Mistakes []dump.Mistake // what the reference makes of the prompt or the messages with a mistake
}

// from returns the reference of n tokens, or as many as there are, after the first k, asked as ids.
func (r *Reference) from(k, n int) *Reference {
	n = min(n, len(r.Tokens)-k)
	out := &Reference{Case: r.Case, Prompt: slices.Concat(r.Prompt, r.Tokens[:k]), Tokens: r.Tokens[k : k+n]}
	if r.Rows != nil {
		out.Rows = r.Rows[min(k, len(r.Rows)):min(k+n, len(r.Rows))]
	}
	out.Ask = Ask{As: AsIDs, IDs: out.Prompt, Tokens: n}
	return out
}

// first returns the reference of the first n tokens.
func (r *Reference) first(n int) *Reference {
	out := *r
	out.Tokens, out.Rows, out.Ask.Tokens = r.Tokens[:n], r.Rows[:min(n, len(r.Rows))], n
	return &out
}

// with returns the reference, asked with other keys of the request.
func (r *Reference) with(keys map[string]any) *Reference {
	out := *r
	out.Ask.extra = map[string]any{}
	maps.Copy(out.Ask.extra, r.Ask.extra)
	maps.Copy(out.Ask.extra, keys)
	return &out
}

// Row has the logits of one position: all of them, or the largest.
type Row struct {
	generation.Row
	noise float64 // of the difference of two of them
	shift float64 // of a log-probability
}

// NewRow returns a row of a model that is served in type d. The noise of the difference of two logits is
// that of [generation.Noise]. A log-probability is judged by what passes in tensors, not by the noise floor, and
// has the rounding of the sum over all. It may be off by
//
//	2 · compare.Default(d)[RowRelL2] · standard deviation of the logits
//
// or the noise, if that is more. MAX serves SmolLM2 in float32 with log-probabilities that are off by
// 2.1e-4, where this is 6e-4. November 2026.
func NewRow(of generation.Row, d tensor.DType) Row {
	r := Row{Row: of}
	if n := len(of.Top); n > 0 {
		r.noise = of.Noise(d, of.Top[0].Value, of.Top[n-1].Value)
		r.shift = max(r.noise, 2*compare.Default(d)[compare.RowRelL2]*of.Spread)
	}
	return r
}

// Best is the token with the largest logit, the first of equal ones; −1 of a row without any.
func (r Row) Best() int {
	if len(r.Top) == 0 {
		return -1
	}
	return r.Top[0].Token
}

// LogProb is the logarithm of the probability of a token among all; ok is false where its logit is not
// known.
func (r Row) LogProb(id int) (p float64, ok bool) {
	x, ok := r.Logit(id)
	return x - r.All, ok
}

// tied reports whether a server may choose a token where the reference chose another, its best. own is
// by how much the server has that one ahead, NaN where it does not say so, and rounding that of it.
func (r Row) tied(best, choice int, own, rounding float64) bool {
	b, ok := r.Logit(best)
	c, known := r.Logit(choice)
	return ok && known && generation.WithinNoise(b-c, own, r.noise+rounding)
}
