package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// Find returns a weight by the name that the model gives it: the key of that name, or of another name
// of the same weight (aliases: such a name → the weight's), else the key that is nearest to one of them, see [KeyOf].
// If there is none, it is a weight of all experts of which the checkpoint has those of each, see [Weights.Stacked].
// An error says that there is none either.
func (w Weights) Find(name string, shape []int, aliases map[string]string) (*tensor.Tensor, error) {
	names := []string{name}
	for alias, of := range aliases {
		if of == name {
			names = append(names, alias)
		}
	}
	slices.Sort(names[1:])
	for _, find := range []func(n string) *tensor.Tensor{
		func(n string) *tensor.Tensor { return w[n] },
		func(n string) *tensor.Tensor { return w[KeyOf(w, n)] },
		func(n string) *tensor.Tensor { return w.Stacked(n, shape) },
	} {
		for _, n := range names {
			if t := find(n); t != nil {
				return t, nil
			}
		}
	}
	return nil, fmt.Errorf("the checkpoint has no weight %s", strings.Join(names, ", also called "))
}
