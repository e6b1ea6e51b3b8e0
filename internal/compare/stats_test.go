package compare_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

func TestStats(t *testing.T) {
	large := make([]float64, 3*compare.PieceLen+5)
	for i := range large {
		large[i] = 1000 + float64(i%3)
	}
	for _, r := range []struct {
		values []float64
		want   compare.Stats
		reason string
	}{
		{nil, compare.Stats{}, "empty"},
		{[]float64{3}, compare.Stats{Min: 3, Max: 3, Mean: 3}, "one"},
		{[]float64{nan, 1, -2, inf, 4, -inf}, compare.Stats{Min: -2, Max: 4, Mean: 1, NaN: 1, Inf: 2}, "others are counted"},
		{[]float64{nan, inf}, compare.Stats{NaN: 1, Inf: 1}, "nothing is finite"},
		{large, compare.Stats{Min: 1000, Max: 1002, Mean: 1001}, "several blocks"},
	} {
		for _, d := range []tensor.DType{tensor.F64, tensor.F32} {
			var data []byte
			for _, v := range r.values {
				data = appendValue(data, d, v)
			}
			got, err := compare.StatsOf(fromBytes(t, d, []int{len(r.values)}, data))
			require.NoError(t, err)
			assert.InDelta(t, r.want.Mean, got.Mean, 1e-3, r.reason)
			got.Mean = r.want.Mean
			assert.Equal(t, r.want, got, r.reason)
		}
	}
}
