package battery_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/battery"
	"github.com/goparity/goparity/internal/checkpoint"
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

// A text that is longer than the model has positions for would end the run of all cases.
func TestTextsFit(t *testing.T) {
	for _, tt := range []struct {
		vocab, positions float64
		tools            bool
		reason           string
	}{
		{320, 512, false, "a token for each letter"},
		{320, 4096, true, "there are positions enough"},
		{32000, 512, true, "a token for a few letters"},
	} {
		p := battery.New(config(map[string]any{"vocab_size": tt.vocab, "max_position_embeddings": tt.positions}),
			battery.Options{Generates: true, Text: true, Chat: "tools", Paths: allPaths})
		planned := slices.ContainsFunc(p.Cases, func(c battery.Case) bool { return c.Name == "auto-tools" })
		assert.Equal(t, tt.tools, planned, tt.reason)
		assert.Equal(t, !tt.tools, strings.Contains(strings.Join(p.NotTried, "\n"), "auto-tools: has about"), tt.reason)
	}
}

func TestNewOfEncoder(t *testing.T) {
	roberta := config(map[string]any{"max_position_embeddings": 514.0, "pad_token_id": 1.0})
	p := battery.New(roberta, battery.Options{Paths: []string{"batch", "padding:right", "lengths", "repeat", "mask"}})
	assert.Len(t, p.Cases[0].TokenIDs[0], 512, "positions are counted from behind the token of padding")
	for _, c := range p.Cases {
		assert.Equal(t, 1, c.Steps)
	}
	var paths []string
	for _, x := range p.Paths {
		kind, _, _ := strings.Cut(x.Name, ":")
		paths = append(paths, kind)
	}
	assert.Equal(t, []string{"lengths", "batch", "padding", "repeat", "mask"}, paths)
	assert.Empty(t, p.NotTried)
}

func TestNotTried(t *testing.T) {
	p := battery.New(config(map[string]any{"max_position_embeddings": 64.0, "vision_config": map[string]any{}}), battery.Options{Generates: true, Paths: []string{"lengths", "prefix"}})
	assert.Equal(t, []string{"images: the model's folder has no processor of them: give a case some", "the execution path decode: the engine has none", "the execution path chunked: the engine has none",
		"the execution path turns: the engine has none",
		"the execution path batch: the engine has none", "the execution path padding: the engine has none",
		"the execution path prefix: no case is long enough", "the execution path repeat: the engine has none"}, p.NotTried)
}
