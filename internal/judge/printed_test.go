package judge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/toy"
)

// A log that shows the digits of every value is judged as a tensor is: a value near zero is noise
// to the last digit.
func TestPrintedInFull(t *testing.T) {
	values := []float32{1, -2, 1e-6, 3}
	for _, tt := range []struct {
		at     int
		add    float32
		pass   bool
		reason string
	}{
		{2, 1e-8, true, "1 % of a value that is nothing beside the others"},
		{0, 1e-3, false, "far beyond float32's noise"},
	} {
		golden := run("torch", port{"m.a-output", toy.Of(t, values, 1, 4)})
		changed := append([]float32(nil), values...)
		changed[tt.at] += tt.add
		actual := run("max", port{"m.a-output", toy.Of(t, changed, 1, 4)})
		actual.Entries[0].Printed = &dump.Printed{Known: []int{0, 1, 2, 3}, Decimals: 9, Relative: true}
		p := find(t, compareRuns(t, golden, actual), "m.a-output")
		assert.Equal(t, tt.pass, p.Base.Pass, tt.reason)
	}
}
