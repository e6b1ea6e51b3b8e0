package compare_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// around makes numbers around a mean.
func around(t *testing.T, seed uint64, mean, width float64, shape ...int) *tensor.Tensor {
	t.Helper()
	n, err := tensor.NumElems(shape)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(mean + width*rng.NormFloat64())
	}
	return of(t, v, shape...)
}

func TestVacuous(t *testing.T) {
	const next = "the tensor of layers.1"
	plain := around(t, 1, 0, 1, 2, 9, 64)
	stream := around(t, 2, 0, 1, 2, 9, 64)
	grown := make([]float32, stream.Len())
	for i := range grown {
		grown[i] = float32(stream.At(i) + 0.2*plain.At(i))
	}
	later := of(t, grown, stream.Shape()...)
	beside := []compare.Beside{{Name: next, Tensor: later}}
	flat, err := later.Reshape(later.Len())
	require.NoError(t, err)
	for _, tt := range []struct {
		golden   *tensor.Tensor
		criteria compare.Criteria
		beside   []compare.Beside
		want     string
		reason   string
	}{
		{plain, compare.Criteria{compare.Atol: 1e-3, compare.Rtol: 1e-3}, nil, "", "a limit that means something"},
		{plain, compare.Criteria{compare.RelL2: 0.3}, nil, "", "a wide one that is none of the others"},
		{plain, compare.Criteria{compare.Atol: 10, compare.Rtol: 0}, nil, "zeros", "wider than the numbers"},
		{around(t, 3, 0, 1e-4, 4, 16), compare.Criteria{compare.Atol: 1e-3, compare.Rtol: 1e-3}, nil, "zeros", "small numbers"},
		{plain, compare.Criteria{compare.MSE: 2}, nil, "zeros", "the mean square of the golden is 1"},
		{plain, compare.Criteria{compare.SNR: 1e-9}, nil, "one number everywhere, its mean,", "zeros have 0 dB, the mean a little more"},
		{around(t, 4, 5, 1, 4, 64), compare.Criteria{compare.RelL2: 0.5}, nil, "one number everywhere, its mean,", "a large mean"},
		{around(t, 4, 5, 1, 4, 64), compare.Criteria{compare.Cosine: 0.9}, nil, "one number everywhere, its mean,", "a cosine of the mean"},
		{around(t, 5, 0, 1e-3, 4, 16), compare.Criteria{compare.KL: 0.01}, nil, "zeros", "flat logits"},
		{around(t, 6, 1, 0.02, 1, 64), compare.Criteria{compare.ULP: 1 << 22}, nil, "one number everywhere, its mean,", "steps of half an octave"},
		{stream, compare.Criteria{compare.RelL2: 0.3}, beside, next, "a residual stream changes by less"},
		{stream, compare.Criteria{compare.RelL2: 0.1}, beside, "", "and by more than that"},
		{stream, compare.Criteria{compare.RelL2: 0.3}, []compare.Beside{{Name: next, Tensor: flat}}, "", "a tensor of another shape is not that of a layer beside"},
		{around(t, 7, 0, 0, 4, 16), compare.Criteria{compare.Atol: 1, compare.Rtol: 0}, nil, "", "a golden of zeros: the defaults take zeros, too"},
		{around(t, 7, 3, 0, 4, 16), compare.Criteria{compare.RelL2: 0.5}, []compare.Beside{{Name: next, Tensor: around(t, 7, 3, 0, 4, 16)}}, "",
			"a constant golden, and a layer that does nothing"},
		{around(t, 8, 0, 1, 3000, 64), compare.Criteria{compare.Atol: 10, compare.Rtol: 0}, nil, "zeros", "a part of a large tensor"},
		{around(t, 9, 1, 1e-3, 1, 1), compare.Criteria{compare.Atol: 0.5, compare.Rtol: 0}, nil, "", "one number"},
		{around(t, 9, 1, 1e-3, 1, 1), compare.Criteria{compare.Atol: 2, compare.Rtol: 0}, nil, "zeros", "one number, and none"},
		{of(t, []int64{1, 2, 3}, 3), compare.Criteria{compare.Atol: 10, compare.Rtol: 0}, nil, "", "integers are compared exactly"},
	} {
		got, err := tt.criteria.Vacuous(tt.golden, tt.golden, compare.References{}, tt.beside)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, got, tt.reason)
	}
}

// Rows, or the halves of rows, that are alike but for a fiftieth.
func TestVacuousOrders(t *testing.T) {
	random := around(t, 3, 0, 1, 8, 16)
	row, column := make([]float32, 8*16), make([]float32, 8*16)
	for i := range row {
		row[i] = float32(random.At(i%64) * (1 + 0.02*float64(i/64)))
		column[i] = float32(random.At(i-i%16+i%8) * (1 + 0.02*float64(i%16/8)))
	}
	for want, values := range map[string][]float32{"its rows in another order": row, "the elements of its rows in another order": column} {
		g := of(t, values, 8, 16)
		got, err := compare.Criteria{compare.RelL2: 0.1}.Vacuous(g, g, compare.References{}, nil)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := compare.Criteria{compare.TopK: 99}.Vacuous(around(t, 1, 0, 1, 2, 8), around(t, 1, 0, 1, 2, 8), compare.References{}, nil)
	var misuse *compare.MisuseError
	assert.ErrorAs(t, err, &misuse)
}
