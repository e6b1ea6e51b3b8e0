package diagnose

import (
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Config is config.json.
type Config map[string]any

// Float returns the first of the keys that holds a number.
func (c Config) Float(keys ...string) (float64, bool) {
	for _, k := range keys {
		switch v := c[k].(type) {
		case float64:
			return v, true
		case int:
			return float64(v), true
		}
	}
	return 0, false
}

// Int returns the first of the keys that holds a number, if it is a whole one.
func (c Config) Int(keys ...string) (int, bool) {
	if f, ok := c.Float(keys...); ok && f == float64(int(f)) {
		return int(f), true
	}
	return 0, false
}

// String returns the first of the keys that holds a string.
func (c Config) String(keys ...string) string {
	for _, k := range keys {
		if s, ok := c[k].(string); ok {
			return s
		}
	}
	return ""
}

// Heads is the number of attention heads, 0 if the config does not say.
func (c Config) Heads() int {
	n, _ := c.Int("num_attention_heads", "n_head", "num_heads", "n_heads")
	return max(n, 0)
}

// KVHeads is the number of heads of K and V.
func (c Config) KVHeads() int {
	if n, ok := c.Int("num_key_value_heads"); ok {
		return max(n, 0)
	}
	return c.Heads()
}

// Hidden is the width of the stream, 0 if the config does not say.
func (c Config) Hidden() int {
	n, _ := c.Int("hidden_size", "n_embd", "d_model")
	return max(n, 0)
}

// Theta is the base of the rotary embedding, 0 if the config does not say.
func (c Config) Theta() float64 {
	t, _ := c.Float("rope_theta", "rotary_emb_base")
	return max(t, 0)
}

// Weights are the reference's, by Hugging Face's keys.
type Weights map[string]*tensor.Tensor

// Of finds the weight of a layer, with its key: of "model.model.layers.0.self_attn.q_proj" and
// "weight". A key's module is the end of the layer's name at a dot, or the name is the end of the
// key's module; the longest match counts. nil if there is none.
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
				return "", nil // two are no answer
			}
			key = k
		}
	}
	return key, w[key]
}
