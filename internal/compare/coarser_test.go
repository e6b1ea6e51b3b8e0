package compare_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

func TestCoarser(t *testing.T) {
	for _, c := range []struct {
		g, a, want tensor.DType
		reason     string
	}{
		{tensor.F32, tensor.BF16, tensor.BF16, "the type with fewer bits of mantissa"},
		{tensor.F16, tensor.BF16, tensor.BF16, "also of two types of one size"},
		{tensor.F32, tensor.F32, tensor.F32, "one type"},
		{tensor.I64, tensor.F32, tensor.I64, "the integers of two kinds, which are exact"},
		{tensor.Bool, tensor.BF16, tensor.Bool, "whatever the precision of the floats"},
		{tensor.I64, tensor.I32, tensor.I64, "the wider of two integers"},
	} {
		assert.Equal(t, c.want, compare.Coarser(c.g, c.a), c.reason)
		assert.Equal(t, c.want, compare.Coarser(c.a, c.g), "turned: "+c.reason)
	}
}
