package checkpoint

import (
	"maps"
	"slices"
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
