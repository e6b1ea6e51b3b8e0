package localise_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/localise"
)

// BenchmarkFirst localises in 5,000 layers: a bug in the middle, and noise that only adds up, where
// every event is looked at closely.
func BenchmarkFirst(b *testing.B) {
	const blocks, perBlock = 500, 10
	records := func(errorOf func(block, layer int) float64) []row {
		var out []row
		add := func(layer, port string, e float64) {
			out = append(out, row{entry(layer, port, len(out)), localise.Record{Joined: true, Agrees: e <= 3e-5,
				Error: e, Epsilon: 1e-7, Len: 64}})
		}
		for i := range blocks {
			for j := range perBlock - 1 {
				l := fmt.Sprintf("model.layers.%d.sub.%d", i, j)
				add(l, "input_0", errorOf(i, j))
				add(l, "output", errorOf(i, j+1))
			}
			add(fmt.Sprintf("model.layers.%d", i), "input_0", errorOf(i, 0))
			add(fmt.Sprintf("model.layers.%d", i), "output", errorOf(i, perBlock))
		}
		add("model", "output", errorOf(blocks, 0))
		return out
	}
	for _, bb := range []struct {
		name, kind string
		records    []row
	}{
		{"bug", localise.KindLocal, records(func(i, j int) float64 {
			if i > blocks/2 || i == blocks/2 && j > 3 {
				return 0.3
			}
			return 1e-6
		})},
		{"drift", localise.KindDrift, records(func(i, j int) float64 { return 1e-6 + 2e-7*float64(i*perBlock+j) })},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				v := localise.First(run(bb.records))
				require.NotNil(b, v)
				require.Equal(b, bb.kind, v.Kind)
			}
		})
	}
}
