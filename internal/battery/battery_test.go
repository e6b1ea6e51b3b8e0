package battery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/battery"
	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/toy"
)

var allPaths = []string{"decode", "chunked", "turns", "batch", "padding", "prefix", "repeat", "lengths", "mask"}

func config(with map[string]any) checkpoint.Config {
	c := checkpoint.Config{"hidden_size": 64.0, "intermediate_size": 128.0, "num_hidden_layers": 4.0, "vocab_size": 320.0,
		"max_position_embeddings": 4096.0, "bos_token_id": 0.0, "eos_token_id": 150.0}
	for k, v := range with {
		c[k] = v
	}
	return c
}

func TestBoundaries(t *testing.T) {
	for _, tt := range []struct {
		config map[string]any
		want   string
		reason string
	}{
		{map[string]any{"sliding_window": 24.0}, "sliding_window 24", "a window"},
		{map[string]any{"attention_chunk_size": 40.0}, "attention_chunk_size 40", "attention in chunks"},
		{map[string]any{"index_topk": 48.0}, "index_topk 48", "keys that a sparse attention chooses"},
		{map[string]any{"rope_scaling": map[string]any{"original_max_position_embeddings": 512.0}}, "original_max_position_embeddings 512", "nested"},
		{map[string]any{"rope_parameters": map[string]any{"full_attention": map[string]any{"original_max_position_embeddings": 96.0}}},
			"original_max_position_embeddings 96", "by the kind of attention"},
		{map[string]any{"text_config": map[string]any{"sliding_window": 33.0}}, "sliding_window 33", "the text's part of a model with images"},
		{nil, "max_position_embeddings 4096", "the last position"},
		{nil, "tiles and pages of 128 tokens", "a page of MAX's cache"},
	} {
		var got []string
		for _, b := range battery.Boundaries(config(tt.config)) {
			got = append(got, b.String())
		}
		assert.Contains(t, got, tt.want, tt.reason)
	}
	for _, tt := range []struct {
		config map[string]any
		not    string
		reason string
	}{
		{map[string]any{"sliding_window": 24.0, "use_sliding_window": false}, "sliding_window", "switched off"},
		{map[string]any{"sliding_window": nil}, "sliding_window", "null"},
		{map[string]any{"vision_config": map[string]any{"window_size": 8.0}}, "window_size", "of images"},
		{map[string]any{"max_window_layers": 80.0}, "max_window_layers", "a number of layers"},
		{map[string]any{"sliding_window_pattern": 6.0}, "sliding_window_pattern", "every how many layers"},
		{map[string]any{"max_position_embeddings": 100.0}, "128", "a tile behind the last position"},
	} {
		for _, b := range battery.Boundaries(config(tt.config)) {
			assert.NotContains(t, b.String(), tt.not, tt.reason)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		config checkpoint.Config
		layers int
		want   int
		reason string
	}{
		{checkpoint.Config{}, 32, 2, "all alike: an error of one must reach another"},
		{checkpoint.Config{}, 1, 1, "there is one"},
		{checkpoint.Config{"layer_types": []any{"s", "s", "s", "f", "s", "f"}}, 6, 4, "a list of kinds"},
		{checkpoint.Config{"first_k_dense_replace": 3.0}, 60, 4, "dense ones first"},
		{checkpoint.Config{"full_attention_interval": 4.0}, 48, 5, "every fourth"},
		{checkpoint.Config{"num_kv_shared_layers": 10.0}, 30, 2, "not a place of a kind"},
		{checkpoint.Config{"attn_layer_period": 8.0}, 4, 2, "there are fewer blocks"},
	} {
		assert.Equal(t, tt.want, battery.Kinds(tt.config, tt.layers), tt.reason)
	}
}

func TestNew(t *testing.T) {
	generates := battery.Options{Generates: true, Text: true, Paths: allPaths}
	p := battery.New(config(map[string]any{"sliding_window": 24.0}), generates)
	names := []string{}
	for _, c := range p.Cases {
		names = append(names, c.Name)
		assert.NotEmpty(t, c.For)
		for _, ids := range c.TokenIDs {
			assert.Zero(t, ids[0], "begins as texts do")
			assert.NotContains(t, ids, 150, "the end of a text is no token of it")
			for _, id := range ids {
				assert.True(t, id >= 0 && id < 320, id)
			}
		}
	}
	assert.Equal(t, []string{"auto-long", "auto-few", "auto-one", "auto-across", "auto-text"}, names)
	assert.Len(t, p.Cases[3].TokenIDs[0], 22, "its fifth step is behind the window of 24")
	i := slices.IndexFunc(p.Paths, func(x battery.Path) bool { return strings.HasPrefix(x.Name, "lengths:") })
	require.GreaterOrEqual(t, i, 0)
	for _, n := range []string{",23,", ",24,", ",25,", ",48,", ",127,", ",129,"} {
		assert.Contains(t, p.Paths[i].Name, n)
	}
	assert.Equal(t, p, battery.New(config(map[string]any{"sliding_window": 24.0}), generates), "the same for the same config")
	assert.LessOrEqual(t, p.Cost.Time, battery.DefaultBudget)
	assert.LessOrEqual(t, p.Cost.Bytes, int64(battery.DefaultBytes))

	generates.Budget = 25 * time.Second
	less := battery.New(config(map[string]any{"sliding_window": 24.0}), generates)
	assert.Less(t, len(less.Cases[0].TokenIDs[0]), len(p.Cases[0].TokenIDs[0]), "a smaller budget")
	assert.Contains(t, strings.Join(less.NotTried, "\n"), "4096 tokens (max_position_embeddings 4096): would take")
}

// What each class of real bugs of ports takes is in a plan of a small model whose config says so.
func TestTriggers(t *testing.T) {
	for _, tt := range []struct {
		config map[string]any
		path   string // begins so
		has    string // among its numbers
		reason string
	}{
		{nil, "turns:", "8", "several tokens behind single ones"},
		{nil, "batch:", "4", "sequences of several lengths that decode together"},
		{nil, "padding:left", "left", "padding before a sequence"},
		{nil, "prefix", "", "a beginning that is in the cache"},
		{nil, "repeat:", "3", "the same prompt again"},
		{map[string]any{"sliding_window": 24.0}, "chunked:", "12", "several chunks in a window"},
		{map[string]any{"sliding_window": 24.0}, "lengths:", "48", "two windows"},
		{map[string]any{"conv_L_cache": 3.0, "conv_kernel_size": 4.0, "max_position_embeddings": 96.0}, "chunked:", "2", "chunks shorter than a convolution looks back"},
		{map[string]any{"max_position_embeddings": 64.0, "rope_scaling": map[string]any{"rope_type": "dynamic", "factor": 2.0}}, "lengths:", "128",
			"behind the last position, where the rotary embedding is scaled by the length"},
		{map[string]any{"max_position_embeddings": 64.0, "rope_scaling": map[string]any{"type": "linear", "factor": 2.0}}, "lengths:", "64",
			"the last position, where it is none"},
	} {
		p := battery.New(config(tt.config), battery.Options{Generates: true, Paths: allPaths})
		assert.True(t, slices.ContainsFunc(p.Paths, func(x battery.Path) bool {
			_, numbers, _ := strings.Cut(x.Name, ":")
			return strings.HasPrefix(x.Name, tt.path) && slices.Contains(strings.Split(numbers, ","), tt.has)
		}), tt.reason)
		assert.LessOrEqual(t, p.Cost.Time, battery.DefaultBudget, tt.reason)
	}
}

const page = "../../docs/models.md"

// everything is a model that has all that is planned for.
func everything() (checkpoint.Config, battery.Options) {
	c := config(map[string]any{"sliding_window": 24.0, "max_position_embeddings": 512.0, "vocab_size": 1024.0,
		"rope_scaling": map[string]any{"original_max_position_embeddings": 96.0}, "vision_config": map[string]any{"image_size": 24.0, "patch_size": 8.0}})
	return c, battery.Options{Generates: true, Text: true, Chat: "system tools image", Paths: allPaths, Images: checkpoint.Config{"size": map[string]any{"height": 24.0}}}
}

// The page has a row for each case and boundary that is planned.
func TestDocumented(t *testing.T) {
	c, options := everything()
	p := battery.New(c, options)
	require.Empty(t, p.NotTried)
	var b strings.Builder
	b.WriteString("| case | what it is for |\n|---|---|\n")
	for _, x := range p.Cases {
		fmt.Fprintf(&b, "| `%s` | %s |\n", x.Name, x.For)
	}
	at := slices.IndexFunc(p.Paths, func(x battery.Path) bool { return strings.HasPrefix(x.Name, "lengths:") })
	require.GreaterOrEqual(t, at, 0)
	lengths := strings.TrimPrefix(p.Paths[at].Name, "lengths:")
	b.WriteString("\n| boundary | `lengths` |\n|---|---|\n")
	for _, at := range battery.Boundaries(c) {
		var crossed []string
		for _, n := range []int{at.At - 1, at.At, at.At + 1, 2 * at.At} {
			if text := strconv.Itoa(n); slices.Contains(strings.Split(lengths, ","), text) && (n != 2*at.At || at.Key != "") {
				crossed = append(crossed, text)
			}
		}
		require.NotEmpty(t, crossed, at)
		fmt.Fprintf(&b, "| %s | %s |\n", at, strings.Join(crossed, ", "))
	}
	const begin, end = "<!-- the battery -->\n", "<!-- end -->"
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(data), begin)
	require.True(t, ok, "the page has the place of the tables")
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	toy.Kept(t, filepath.Join("..", page), head+begin+"\n"+b.String()+"\n"+end+tail)
}

