package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Weights are those of a model, by Hugging Face's keys.
type Weights map[string]*tensor.Tensor

// Of finds the weight of a layer and its key, see [KeyOf], for "model.model.layers.0.self_attn.q_proj" and
// "weight". t is nil if there is none.
func (w Weights) Of(layer, name string) (key string, t *tensor.Tensor) {
	key = KeyOf(w, label.Name(layer)+"."+name)
	return key, w[key]
}

// KeyOf finds the key of a weight whose name may lack the first modules, or have others before them: the longest
// end of the name, at a dot, that is a key, or else the shortest key that ends with it, as where a checkpoint is of
// the model with its head: "bert.pooler.dense.weight" for "pooler.dense.weight"; "" for none, or several.
func KeyOf[T any](w map[string]T, name string) (key string) {
	for at, ok := name, true; ok && strings.Contains(at, "."); _, at, ok = strings.Cut(at, ".") {
		if _, is := w[at]; is {
			return at
		}
	}
	several := false
	for k := range w {
		if strings.HasSuffix(k, "."+name) && (key == "" || len(k) <= len(key)) {
			several, key = len(k) == len(key), k
		}
	}
	if several {
		return ""
	}
	return key
}

// Named lists the weights by their keys, in order.
func (w Weights) Named() (all []tensor.Named) {
	for _, key := range slices.Sorted(maps.Keys(w)) {
		all = append(all, tensor.Named{Name: key, Tensor: w[key]})
	}
	return all
}

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
