package dump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mask"
	"github.com/goparity/goparity/tensor"
)

// RealTokens returns, for each sequence of a batch, which tokens are real and which are padding
// (false). It takes them from run.json, or else from the attention masks that layers were given. It
// returns nil if neither says anything, or if two masks differ.
//
// Two kinds of inputs are masks: an attention_mask of integers [batch, token], 1 for a real token;
// and what models make of it, [batch, 1, 1 or queries, token], where a token that no query may see
// is padding. A mask of bools may say either what a query may see or what it may not: a query that saw
// others and not its own token is none.
func (r *Run) RealTokens() [][]bool {
	if r.Info.PadMask == nil {
		return r.maskedTokens()
	}
	mask := make([][]bool, len(r.Info.PadMask))
	for i, sequence := range r.Info.PadMask {
		for _, real := range sequence {
			mask[i] = append(mask[i], real != 0)
		}
	}
	return mask
}

func (r *Run) maskedTokens() [][]bool {
	var mask [][]bool
	seen := map[string]bool{} // each layer gets the same mask again: one of each shape is enough
	for _, e := range r.Entries {
		if e.Step != r.Entries[0].Step || !label.IsInput(e.Port) {
			continue
		}
		key := fmt.Sprint(e.Tensor.DType(), e.Tensor.Shape())
		if seen[key] {
			continue
		}
		m := maskOf(e)
		seen[key] = m != nil
		if m == nil || !slices.ContainsFunc(m, func(row []bool) bool { return slices.Contains(row, false) }) {
			continue
		}
		if mask != nil && !slices.EqualFunc(mask, m, slices.Equal) {
			return nil
		}
		mask = m
	}
	return mask
}

// maskOf returns the tokens that some query may see by this input. It returns nil if the input is
// not a mask, or if it hides all tokens of a sequence.
func maskOf(e Entry) [][]bool {
	shape := e.Tensor.Shape()
	allows := func(x float64) (bool, bool) { return x == 1, x == 0 || x == 1 }
	switch whole := !e.Tensor.DType().IsFloat(); {
	case len(shape) == 2 && whole && strings.Contains(e.Port, "attention_mask"):
	case len(shape) == 4 && shape[1] == 1 && whole:
		if m, itself := seen(e.Tensor, allows); itself {
			return m
		}
		allows = func(x float64) (bool, bool) { return x == 0, x == 0 || x == 1 }
	case len(shape) == 4 && shape[1] == 1:
		allows = func(x float64) (bool, bool) { return x == 0, x == 0 || mask.Denies(x) }
	default:
		return nil
	}
	m, _ := seen(e.Tensor, allows)
	return m
}

// seen returns the tokens that some query may see by a mask [batch, token] or [batch, 1, queries, token], and
// whether each of these is seen by its own query, the last one being that of the last token. It returns
// nil for what is no mask, or hides all tokens of a sequence.
func seen(t *tensor.Tensor, allows func(x float64) (allowed, isMask bool)) (_ [][]bool, itself bool) {
	shape, queries := t.Shape(), 1
	if len(shape) == 4 {
		queries = shape[2]
	}
	tokens := shape[len(shape)-1]
	if shape[0] == 0 || tokens < 2 || t.Len() != shape[0]*queries*tokens {
		return nil, true
	}
	itself = true
	mask, keys := make([][]bool, shape[0]), make([]float64, tokens)
	for b := range mask {
		mask[b] = make([]bool, tokens)
		own := make([]bool, tokens)
		for q := range queries {
			t.Float64s(keys, (b*queries+q)*tokens)
			for i, x := range keys {
				allowed, isMask := allows(x)
				if !isMask {
					return nil, true
				}
				mask[b][i] = mask[b][i] || allowed
				own[i] = own[i] || allowed && i == q+tokens-queries
			}
		}
		if !slices.Contains(mask[b], true) {
			return nil, true
		}
		for i := range tokens {
			itself = itself && (!mask[b][i] || own[i] || i < tokens-queries || queries == 1)
		}
	}
	return mask, itself
}
