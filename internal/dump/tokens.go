package dump

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
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

// checkTokenIDs requires ids of a form that Tokens reads.
func (i *Info) checkTokenIDs() error {
	if text := string(i.TokenIDs); text == "" || text == "null" {
		return nil
	}
	if tokens := i.Tokens(); tokens != nil {
		return i.checkTokens(tokens)
	}
	return fmt.Errorf("token_ids is %.40s: want a list for each sequence, [[1, 15, 7], …]", i.TokenIDs)
}

// checkTokens requires tokens in each sequence, and a mask of padding that is of these sequences.
func (i *Info) checkTokens(tokens [][]int) error {
	for k, ids := range tokens {
		if len(ids) == 0 {
			return fmt.Errorf("token_ids[%d] has no tokens: want those that were run, or leave token_ids out", k)
		}
		if k >= len(i.PadMask) || i.Passes != nil {
			continue
		}
		real := 0
		for _, v := range i.PadMask[k] {
			real += v
		}
		if n := len(i.PadMask[k]); n > len(ids) && real != len(ids) {
			return fmt.Errorf("pad_mask[%d] is of %d tokens, %d of them no padding, and token_ids[%d] has %d: want a 0 or 1 for each, padding included",
				k, n, real, k, len(ids))
		}
	}
	return nil
}

// AlongPadding reports whether a run is one padded forward pass that its run.json calls no path, of sequences that
// a golden has as a whole, and makes it the path padding: which token each row is follows from the mask. A mask that
// hides tokens of the golden is another input.
func (r *Run) AlongPadding(golden ...*Run) bool {
	i := &r.Info
	tokens := i.Unpadded()
	if !i.padded() || i.Path != "" || i.Passes != nil || len(r.Steps()) != 1 || r.Steps()[0] != "0" || len(tokens) != len(i.PadMask) {
		return false
	}
	ids, err := json.Marshal(tokens)
	if err != nil {
		return false
	}
	side, pass := Right, []PassItem(nil)
	isWhole := func(t []int) bool {
		return slices.ContainsFunc(golden, func(g *Run) bool {
			return slices.ContainsFunc(g.Info.Unpadded(), func(s []int) bool { return slices.Equal(s, t) })
		})
	}
	for k, t := range tokens {
		if !isWhole(t) {
			return false
		}
		if i.PadMask[k][0] == 0 {
			side = Left
		}
		pass = append(pass, PassItem{Sequence: k, To: len(t)})
	}
	i.TokenIDs, i.Path, i.Passes = ids, Padding+":"+side, [][]PassItem{pass}
	return true
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
		if given[e.Step] != nil || !named || isOther || !label.IsInput(e.Port) || e.Tensor.DType().IsFloat() || len(e.Tensor.Shape()) > 2 || n == 0 {
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
