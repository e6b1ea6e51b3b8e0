package battery_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/battery"
	"github.com/goparity/goparity/internal/checkpoint"
)

// The plans of models of each kind: inputs, execution paths, what they cost, and what is not tried.
func TestPlans(t *testing.T) {
	full, options := everything()
	options.Chat = ""
	vision := func(processor, of map[string]any) (checkpoint.Config, battery.Options) {
		return config(map[string]any{"vision_config": of, "vocab_size": 32000.0, "max_position_embeddings": 1024.0}),
			battery.Options{Generates: true, Images: processor, Paths: allPaths}
	}
	tiled, tiles := vision(map[string]any{"max_image_size": map[string]any{"longest_edge": 64.0}, "do_image_splitting": false}, map[string]any{"patch_size": 8.0, "hidden_size": 48.0})
	patched, patches := vision(map[string]any{"patch_size": 14.0, "merge_size": 2.0, "min_pixels": 40000.0}, map[string]any{"hidden_size": 32.0, "depth": 3.0})
	generates := battery.Options{Generates: true, Paths: allPaths}
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
		{"an engine that wants positions after a prompt", config(map[string]any{"max_position_embeddings": 100.0}), battery.Options{Generates: true, Ahead: battery.AheadOfMAX}},
		{"tiles", tiled, tiles},
		{"patches", patched, patches},
	} {
		p := battery.New(m.config, m.options)
		fmt.Fprintf(&b, "%s: %d tokens, %s, %d blocks\n", m.name, p.Cost.Tokens, p.Cost, p.MaxLayers)
		for _, c := range p.Cases {
			first := []int{}
			if c.TokenIDs != nil {
				first = c.TokenIDs[0][:min(len(c.TokenIDs[0]), 6)]
			}
			fmt.Fprintf(&b, "  %s: %d steps, %d tokens, %.4g MB, %v %v %v\n", c.Name, c.Steps, c.Cost.Tokens, float64(c.Cost.Bytes)/1e6, c.Cost.Time.Round(time.Millisecond), first, c.Images)
		}
		for _, x := range p.Paths {
			fmt.Fprintf(&b, "  %s: %d tokens, %.4g MB, %v\n", x.Name, x.Cost.Tokens, float64(x.Cost.Bytes)/1e6, x.Cost.Time.Round(time.Millisecond))
		}
		for _, text := range p.NotTried {
			fmt.Fprintf(&b, "  not tried: %s\n", text)
		}
	}
	const file = "testdata/plans.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), b.String(), "go test ./internal/battery -update writes it")
}
