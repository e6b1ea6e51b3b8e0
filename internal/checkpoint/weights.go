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

// Of finds the weight of a layer and its key, for "model.model.layers.0.self_attn.q_proj" and
// "weight". A key fits if its module is the end of the layer's name at a dot, or the layer's name
// is the end of its module; the longest module that fits counts. t is nil if there is none, or if
// two keys fit equally well.
func (w Weights) Of(layer, name string) (key string, t *tensor.Tensor) {
	layer = label.Name(layer)
	for at, ok := layer, true; ok; _, at, ok = strings.Cut(at, ".") {
		if t := w[at+"."+name]; t != nil {
			return at + "." + name, t
		}
	}
	for k := range w {
		if strings.HasSuffix(k, "."+layer+"."+name) {
			if key != "" {
				return "", nil // ambiguous
			}
			key = k
		}
	}
	return key, w[key]
}

// Named lists the weights by their keys, in order.
func (w Weights) Named() (all []tensor.Named) {
	for _, key := range slices.Sorted(maps.Keys(w)) {
		all = append(all, tensor.Named{Name: key, Tensor: w[key]})
	}
	return all
}

// Keys lists the keys of some weights, in order.
func (w Weights) Keys(are func(key string, t *tensor.Tensor) bool) (keys []string) {
	for key, t := range w {
		if are(key, t) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
