package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// Find returns a weight by the name that the model gives it: the key of that name, or of another name
// of the same weight (aliases: such a name → the weight's), else the key that differs from one of them
// by a prefix, as where a checkpoint is of the model with its head: "bert.pooler.dense.weight" for
// "pooler.dense.weight". Of several keys the nearest counts. If there is none, it is a weight of all experts
// of which the checkpoint has those of each, see [Weights.Stacked]. An error says that there is none either.
func (w Weights) Find(name string, shape []int, aliases map[string]string) (*tensor.Tensor, error) {
	names := []string{name}
	for alias, of := range aliases {
		if of == name {
			names = append(names, alias)
		}
	}
	slices.Sort(names[1:])
	for _, n := range names {
		if t := w[n]; t != nil {
			return t, nil
		}
	}
	for _, n := range names {
		if t := w[w.nearest(n)]; t != nil {
			return t, nil
		}
	}
	for _, n := range names {
		if t := w.Stacked(n, shape); t != nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("the checkpoint has no weight %s", strings.Join(names, ", also called "))
}

// nearest is the key that differs least from a name by a prefix; "" for none.
func (w Weights) nearest(name string) (best string) {
	for at, ok := name, true; ok; _, at, ok = strings.Cut(at, ".") {
		if w[at] != nil && strings.Contains(at, ".") {
			return at
		}
	}
	for key := range w {
		if strings.HasSuffix(key, "."+name) && (best == "" || len(key) < len(best) || len(key) == len(best) && key < best) {
			best = key
		}
	}
	return best
}
