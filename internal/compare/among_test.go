package compare_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// A row of one forward pass is measured against the rows of all.
func TestRowNorm(t *testing.T) {
	one := func(v float64) *tensor.Tensor { return of(t, []float64{v}, 1, 1) }
	norm := func() float64 { return 1 }
	for _, tt := range []struct {
		golden, actual, encoded float64
		refs                    compare.References
		criteria                compare.Criteria
		pass                    bool
		relL2                   float64
		reason                  string
	}{
		{1e-3, 1.01e-3, 0, compare.References{}, compare.Criteria{compare.RelL2: 1e-4}, false, 1e-2, "the golden has all rows"},
		{1e-3, 1.01e-3, 0, compare.References{RowNorm: norm}, compare.Criteria{compare.RelL2: 1e-4}, true, 1e-5, "near zero by chance"},
		{1e-3, 2e-3, 0, compare.References{RowNorm: norm}, compare.Criteria{compare.RelL2: 1e-4}, false, 1e-3, "an error beside other rows, too"},
		{2, 2.1, 0, compare.References{RowNorm: norm}, compare.Criteria{compare.RelL2: 1e-4}, false, 0.05, "a row larger than others by itself"},
		{1e-3, 5e-3, 1.1e-3, compare.References{Encoding: tensor.BF16}, compare.Criteria{compare.Cost: 3}, false, 4, "what it costs of a row near zero"},
		{1e-3, 5e-3, 1.1e-3, compare.References{Encoding: tensor.BF16, RowNorm: norm}, compare.Criteria{compare.Cost: 3}, true, 4e-3, "and of the others"},
		{1e-3, 0.2, 1.1e-3, compare.References{Encoding: tensor.BF16, RowNorm: norm}, compare.Criteria{compare.Cost: 3}, false, 0.199, "too much for any"},
	} {
		if tt.refs.Encoding != 0 {
			tt.refs.Encoded = one(tt.encoded)
		}
		v, err := tt.criteria.Judge(one(tt.golden), one(tt.actual), tt.refs)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.pass, v.Pass, "%s: %+v", tt.reason, v.Violations)
		assert.InEpsilon(t, tt.relL2, v.Result.RelL2, 1e-9, tt.reason)
		assert.InEpsilon(t, tt.relL2, v.Result.WorstRow.RelL2, 1e-9, tt.reason)
	}
	long := of(t, make([]float64, 64), 1, 64)
	_, err := compare.Criteria{compare.RelL2: 1e-4}.Judge(long, long, compare.References{RowNorm: func() float64 { panic("long rows have a norm of their own") }})
	assert.NoError(t, err)
}
