package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/localise"
)

// denied is the largest value of an additive mask that denies.
const denied = -9984

// padding reads from the reference's own attention masks which tokens are padding, true for real ones; nil if none says so, or
// two of them say different things.
//
// Read are inputs: attention_mask of integers [batch, token], 1 for a real token; and what models make of it, [batch, 1, 1 or queries, token],
// where a token that no query may see is padding.
func padding(golden *dump.Run) [][]bool {
	var mask [][]bool
	seen := map[string]bool{} // each layer gets the same one again: one of a shape is enough
	for _, e := range golden.Entries {
		if e.Step != golden.Entries[0].Step || localise.RoleOf(e.Port) != localise.Input {
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

// maskOf gives the tokens that an input lets anyone see, nil if it is no mask with something to see in each sequence.
func maskOf(e dump.Entry) [][]bool {
	t, shape := e.Tensor, e.Tensor.Shape()
	queries := 1
	var allows func(x float64) (allowed, isMask bool)
	switch {
	case len(shape) == 2 && !t.DType().IsFloat() && strings.Contains(e.Port, "attention_mask"),
		len(shape) == 4 && shape[1] == 1 && !t.DType().IsFloat():
		allows = func(x float64) (bool, bool) { return x == 1, x == 0 || x == 1 }
	case len(shape) == 4 && shape[1] == 1:
		allows = func(x float64) (bool, bool) { return x == 0, x == 0 || x <= denied }
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