func TestImages(t *testing.T) {
	for _, tt := range []struct {
		processor, vision map[string]any
		want              []string
		tokens            int
		reason            string
	}{
		{map[string]any{"crop_size": map[string]any{"height": 336.0}, "size": map[string]any{"shortest_edge": 336.0}}, map[string]any{"image_size": 336.0, "patch_size": 14.0},
			[]string{"picture-336x336-1.png"}, 576, "each image is made one of 336"},
		{map[string]any{"patch_size": 14.0, "merge_size": 2.0, "size": map[string]any{"shortest_edge": 3136.0, "longest_edge": 1e7}}, map[string]any{"spatial_merge_size": 2.0},
			[]string{"picture-112x112-1.png"}, 16, "a token for each 28 × 28 pixels"},
		{map[string]any{"patch_size": 14.0, "merge_size": 2.0, "min_pixels": 40000.0}, nil, []string{"picture-224x224-1.png"}, 64, "a smaller one would be enlarged"},
		{map[string]any{"patch_size": map[string]any{"height": 16.0, "width": 16.0}, "size": map[string]any{"longest_edge": 1024.0}}, map[string]any{"image_size": 1024.0},
			[]string{"picture-64x64-1.png"}, 16, "a token for each patch"},
		{map[string]any{"max_image_size": map[string]any{"longest_edge": 64.0}, "size": map[string]any{"longest_edge": 256.0}, "image_seq_length": 4.0},
			map[string]any{"patch_size": 8.0}, []string{"picture-64x64-1.png"}, 8, "one tile, and the whole image"},
	} {
		c := config(map[string]any{"vision_config": tt.vision, "vocab_size": 32000.0})
		p := battery.New(c, battery.Options{Generates: true, Images: tt.processor, Paths: allPaths})
		i := slices.IndexFunc(p.Cases, func(c battery.Case) bool { return c.Name == "auto-image" })
		require.GreaterOrEqual(t, i, 0, tt.reason)
		assert.Equal(t, tt.want, p.Cases[i].Images[0], tt.reason)
		assert.Contains(t, p.Cases[i].Prompts[0], "<image>", "without a template the prompt has the image")
		assert.InDelta(t, tt.tokens, p.Cases[i].Cost.Tokens-len(p.Cases[i].Prompts[0])/3-p.Cases[i].Steps+1, 1, tt.reason)
	}
	none := battery.New(config(nil), battery.Options{Generates: true, Images: checkpoint.Config{"size": 24.0}})
	assert.False(t, slices.ContainsFunc(none.Cases, func(c battery.Case) bool { return c.Images != nil }), "the model has no eyes")
}

