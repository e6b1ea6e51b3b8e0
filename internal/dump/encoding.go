package dump

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Encoding is the type in which a run was asked to compute. Single ports may be recorded wider.
type Encoding struct {
	Compute string // "bfloat16", or what the engine calls its quantised one; empty is the engine's own choice
	KVCache string // type of the keys and values kept between forward passes; empty is the engine's choice for Compute
}

// String is the type alone, or with that of the KV cache where it is another one.
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

// MarshalJSON writes a string where nothing is said of the KV cache, as schema 1 does.
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
		return fmt.Errorf(`encoding: %w: want "bfloat16", or {"compute": "bfloat16", "kv_cache": "float8_e4m3fn"}`, err)
	}
	*e = Encoding(o)
	return nil
}
