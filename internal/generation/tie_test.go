package generation_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/tensor"
)

func TestNoise(t *testing.T) {
	floor, eps := compare.Floor(tensor.BF16).RowRelL2, tensor.BF16.Epsilon()
	assert.Equal(t, 2*floor, generation.Noise(tensor.BF16, 2, 0), "of the spread")
	assert.Equal(t, 2*eps*1000, generation.Noise(tensor.BF16, 0, 1000), "a rounding of each of two large scores")
}

func TestWithinNoise(t *testing.T) {
	for _, c := range []struct {
		gap, own, noise float64
		want            bool
		reason          string
	}{
		{0.01, -0.005, 0.02, true, "both are near"},
		{0.01, math.NaN(), 0.02, true, "the candidate does not tell its own"},
		{0.03, -0.005, 0.02, false, "the reference is sure"},
		{0.01, -0.03, 0.02, false, "the candidate is sure of another: its scores are wrong"},
	} {
		assert.Equal(t, c.want, generation.WithinNoise(c.gap, c.own, c.noise), c.reason)
	}
}
