package dump

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// Tokens returns the token ids that the model was given, by sequence, or nil if run.json does not
// say. A flat list is one sequence.
func (i *Info) Tokens() (sequences [][]int) {
	if json.Unmarshal(i.TokenIDs, &sequences) == nil {
		return sequences
	}
	var flat []int
	if json.Unmarshal(i.TokenIDs, &flat) != nil {
		return nil
	}
	return [][]int{flat}
}

// checkTokenIDs requires ids of a form that Tokens reads, tokens in each sequence, and a mask of
// padding that is of these sequences.
func (i *Info) checkTokenIDs() error {
	var c checks
	tokens, text := i.Tokens(), string(i.TokenIDs)
	c.want(tokens != nil || text == "" || text == "null",
		"token_ids is %.40s: want a list for each sequence, [[1, 15, 7], …]", text)
	for k, ids := range tokens {
		c.want(len(ids) > 0, "token_ids[%d] has no tokens: want those that were run, or leave token_ids out", k)
		if k >= len(i.PadMask) || i.Passes != nil {
			continue
		}
		real, n := 0, len(i.PadMask[k])
		for _, v := range i.PadMask[k] {
			real += v
		}
		c.want(n <= len(ids) || real == len(ids),
			"pad_mask[%d] is of %d tokens, %d of them no padding, and token_ids[%d] has %d: "+
				"want a 0 or 1 for each, padding included", k, n, real, k, len(ids))
	}
	return c.err
}

// AlongPadding reports whether a run is one padded forward pass that its run.json calls no path, of
// sequences that a golden has as a whole, and makes it the path padding: which token each row is
// follows from the mask. A mask that hides tokens of the golden is another input.
func (r *Run) AlongPadding(golden ...*Run) bool {
	i := &r.Info
	tokens := i.Unpadded()
	if !i.padded() || i.Path != "" || i.Passes != nil || len(r.Steps()) != 1 || r.Steps()[0] != "0" || len(tokens) != len(i.PadMask) {
		return false
	}
	var whole [][]int
	for _, g := range golden {
		whole = append(whole, g.Info.Unpadded()...)
	}
	side, pass := Right, []PassItem(nil)
	for k, t := range tokens {
		if !slices.ContainsFunc(whole, func(s []int) bool { return slices.Equal(s, t) }) {
			return false
		}
		if i.PadMask[k][0] == 0 {
			side = Left
		}
		pass = append(pass, PassItem{Sequence: k, To: len(t)})
	}
	ids, err := json.Marshal(tokens)
	i.TokenIDs, i.Path, i.Passes = ids, Padding+":"+side, [][]PassItem{pass}
	return err == nil
}

// padded reports whether the first step has padding.
func (i *Info) padded() bool {
	return slices.ContainsFunc(i.PadMask, func(row []int) bool { return slices.Contains(row, 0) })
}

// OtherPadding reports whether this run's first step is padded and another one's is not, or otherwise.
func (r *Run) OtherPadding(other *Run) bool {
	return r.Info.padded() && !slices.EqualFunc(r.RealTokens(), other.RealTokens(), slices.Equal)
}

// Asked is Tokens without padding, and without the forced continuation of a generation: what the
// model was asked. Sequences without any tokens are left out.
func (i *Info) Asked() (sequences [][]int) {
	for _, ids := range i.Unpadded() {
		if i.Generation != nil {
			ids = ids[:min(i.Generation.From, len(ids))]
		}
		if len(ids) > 0 {
			sequences = append(sequences, ids)
		}
	}
	return sequences
}

// Unpadded is Tokens without padding.
func (i *Info) Unpadded() [][]int {
	sequences := i.Tokens()
	for k, ids := range sequences {
		if k >= len(i.PadMask) || len(i.PadMask[k]) != len(ids) {
			continue
		}
		real := make([]int, 0, len(ids))
		for at, id := range ids {
			if i.PadMask[k][at] != 0 {
				real = append(real, id)
			}
		}
		sequences[k] = real
	}
	return sequences
}

