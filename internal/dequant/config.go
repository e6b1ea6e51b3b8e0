package dequant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/mapfile"
)

// Config is what a checkpoint says of its quantised weights: quantization_config of Hugging Face's
// config.json, quantization of MLX's.
type Config struct {
	File   string // where it stands
	Method string // "mlx", "gptq", "awq", "fp8", "mxfp4", "compressed-tensors", "modelopt"; "" if it is not said

	bits, group int    // 0 if they are not said; a group of −1 is a row
	mode        string // of MLX: "affine", "mxfp4", …
	version     string // of AWQ: "gemm"
	plain       bool   // GPTQ's zero points are stored as they are
	ordered     bool   // GPTQ's inputs are grouped by g_idx
	block       []int  // of FP8
	asymmetric  bool   // of compressed-tensors: there are zero points
	schemes     []scheme
	modules     map[string]scheme          // of MLX, by the module's name
	ignored     []func(module string) bool // of modules that are not quantised
}

// scheme is how some weights are quantised.
type scheme struct {
	bits, group int
	mode        string
	off         bool // not at all
}

// methods are those that are read.
var methods = []string{"mlx", "gptq", "awq", "fp8", "fbgemm_fp8", "mxfp4", "compressed-tensors", "modelopt"}

// ReadConfig reads what stands in a folder: config.json, or what older programs wrote instead. It
// is nil if nothing says that weights are quantised.
func ReadConfig(dir string) (*Config, error) {
	for _, f := range []struct {
		name string
		keys []string // of the object that holds it; "" for the file itself
	}{
		{"config.json", []string{"quantization_config", "quantization"}},
		{"quantize_config.json", []string{""}},
		{"quant_config.json", []string{""}},
		{"hf_quant_config.json", []string{"quantization"}},
	} {
		path := filepath.Join(dir, f.name)
		data, err := mapfile.Read(path, mapfile.MaxConfig)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var all map[string]any
		if err := json.Unmarshal(data, &all); err != nil {
			return nil, fmt.Errorf("%s: want a JSON object: %w", path, err)
		}
		// A model that can do more than text has its config one level further down.
		for _, outer := range []map[string]any{all, object(all["text_config"]), object(all["llm_config"])} {
			for _, key := range f.keys {
				inner := object(outer[key])
				if key == "" {
					inner = outer
				}
				if inner != nil {
					return parseConfig(path, inner)
				}
			}
		}
	}
	return nil, nil
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func parseConfig(path string, m map[string]any) (*Config, error) {
	c := &Config{File: path, Method: strings.ToLower(text(m, "quant_method", "quant_algo")), modules: map[string]scheme{}}
	c.bits, c.group = number(m, "bits", "w_bit", "wbits"), number(m, "group_size", "q_group_size", "groupsize")
	c.mode, c.version = text(m, "mode"), strings.ToLower(text(m, "version"))
	c.plain, c.ordered = text(m, "checkpoint_format") == "gptq_v2", m["desc_act"] == true
	for _, v := range list(m["weight_block_size"]) {
		if f, ok := v.(float64); ok {
			c.block = append(c.block, int(f))
		}
	}
	for key, v := range m {
		switch s := object(v); {
		case s != nil && (s["bits"] != nil || s["group_size"] != nil):
			c.modules[key] = scheme{bits: number(s, "bits"), group: number(s, "group_size"), mode: text(s, "mode")}
		case v == false && strings.Contains(key, "."):
			c.modules[key] = scheme{off: true}
		}
	}
	for _, key := range []string{"ignore", "modules_to_not_convert", "exclude_modules"} {
		for _, v := range list(m[key]) {
			if s, ok := v.(string); ok {
				c.ignored = append(c.ignored, ignoring(s))
			}
		}
	}
	for _, g := range object(m["config_groups"]) {
		w := object(object(g)["weights"])
		s := scheme{bits: number(w, "num_bits"), group: number(w, "group_size"), mode: text(w, "strategy")}
		if w["symmetric"] == false {
			c.asymmetric = true
		}
		for _, v := range list(w["block_structure"]) {
			if f, ok := v.(float64); ok {
				c.block = append(c.block, int(f))
			}
		}
		c.schemes = append(c.schemes, s)
	}
	switch {
	case c.Method == "" && len(c.schemes) > 0:
		c.Method = "compressed-tensors"
	case c.Method == "" && (c.mode != "" || c.bits > 0 && m["desc_act"] == nil && m["zero_point"] == nil):
		c.Method = "mlx"
	case c.Method == "" && m["desc_act"] != nil:
		c.Method = "gptq"
	case c.Method == "" && m["zero_point"] != nil:
		c.Method = "awq"
	case text(m, "quant_algo") != "":
		c.Method = "modelopt"
	}
	if c.Method != "" && !slices.Contains(methods, c.Method) {
		return nil, fmt.Errorf("%s: weights quantised by %q are not read, only by %s", path, c.Method,
			strings.Join(methods, ", "))
	}
	return c, nil
}

func text(m map[string]any, keys ...string) string {
	for _, k := range keys {
		if s, ok := m[k].(string); ok {
			return s
		}
	}
	return ""
}

func number(m map[string]any, keys ...string) int {
	for _, k := range keys {
		if f, ok := m[k].(float64); ok && f == float64(int(f)) {
			return int(f)
		}
	}
	return 0
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// of returns how MLX quantised a module.
func (c *Config) of(module string) scheme {
	if c == nil {
		return scheme{}
	}
	best := ""
	for name := range c.modules {
		fits := name == module || strings.HasSuffix(module, "."+name) || strings.HasSuffix(name, "."+module)
		if fits && (len(name) > len(best) || len(name) == len(best) && name < best) { // the most specific one
			best = name
		}
	}
	if best != "" {
		return c.modules[best]
	}
	return scheme{bits: c.bits, group: c.group, mode: c.mode}
}

// says reports whether the weights of a module must be quantised by one of the methods.
func (c *Config) says(module string, methods ...string) bool {
	if c == nil || !slices.Contains(methods, c.Method) || c.of(module).off {
		return false
	}
	return !slices.ContainsFunc(c.ignored, func(leaves func(string) bool) bool { return leaves(module) })
}
