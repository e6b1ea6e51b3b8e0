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
	walk(c, ofText, func(in map[string]any, key string, value any) {
		v, _ := value.(float64)
		n := int(v)
		ofLayers := strings.HasSuffix(key, "layers") || strings.HasSuffix(key, "pattern")
		if v != float64(n) || n < 2 || in["use_"+key] == false || ofLayers || !names(key, spans) {
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

// goesOn reports whether a model has positions after the last that its config counts: its rotary embedding is scaled by the
// length of the text from there on.
func goesOn(c map[string]any) (dynamic bool) {
	walk(c, ofText, func(_ map[string]any, key string, value any) {
		dynamic = dynamic || value == "dynamic" && (key == "rope_type" || key == "type")
	})
	return dynamic
}

// isLast reports whether a setting is the number of positions that a model has.
func isLast(key string) bool {
	return !strings.Contains(key, "original") && names(key, []string{"max_position", "n_positions", "n_ctx", "max_seq"})
}

// names reports whether one of several words is in the name of a setting.
func names(key string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(key, word) })
}

// ofText reports whether a part of a config is about text: that of a model with images, or of the rotary embedding.
func ofText(key string) bool {
	return key == "text_config" || strings.HasPrefix(key, "rope_") || strings.HasSuffix(key, "attention")
}

// walk visits the settings of a config, and of the parts that are asked for.
func walk(in map[string]any, into func(key string) bool, visit func(in map[string]any, key string, value any)) {
	for key, value := range in {
		if part, ok := value.(map[string]any); ok && into(key) {
			walk(part, into, visit)
		} else {
			visit(in, key, value)
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
			if n > 0 && n <= layers && names(key, []string{"interval", "period", "pattern", "sparse_step", "layer_step", "first_k", "layer_offset"}) {
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
