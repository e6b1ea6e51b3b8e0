package judge

import (
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
)

// callsByValue joins the calls of a layer by what they make, where the candidate made them in another order: each has
// what another call of the golden has, and not what its own has. Models that call one module for each kind of layer
// may do so in the order of a set, as transformers' Gemma 3 its rotary embedding.
func (k Case) callsByValue(pairs []match.Pair) {
	groups := map[[3]string][]int{}
	for i, p := range pairs {
		if e := k.Golden.Entries[p.Golden[0]]; len(p.Actual) == 1 && p.Problem == "" && e.Tensor.DType().IsFloat() {
			key := [3]string{e.Step, label.Name(e.Layer), e.Port}
			groups[key] = append(groups[key], i)
		}
	}
	for _, calls := range groups {
		if len(calls) > 1 && len(calls) <= mostCalls {
			k.exchange(pairs, calls)
		}
	}
}

// exchange joins calls by value, if all that are not alike are those of one another.
func (k Case) exchange(pairs []match.Pair, calls []int) {
	alike := func(i, j int) bool {
		g, a := k.Golden.Entries[pairs[i].Golden[0]].Tensor, k.Actual.Entries[pairs[j].Actual[0]].Tensor
		if !slices.Equal(g.Shape(), a.Shape()) || !a.DType().IsFloat() {
			return false
		}
		r, err := compare.Tensors(g, a, compare.Tolerance{EqualNaN: true})
		return err == nil && r.Agrees(compare.Floor(k.encoding().dtype))
	}
	off := slices.DeleteFunc(slices.Clone(calls), func(i int) bool { return alike(i, i) })
	to := make([][]int, len(off))
	var taken []int
	for n, i := range off {
		fits := slices.DeleteFunc(slices.Clone(off), func(j int) bool { return !alike(i, j) })
		if len(fits) != 1 || slices.Contains(taken, fits[0]) {
			return
		}
		taken, to[n] = append(taken, fits[0]), pairs[fits[0]].Actual
	}
	for n, i := range off {
		pairs[i].Actual = to[n]
		pairs[i].Note = "the candidate calls the layer in another order: joined by value"
	}
}
