package match_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
)

// BenchmarkRuns joins 5,000 layers (16,000 golden ports), and two runs of that size that have no
// name in common.
func BenchmarkRuns(b *testing.B) {
	golden, actual := invent(b, 380, llamaTorch), invent(b, 380, llamaMAX)
	rename := swap("layers.layers", "stack", "_proj", "_lin", "norm", "scale", "mlp", "ffn", "attn", "mixer",
		"embed", "lookup")
	strangers := invent(b, 380, rename.Replace(llamaMAX))
	for _, bb := range []struct {
		name   string
		actual []match.Port
	}{{"joined", actual}, {"strangers", strangers}} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				_, err := match.Runs(golden, bb.actual, match.Options{})
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkLayers shows that nothing is quadratic in layers: 10,000 a side take ten times as long
// as 1,000.
func BenchmarkLayers(b *testing.B) {
	rename := match.Options{Rules: []match.Rule{
		{Golden: []string{"h.*.mixer"}, Candidate: []string{"layers.*.blender"}}}}
	tests := []struct {
		name           string
		perBlock       int
		golden, actual string
		opt            match.Options
	}{
		{"equal", 2, "model.layers.*.attn 5 > 5\nmodel.layers.* 5 > 5",
			"model.layers.*.attn 5 > 5\nmodel.layers.* 5 > 5", match.Options{}},
		{"renamed by a rule", 1, "model.h.*.mixer 5 > 5", "model.layers.*.blender 5 > 5", rename},
		{"a gap in each block", 2, "model.layers.*.a 5 > 5\nmodel.layers.*.mixer 5 > 5",
			"model.layers.*.a 5 > 5\nmodel.layers.*.blender 5 > 5", match.Options{}},
		{"fused beside its parts", 4,
			"model.layers.*.qkv 5 > 5\nmodel.layers.*.q 5 > 5\nmodel.layers.*.k 5 > 5\nmodel.layers.*.v 5 > 5",
			"model.layers.*.q 5 > 5\nmodel.layers.*.k 5 > 5\nmodel.layers.*.v 5 > 5\nmodel.layers.*.x 5 > 5",
			match.Options{}},
		{"no inputs", 1, "model.layers.*.a 5 > 5", "model.layers.*.a > 5", match.Options{}},
		{"numbers within words", 1, "model.block_*.norm 5 > 5", "model.stage_*.norm 5 > 5", match.Options{}},
	}
	for _, tt := range tests {
		for _, layers := range []int{1_000, 10_000} {
			golden, actual := invent(b, layers/tt.perBlock, tt.golden), invent(b, layers/tt.perBlock, tt.actual)
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(tt.name, " ", "_"), layers), func(b *testing.B) {
				for b.Loop() {
					_, err := match.Runs(golden, actual, tt.opt)
					require.NoError(b, err)
				}
			})
		}
	}
}