// The plans of models of each kind: inputs, execution paths, what they cost, and what is not tried.
func TestPlans(t *testing.T) {
	full, options := everything()
	options.Chat = ""
	vision := func(processor, of map[string]any) (checkpoint.Config, battery.Options) {
		return config(map[string]any{"vision_config": of, "vocab_size": 32000.0, "max_position_embeddings": 1024.0}),
			battery.Options{Generates: true, Images: processor, Paths: allPaths}
	}
	tiled, tiles := vision(map[string]any{"max_image_size": map[string]any{"longest_edge": 64.0}, "do_image_splitting": false},
		map[string]any{"patch_size": 8.0, "hidden_size": 48.0})
	patched, patches := vision(map[string]any{"patch_size": 14.0, "merge_size": 2.0, "min_pixels": 40000.0}, map[string]any{"hidden_size": 32.0, "depth": 3.0})
	generates := battery.Options{Generates: true, Paths: allPaths}
	wide, seen := everything()
	wide["hidden_size"], wide["intermediate_size"], wide["mm_tokens_per_image"] = 4096.0, 11008.0, 256.0
	talks := battery.Options{Generates: true, Text: true, Chat: "tools", Paths: allPaths}
	var b strings.Builder
	for _, m := range []struct {
		name    string
		config  checkpoint.Config
		options battery.Options
	}{
		{"tiny Llama", config(nil), battery.Options{Generates: true, Text: true, Paths: allPaths}},
		{"with everything", full, options},
		{"large, with a window", config(map[string]any{"hidden_size": 4096.0, "intermediate_size": 11008.0, "num_hidden_layers": 32.0, "vocab_size": 32000.0,
			"sliding_window": 1024.0}), generates},
		{"large, more blocks are asked for", config(map[string]any{"hidden_size": 4096.0, "num_hidden_layers": 32.0}),
			battery.Options{Generates: true, Paths: []string{"chunked:500"}, MaxLayers: 4, Budget: 4 * time.Minute, Bytes: 1 << 30}},
		{"experts", config(map[string]any{"num_experts": 8.0, "num_experts_per_tok": 2.0, "moe_intermediate_size": 96.0, "first_k_dense_replace": 1.0,
			"conv_L_cache": 3.0, "max_position_embeddings": 100.0}), generates},
		{"an encoder that says little", checkpoint.Config{"dim": 32.0, "intermediate_size": 0.0, "n_layers": 2.0, "n_positions": 66.0, "pad_token_id": 1.0},
			battery.Options{Paths: []string{"batch", "padding:right", "mask"}}},
		{"an engine that wants positions after a prompt", config(map[string]any{"max_position_embeddings": 100.0}),
			battery.Options{Generates: true, Ahead: battery.AheadOfMAX}},
		{"tiles", tiled, tiles},
		{"patches", patched, patches},
		{"images beyond the budget, but for one", wide, seen},
		{"texts of a token for each letter, longer than the model has positions for", config(map[string]any{"max_position_embeddings": 512.0}), talks},
		{"texts of a token for a few letters", config(map[string]any{"vocab_size": 32000.0, "max_position_embeddings": 512.0}), talks},
		{"roberta: positions are counted from behind the token of padding", config(map[string]any{"max_position_embeddings": 514.0, "pad_token_id": 1.0}),
			battery.Options{Paths: []string{"batch", "padding:right", "lengths", "repeat", "mask"}}},
		{"images without a processor, an engine with few paths", config(map[string]any{"max_position_embeddings": 64.0, "vision_config": map[string]any{}}),
			battery.Options{Generates: true, Paths: []string{"lengths", "prefix"}}},
		{"a template of turns alone", config(nil), battery.Options{Generates: true, Chat: "{{ messages }}"}},
		{"a template with a system message", config(nil), battery.Options{Generates: true, Chat: "{% if role == 'system' %}"}},
		{"a template that refuses one", config(nil),
			battery.Options{Generates: true, Chat: "{% if role == 'system' %}{{ raise_exception('System role not supported') }}"}},
	} {
		p := battery.New(m.config, m.options)
		fmt.Fprintf(&b, "%s: %d tokens, %s, %d blocks\n", m.name, p.Cost.Tokens, p.Cost, p.MaxLayers)
		for _, c := range p.Cases {
			first := []int{}
			if c.TokenIDs != nil {
				first = c.TokenIDs[0][:min(len(c.TokenIDs[0]), 6)]
			}
			said := ""
			for _, m := range c.Messages {
				said += " " + m.Role
			}
			fmt.Fprintf(&b, "  %s: %d steps, %d tokens, %.4g MB, %v %v %v%s, %d tools\n", c.Name, c.Steps, c.Cost.Tokens, float64(c.Cost.Bytes)/1e6,
				c.Cost.Time.Round(time.Millisecond), first, c.Images, said, len(c.Tools))
		}
		for _, x := range p.Paths {
			fmt.Fprintf(&b, "  %s: %d tokens, %.4g MB, %v\n", x.Name, x.Cost.Tokens, float64(x.Cost.Bytes)/1e6, x.Cost.Time.Round(time.Millisecond))
		}
		for _, text := range p.NotTried {
			fmt.Fprintf(&b, "  not tried: %s\n", text)
		}
	}
	toy.Kept(t, "plans.txt", b.String())
}
