package compare_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// Every machine calculates the same figures, bit for bit: none adds a product that was not rounded.
// make isa runs this in Go alone and for arm64.
func TestFiguresAreThoseOfEveryMachine(t *testing.T) {
	h := sha256.New()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		g, a := make([]float64, 7*33), make([]float64, 7*33)
		for i := range g {
			g[i] = math.Ldexp(float64(r.Int32())/3, r.IntN(20)-40)
			noise := float64(r.Int32()) / 3e12
			a[i] = g[i] + noise
		}
		golden, err := tensor.Of(g, 7, 33)
		require.NoError(t, err)
		actual, err := tensor.Of(a, 7, 33)
		require.NoError(t, err)
		res, err := compare.Tensors(golden, actual, compare.Tolerance{Rtol: 1e-3, Atol: 1e-4})
		require.NoError(t, err)
		fmt.Fprintf(h, "%x %x %x %x %x %d\n", res.RelL2, res.CosineDistance, res.MSE, res.WorstRow.RelL2, res.MaxAbs.Value, res.Mismatches)
		s, err := compare.StatsOf(golden)
		require.NoError(t, err)
		fmt.Fprintf(h, "%x %x %x\n", s.Mean, s.Std, s.L2)
	}
	assert.Contains(t, []string{
		"fe06bb0cec29856677923a461d77bcbed596447d2a0e3e3131c38c162c086241", // by the kernels of amd64, which sum in another order
		"8758dd0957f8a347f1ce323d515650cef28fd93ee1405dc8eeea34c1a7c12096", // in Go
	}, hex.EncodeToString(h.Sum(nil)))
}
