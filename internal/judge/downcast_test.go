package judge_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
)

// A block of which every number has 11 bits is downcast; where all blocks are like that, errors add up,
// and no one of them is proven to have made them.
func TestDowncastOfAllBlocks(t *testing.T) {
	const blocks = 3
	rounded := func(x float64) float64 {
		return float64(math.Float32frombits((math.Float32bits(float32(x)) + 1<<12) &^ (1<<13 - 1)))
	}
	model := func(rounds func(block int) bool) *dump.Run {
		x := normal(t, 3, 12, 8)
		ports := []port{{"m.embed-output", x}}
		for i := range blocks {
			in := x
			ports = append(ports, port{fmt.Sprintf("m.layers.%d-input_0", i), in})
			x = change(t, in, func(r, c int) float64 {
				y := 1.1*in.At(8*r+c) + 0.013*math.Sin(7*in.At(8*r+c))
				if rounds(i) {
					return rounded(y)
				}
				return y
			})
			ports = append(ports, port{fmt.Sprintf("m.layers.%d-output", i), x})
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
