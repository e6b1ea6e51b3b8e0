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
	assert.True(t, generation.WithinNoise(0.01, math.NaN(), 0.02), "the candidate does not tell its own gap")
}
