package checkpoint

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// Stacked returns a weight of all experts, [experts, …], of a checkpoint that has them one by one: that of
// layers.0.experts.down_proj is made of layers.0.experts.3.down_proj.weight and its like, which have its
// shape but for the first axis. Two of which each fills half of the second axis follow each other by their
// names, as gate and up do, or w1 and w3. It is nil where there are none, or the shapes leave a choice.
func (w Weights) Stacked(name string, shape []int) *tensor.Tensor {
	at := strings.LastIndexByte(name, '.')
	if at < 0 || len(shape) != 3 || shape[1]%2 != 0 {
		return nil
	}
	parts := w.experts(name[:at+1], shape[0], shape[1:])
	half := w.experts(name[:at+1], shape[0], []int{shape[1] / 2, shape[2]})
	if len(parts) == 0 && len(half) == 2 {
		parts = half
	} else if len(parts) != 1 || len(half) > 1 {
		return nil
	}
	var all []*tensor.Tensor
	for expert := range shape[0] {
		for _, part := range parts {
			all = append(all, part[expert])
		}
	}
	t, err := tensor.Concat(0, all...)
	if err == nil {
		t, err = t.Reshape(shape...)
	}
	if err != nil {
		return nil
	}
	return t
}

// experts lists the weights in one layer that n experts have, each in a shape, in the order of their names.
func (w Weights) experts(prefix string, n int, shape []int) (out [][]*tensor.Tensor) {
	found := map[string][]*tensor.Tensor{}
	for key, t := range w {
		rest, inside := strings.CutPrefix(key, prefix)
		number, part, _ := strings.Cut(rest, ".")
		i, err := strconv.Atoi(number)
		if !inside || err != nil || i < 0 || i >= n || !slices.Equal(t.Shape(), shape) {
			continue
		}
		if found[part] == nil {
			found[part] = make([]*tensor.Tensor, n)
		}
		found[part][i] = t
	}
	for _, part := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(found[part], nil) {
			out = append(out, found[part])
		}
	}
	return out
}
