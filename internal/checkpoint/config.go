// Package checkpoint opens the weights of a model by Hugging Face's names, a .gguf file's too, and reads its
// config.json. Quantised weights are joined with their scales, zero points and the like, by their names and
// by what config.json says, and become the weight that they stand for, whose elements are computed when they
// are read.
//
//	format              parts of a module                                          becomes
//	MLX affine          weight (U32), scales, biases                               weight
//	MLX mxfp4, mxfp8    weight (U32), scales (U8)                                  weight
//	MLX nvfp4           weight (U32), scales (U8), global_scale if there is one    weight
//	GPTQ                qweight, qzeros, scales, g_idx                             weight
//	AWQ                 qweight, qzeros, scales                                    weight
//	FP8, int8           weight (F8 or I8), weight_scale or weight_scale_inv        weight
//	compressed-tensors  weight_packed (I32), weight_scale, weight_shape, weight_zero_point, weight_g_idx
//	NVFP4               weight_packed (U8), weight_scale, weight_global_scale      weight
//	NVFP4 of ModelOpt   weight (U8), weight_scale, weight_scale_2                  weight
//	MXFP4               weight_packed or weight (U8), weight_scale (U8)            weight
//	MXFP4 of gpt-oss    NAME_blocks, NAME_scales                                   NAME
//
// What is not quantised stays as it is. Scales of activations (input_scale) stay, too.
package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goparity/goparity/internal/mapfile"
)

// Config is config.json.
type Config map[string]any

// Float returns the value of the first of the keys that has a number.
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

// Int returns the value of the first of the keys that has a number, if it is a whole number.
func (c Config) Int(keys ...string) (int, bool) {
	if f, ok := c.Float(keys...); ok && f == float64(int(f)) {
		return int(f), true
	}
	return 0, false
}

// String returns the value of the first of the keys that has a string.
func (c Config) String(keys ...string) string {
	for _, k := range keys {
		if s, ok := c[k].(string); ok {
			return s
		}
	}
	return ""
}

// The keys of what several methods and settings read.
var (
	headKeys   = []string{"num_attention_heads", "n_head", "num_heads", "n_heads"}
	kvKeys     = []string{"num_key_value_heads", "num_kv_heads"}
	hiddenKeys = []string{"hidden_size", "n_embd", "d_model"}
)

// Size is the number that the first of the keys has that has one, or 0 if the config does not say.
func (c Config) Size(keys ...string) int {
	n, _ := c.Int(keys...)
	return max(n, 0)
}

// Heads returns the number of attention heads, or 0 if the config does not say.
func (c Config) Heads() int { return c.Size(headKeys...) }

// KVHeads returns the number of heads of keys and values.
func (c Config) KVHeads() int {
	if _, ok := c.Int(kvKeys...); ok {
		return c.Size(kvKeys...)
	}
	return c.Heads()
}

// Hidden returns the width of the residual stream, or 0 if the config does not say.
func (c Config) Hidden() int { return c.Size(hiddenKeys...) }

// ReadConfig reads a config.json, as [Flat] has it.
func ReadConfig(path string) (Config, error) {
	c, err := readObject(path)
	return Flat(c), err
}

// readObject reads a file of a JSON object.
func readObject(path string) (c Config, err error) {
	data, err := mapfile.Read(path, mapfile.MaxConfig)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &c); err != nil || c == nil {
		return nil, fmt.Errorf("%s: want a JSON object, as Hugging Face's config.json: %w", path, cmp.Or(err, errors.New("it is null")))
	}
	return c, nil
}

// object is the object of a key; nil for none.
func (c Config) object(key string) Config {
	m, _ := c[key].(map[string]any)
	return m
}

// list is the list of a key; nil for none.
func (c Config) list(key string) []any {
	l, _ := c[key].([]any)
	return l
}

// ints are the whole numbers of a key, which has one or a list of them; nil for anything else.
func (c Config) ints(key string) (out []int) {
	values := c.list(key)
	if f, ok := c[key].(float64); ok {
		values = []any{f}
	}
	for _, v := range values {
		f, ok := v.(float64)
		if !ok || f != float64(int(f)) {
			return nil
		}
		out = append(out, int(f))
	}
	return out
}

// levels are the objects that may have the keys of a text model: one that can do more has its config one
// level further down.
func (c Config) levels() []Config {
	return []Config{c, c.object("text_config"), c.object("llm_config")}
}

// flattened hold keys that [Flat] moves out.
var flattened = []string{"text_config", "rope_parameters"}

// Flat is a config in which a key of text_config or rope_parameters counts if the outer level does not
// have it; nil of an empty one. It changes c.
func Flat(c Config) Config {
	if len(c) == 0 {
		return nil
	}
	// Since transformers 5, rope_theta is in rope_parameters.
	for _, key := range flattened {
		for k, v := range c.object(key) {
			if _, outer := c[k]; !outer {
				c[k] = v
			}
		}
	}
	return c
}
