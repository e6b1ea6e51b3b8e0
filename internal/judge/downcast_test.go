package judge_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/toy"
)

// A block of which every number has 11 bits is downcast; where all blocks are like that, errors add up,
// and no one of them is proven to have made them.
func TestDowncastOfAllBlocks(t *testing.T) {
	const blocks = 3
	rounded := func(x float64) float64 {
		return float64(math.Float32frombits((math.Float32bits(float32(x)) + 1<<12) &^ (1<<13 - 1)))
	}
	model := func(rounds func(block int) bool) *dump.Run {
		x := decayed(96, 0)
		ports := []port{{"m.embed-output", toy.Of(t, x, 12, 8)}}
		for i := range blocks {
			ports = append(ports, port{fmt.Sprintf("m.layers.%d-input_0", i), toy.Of(t, x, 12, 8)})
			x = mapped(x, func(v float64) float64 { return 1.1*v + 0.013*math.Sin(7*v) })
			if rounds(i) {
				x = mapped(x, rounded)
			}
			ports = append(ports, port{fmt.Sprintf("m.layers.%d-output", i), toy.Of(t, x, 12, 8)})
		}
		return run("torch", ports...)
	}
	golden := model(func(int) bool { return false })
	for _, c := range []struct {
		rounds func(int) bool
		proven bool
		reason string
	}{
		{func(i int) bool { return i == 0 }, true, "one block alone"},
		{func(int) bool { return true }, false, "how the run computes"},
	} {
		r := compareRuns(t, golden, model(c.rounds)).Report("x", true)
		proven := slices.ContainsFunc(r.Causes, func(k report.Cause) bool { return k.Proven && k.ID == "dtype/downcast" })
		assert.Equal(t, report.Fail, r.Verdict, c.reason)
		assert.Equal(t, c.proven, proven, "%s: %v", c.reason, r.Causes)
	}
}

// decayed is a sequence of numbers that tell something, alike in all tests.
func decayed(n int, phase float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(math.Sin(float64(i*i)*0.7+phase) * 2)
	}
	return out
}

func mapped(x []float32, f func(float64) float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(f(float64(v)))
	}
	return out
}
