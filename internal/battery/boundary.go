package battery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/path"
)

// Boundary is a number of tokens at which something begins that shorter inputs do not have.
type Boundary struct {
	At  int
	Key string // of config.json; "" where it is the engines': tiles of kernels and pages of caches
	Max bool   // it is the last length that the model has positions for
}

func (b Boundary) String() string {
	if b.Key == "" {
		return fmt.Sprintf("tiles and pages of %d tokens", b.At)
	}
	return fmt.Sprintf("%s %d", b.Key, b.At)
}

// tiles are numbers of tokens that kernels take at a time and caches keep together.
var tiles = []int{8, 16, 64, path.Page, 2 * path.Page}

// spans are words in the names of settings that count tokens: windows, chunks of attention and of
// scans, the keys that a sparse attention chooses, and the positions before and after scaling.
var spans = []string{"window", "chunk_size", "index_topk", "block_size", "local_attention", "conv_kernel", "d_conv",
	"max_position", "n_positions", "n_ctx", "max_seq", "original_max"}

// Boundaries lists the boundaries of a config, the lowest first. Settings of images and sound, and
// those that are switched off by a use_… of their own, have none.
func Boundaries(c checkpoint.Config) []Boundary {
	found := map[int]Boundary{}
	for _, at := range tiles {
		found[at] = Boundary{At: at}
	}
	most := 0
	each(c, func(in map[string]any, key string, n int) {
		if n < 2 || in["use_"+key] == false {
			return
		}
		if isLast(key) {
			most = max(most, n)
		}
		found[n] = Boundary{At: n, Key: key}
	})
	var out []Boundary
	for _, b := range found {
		b.Max = b.At == most && !goesOn(c)
		if most == 0 || b.At <= most {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b Boundary) int { return cmp.Compare(a.At, b.At) })
	return out
}

// goesOn reports whether a model has positions behind the last that its config counts: its rotary embedding is scaled by the
// length of the text from there on.
func goesOn(c map[string]any) bool {
	for key, value := range c {
		if in, ok := value.(map[string]any); ok && (key == "text_config" || strings.HasPrefix(key, "rope_") || strings.HasSuffix(key, "attention")) {
			if in["rope_type"] == "dynamic" || in["type"] == "dynamic" || goesOn(in) {
				return true
			}
		}
	}
	return false
}

// isLast reports whether a setting is the number of positions that a model has.
func isLast(key string) bool {
	return !strings.Contains(key, "original") &&
		slices.ContainsFunc([]string{"max_position", "n_positions", "n_ctx", "max_seq"}, func(word string) bool { return strings.Contains(key, word) })
}

// each visits the settings that count tokens, those of text_config and of the rotary embedding too.
func each(in map[string]any, visit func(in map[string]any, key string, n int)) {
	for key, value := range in {
		switch v := value.(type) {
		case map[string]any:
			if key == "text_config" || strings.HasPrefix(key, "rope_") || strings.HasSuffix(key, "attention") {
				each(v, visit)
			}
		case float64:
			if v == float64(int(v)) && !strings.HasSuffix(key, "layers") && slices.ContainsFunc(spans, func(word string) bool { return strings.Contains(key, word) }) {
				visit(in, key, int(v))
			}
		}
	}
}

// Kinds returns how many of the first blocks have one of each kind: what a config lists block by
// block, and what it counts from, or every how many blocks something comes. It is at most layers.
func Kinds(c checkpoint.Config, layers int) int {
	most := fewestLayers
	for key, value := range c {
		switch v := value.(type) {
		case []any:
			if len(v) == layers {
				most = max(most, firstOfEach(v))
			}
		case float64:
			n := int(v)
			if n > 0 && n <= layers && slices.ContainsFunc([]string{"interval", "period", "pattern", "sparse_step", "layer_step", "first_k",
				"layer_offset"}, func(word string) bool { return strings.Contains(key, word) }) {
				most = max(most, n+1)
			}
		}
	}
	return min(most, layers)
}

// firstOfEach is the length of the shortest beginning that has every value of the list.
func firstOfEach(list []any) (n int) {
	seen := map[string]bool{}
	for i, v := range list {
		if text := fmt.Sprint(v); !seen[text] {
			seen[text], n = true, i+1
		}
	}
	return n
}
