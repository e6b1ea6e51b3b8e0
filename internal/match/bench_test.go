package match_test

import (
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
