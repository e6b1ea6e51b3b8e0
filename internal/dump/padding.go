package dump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mask"
)

// RealTokens returns, for each sequence of a batch, which tokens are real and which are padding
// (false). It takes them from run.json, or else from the attention masks that layers were given. It
// returns nil if neither says anything, or if two masks differ.
//
// Two kinds of inputs are masks: an attention_mask of integers [batch, token], 1 for a real token;
// and what models make of it, [batch, 1, 1 or queries, token], where a token that no query may see
// is padding.
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
	t, shape := e.Tensor, e.Tensor.Shape()
	queries := 1
	var allows func(x float64) (allowed, isMask bool)
	switch {
	case len(shape) == 2 && !t.DType().IsFloat() && strings.Contains(e.Port, "attention_mask"),
		len(shape) == 4 && shape[1] == 1 && !t.DType().IsFloat():
		allows = func(x float64) (bool, bool) { return x == 1, x == 0 || x == 1 }
	case len(shape) == 4 && shape[1] == 1:
		allows = func(x float64) (bool, bool) { return x == 0, x == 0 || mask.Denies(x) }
	default:
		return nil
	}
	if len(shape) == 4 {
		queries = shape[2]
	}
	tokens := shape[len(shape)-1]
	if shape[0] == 0 || tokens < 2 || t.Len() != shape[0]*queries*tokens {
		return nil
	}
	mask, keys := make([][]bool, shape[0]), make([]float64, tokens)
	for b := range mask {
		mask[b] = make([]bool, tokens)
		for q := range queries {
			t.Float64s(keys, (b*queries+q)*tokens)
			for i, x := range keys {
				allowed, isMask := allows(x)
				if !isMask {
					return nil
				}
				mask[b][i] = mask[b][i] || allowed
			}
		}
		if !slices.Contains(mask[b], true) {
			return nil
		}
	}
	return mask
}