// Decoded returns the tokens that the model was given in its decode steps, by sequence. They are
// taken from the inputs of these steps; if one step does not show them, Decoded returns nil.
func (r *Run) Decoded() [][]int {
	var out [][]int
	steps, given := r.Steps(), r.given()
	for _, step := range steps[min(1, len(steps)):] {
		ids := given[step]
		if len(ids) == 0 || len(ids[0]) != 1 {
			return nil
		}
		for i, id := range ids {
			if len(out) <= i {
				out = append(out, nil)
			}
			out[i] = append(out[i], id...)
		}
	}
	return out
}

// Prompts returns what the model was asked, by sequence: what it was given in its first step, where
// the inputs of that show it and nothing is padded, or else what run.json says.
func (r *Run) Prompts() [][]int {
	if len(r.Entries) > 0 && r.Info.PadMask == nil {
		if ids := r.given()[r.Entries[0].Step]; ids != nil {
			return ids
		}
	}
	return r.Info.Asked()
}

// given returns the token ids that each step was given, by sequence, where its inputs show them.
func (r *Run) given() map[string][][]int {
	given := map[string][][]int{}
	for _, e := range r.Entries {
		named := strings.Contains(e.Port, "input_ids") || e.Port == "input_0" && strings.Contains(e.Layer, "embed")
		isOther := strings.Contains(e.Layer, "pos") || strings.Contains(e.Layer, "type") // their indices are no tokens
		n := e.Tensor.RowLen()
		if given[e.Step] != nil || !named || isOther || !label.IsInput(e.Port) || e.Tensor.DType().IsFloat() ||
			len(e.Tensor.Shape()) > 2 || n == 0 {
			continue
		}
		ids := make([][]int, e.Tensor.Len()/n)
		for i := range e.Tensor.Len() {
			ids[i/n] = append(ids[i/n], int(e.Tensor.At(i)))
		}
		given[e.Step] = ids
	}
	return given
}

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
func maskOf(e Entry) (mask [][]bool) {
	shape, whole := e.Tensor.Shape(), !e.Tensor.DType().IsFloat()
	switch {
	case len(shape) == 2 && whole && strings.Contains(e.Port, "attention_mask"):
		mask, _ = seen(e.Tensor, 1)
	case len(shape) == 4 && shape[1] == 1:
		if whole {
			if mask, itself := seen(e.Tensor, 1); itself {
				return mask
			}
		}
		mask, _ = seen(e.Tensor, 0)
	}
	return mask
}

// seen returns the tokens that some query may see by a mask [batch, token] or [batch, 1, queries, token], in which a
// number says that, and whether each of these is seen by its own query, the last one being that of the last token. It returns
// nil for what is no mask, or hides all tokens of a sequence.
func seen(t *tensor.Tensor, allows float64) (_ [][]bool, itself bool) {
	shape, queries := t.Shape(), 1
	if len(shape) == 4 {
		queries = shape[2]
	}
	tokens := shape[len(shape)-1]
	if shape[0] == 0 || tokens < 2 || t.Len() != shape[0]*queries*tokens {
		return nil, true
	}
	denies := vec.Denied
	if !t.DType().IsFloat() {
		denies = func(x float64) bool { return x == 1-allows }
	}
	itself = true
	mask, keys := make([][]bool, shape[0]), make([]float64, tokens)
	for b := range mask {
		mask[b] = make([]bool, tokens)
		own := make([]bool, tokens)
		for q := range queries {
			t.Float64s(keys, (b*queries+q)*tokens)
			for i, x := range keys {
				if x != allows && !denies(x) {
					return nil, true
				}
				mask[b][i] = mask[b][i] || x == allows
				own[i] = own[i] || x == allows && i == q+tokens-queries
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
