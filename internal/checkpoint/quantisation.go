package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// quantisation is what a checkpoint says of its quantised weights: quantization_config of Hugging
// Face's config.json, quantization of MLX's.
type quantisation struct {
	file   string // where it stands
	method string // "mlx", "gptq", "awq", "fp8", "mxfp4", "compressed-tensors", "modelopt"; "" if it is not said

	version    string                     // of AWQ: "gemm"
	plain      bool                       // GPTQ's zero points are stored as they are
	ordered    bool                       // GPTQ's inputs are grouped by g_idx
	block      []int                      // of FP8
	asymmetric bool                       // of compressed-tensors: there are zero points
	schemes    []scheme                   // of all modules, or of groups of them
	modules    map[string]scheme          // of MLX, by the module's name
	ignored    []func(module string) bool // of modules that are not quantised
}

// scheme is how some weights are quantised.
type scheme struct {
	bits, group int    // 0 if they are not said; a group of −1 is a row
	mode        string // of MLX: "affine", "mxfp4", …
	off         bool   // not at all
}

func schemeOf(c Config) (s scheme) {
	s.bits, _ = c.Int("bits", "num_bits", "w_bit", "wbits")
	s.group, _ = c.Int("group_size", "q_group_size", "groupsize")
	s.mode = c.String("mode")
	return s
}

// usual is the scheme of all modules; zero if none is said.
func (c *quantisation) usual() scheme {
	if len(c.schemes) == 0 {
		return scheme{}
	}
	return c.schemes[0]
}

// methods are those that are read.
var methods = []string{"mlx", "gptq", "awq", "fp8", "fbgemm_fp8", "mxfp4", "compressed-tensors", "modelopt"}

// readQuantisation reads what stands in a folder: config.json, or what older programs wrote instead.
// It is nil if nothing says that weights are quantised.
func readQuantisation(dir string) (*quantisation, error) {
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
		all, err := readObject(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, outer := range all.levels() {
			for _, key := range f.keys {
				inner := outer
				if key != "" {
					inner = outer.object(key)
				}
				if inner != nil {
					return parseQuantisation(path, inner)
				}
			}
		}
	}
	return nil, nil
}

func parseQuantisation(path string, m Config) (*quantisation, error) {
	c := &quantisation{file: path, method: strings.ToLower(m.String("quant_method", "quant_algo")), modules: map[string]scheme{}}
	all := schemeOf(m)
	c.version = strings.ToLower(m.String("version"))
	c.plain, c.ordered = m.String("checkpoint_format") == "gptq_v2", m["desc_act"] == true
	c.block = m.ints("weight_block_size")
	for key, v := range m {
		switch s := m.object(key); {
		case s != nil && (s["bits"] != nil || s["group_size"] != nil):
			c.modules[key] = schemeOf(s)
		case v == false && strings.Contains(key, "."):
			c.modules[key] = scheme{off: true}
		}
	}
	for _, key := range []string{"ignore", "modules_to_not_convert", "exclude_modules"} {
		for _, v := range m.list(key) {
			if s, ok := v.(string); ok {
				c.ignored = append(c.ignored, ignoring(s))
			}
		}
	}
	groups := m.object("config_groups")
	for name := range groups {
		w := groups.object(name).object("weights")
		c.asymmetric = c.asymmetric || w["symmetric"] == false
		c.block = append(c.block, w.ints("block_structure")...)
		s := schemeOf(w)
		s.group = cmp.Or(s.group, -1)
		c.schemes = append(c.schemes, s)
	}
	grouped := len(c.schemes) > 0
	if !grouped {
		c.schemes = []scheme{all}
	}
	switch {
	case c.method == "" && grouped:
		c.method = "compressed-tensors"
	case c.method == "" && (all.mode != "" || all.bits > 0 && m["desc_act"] == nil && m["zero_point"] == nil):
		c.method = "mlx"
	case c.method == "" && m["desc_act"] != nil:
		c.method = "gptq"
	case c.method == "" && m["zero_point"] != nil:
		c.method = "awq"
	case m.String("quant_algo") != "":
		c.method = "modelopt"
	}
	if c.method != "" && !slices.Contains(methods, c.method) {
		return nil, fmt.Errorf("%s: weights quantised by %q are not read, only by %s", path, c.method,
			strings.Join(methods, ", "))
	}
	return c, nil
}

// of returns how MLX quantised a module.
func (c *quantisation) of(module string) scheme {
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
	return c.usual()
}

// says reports whether the weights of a module must be quantised by one of the methods.
func (c *quantisation) says(module string, methods ...string) bool {
	if !slices.Contains(methods, c.method) || c.of(module).off {
		return false
	}
	return !slices.ContainsFunc(c.ignored, func(leaves func(string) bool) bool { return leaves(module) })
}

// ignoring tells the modules that an entry of a config's ignore list leaves as they are: "re:" and a regular
// expression that has to match from the beginning of the name, as Python's re.match; a pattern with *; or a
// name, or segments of one.
//
// An expression that Go cannot read, such as one with a look-ahead, leaves all modules: nothing can be asked of
// them.
func ignoring(entry string) func(module string) bool {
	pattern, isRegexp := strings.CutPrefix(entry, "re:")
	switch {
	case isRegexp:
		re, err := regexp.Compile(`^(?:` + pattern + `)`)
		if err != nil {
			return func(string) bool { return true }
		}
		return re.MatchString
	case strings.Contains(entry, "*"):
		re := regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(entry), `\*`, `.*`) + `$`)
		return re.MatchString
	case entry == "":
		return func(string) bool { return false }
	}
	return func(module string) bool { return strings.Contains("."+module+".", "."+strings.Trim(entry, ".")+".") }
}
