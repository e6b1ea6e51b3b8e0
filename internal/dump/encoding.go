package dump

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goparity/goparity/internal/nearest"
	"github.com/goparity/goparity/tensor"
)

// Encoding is the type in which a run was asked to compute. A port may be recorded in a wider one.
type Encoding struct {
	Compute string // "bfloat16", or the engine's name of a quantised one; empty: the engine's choice
	KVCache string // type of the cached keys and values; empty: the engine's choice for Compute
}

// String is the compute type, followed by the type of the KV cache if that is another one.
func (e Encoding) String() string {
	if e.KVCache == "" || e.KVCache == e.Compute {
		return e.Compute
	}
	return e.Compute + " with a KV cache in " + e.KVCache
}

type encodingJSON struct {
	Compute string `json:"compute"`
	KVCache string `json:"kv_cache"`
}

// MarshalJSON writes a string, as schema 1 does, if nothing is said about the KV cache.
func (e Encoding) MarshalJSON() ([]byte, error) {
	if e.KVCache == "" {
		return json.Marshal(e.Compute)
	}
	return json.Marshal(encodingJSON(e))
}

// UnmarshalJSON reads a string, or an object with compute and kv_cache.
func (e *Encoding) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*e = Encoding{Compute: s}
		return nil
	}
	var o encodingJSON
	err := strict(data, &o)
	if err == nil && (o.Compute == "" || o.KVCache == "") {
		err = errors.New("compute or kv_cache is empty")
	}
	if err != nil {
		return fmt.Errorf(`%w: want "bfloat16", or {"compute": "bfloat16", "kv_cache": "float8_e4m3fn"}`, err)
	}
	*e = Encoding(o)
	return nil
}

// check refuses a type that is a slip of a known one: its run would be judged by other limits. Engines
// have names of their own for quantised ones.
func (e Encoding) check() error {
	floats := []string{"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"}
	for _, name := range []string{e.Compute, e.KVCache} {
		if _, err := tensor.ParseDType(name); err == nil || name == "" {
			continue
		}
		if want, near := nearest.Slip(name, floats); near {
			return fmt.Errorf("encoding is %q: did you mean %q?", name, want)
		}
	}
	return nil
}
