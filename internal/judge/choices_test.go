package judge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/toy"
)

// A router chooses one of four experts for each of three tokens; nothing but the golden says what is right.
func TestTies(t *testing.T) {
	golden := []float32{0.5, 0.502, -1, 0, 2, 1, 0, -1, -2, 0, 1, 3}
	for _, r := range []struct {
		encoding, reason string
		scores           []float32 // the candidate's of the first token
		chosen           []int64
		rest             float32 // what it has in place of the golden's first row behind the choice
		place            string
	}{
		{"bfloat16", "the same choice", []float32{0.5, 0.502, -1, 0}, []int64{1, 0, 3}, 1, ""},
		{"bfloat16", "two that are nearer than the noise", []float32{0.502, 0.5, -1, 0}, []int64{0, 0, 3}, 5, ""},
		{"bfloat16", "the candidate's scores need not say so: they are rounded, too", []float32{0.5, 0.502, -1, 0}, []int64{0, 0, 3}, 5, ""},
		{"bfloat16", "the third best", []float32{0.5, 0.502, -1, 0}, []int64{3, 0, 3}, 5, "m.gate"},
		{"bfloat16", "another token's is no tie", []float32{0.5, 0.502, -1, 0}, []int64{0, 1, 3}, 5, "m.gate"},
		{"bfloat16", "no such expert", []float32{0.5, 0.502, -1, 0}, []int64{7, 0, 3}, 5, "m.gate"},
		{"float32", "float32 knows no ties", []float32{0.502, 0.5, -1, 0}, []int64{0, 0, 3}, 5, "m.gate"},
	} {
		x := wave(t, 1, 0, 3, 8)
		runOf := func(scores []float32, chosen []int64, first float32) *dump.Run {
			y := change(t, x, func(row, col int) float64 {
				if row == 0 {
					return float64(first) * x.At(col)
				}
				return 0.5 + x.At(row*8+col)
			})
			all := append(append([]float32{}, scores...), golden[4:]...)
			got := run("torch", port{"m.gate-input_0", x}, port{"m.gate-output_0", toy.Of(t, all, 3, 4)}, port{"m.gate-output_1", toy.Of(t, chosen, 3, 1)},
				port{"m.experts-output", y}, port{"m-output", y})
			got.Info.Encoding.Compute = r.encoding
			return got
		}
		c := compareRuns(t, runOf(golden[:4], []int64{1, 0, 3}, 1), runOf(r.scores, r.chosen, r.rest))
		place := ""
		if c.Verdict != nil {
			place = c.Verdict.Layer
		}
		assert.Equal(t, r.place, place, "%s: %s", r.encoding, r.reason)
	}
}
