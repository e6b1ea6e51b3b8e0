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
		golden := of(t, g, 7, 33)
		actual := of(t, a, 7, 33)
		res := tensors(t, golden, actual, compare.Tolerance{Rtol: 1e-3, Atol: 1e-4})
		fmt.Fprintf(h, "%x %x %x %x %x %d\n", res.RelL2, res.CosineDistance, res.MSE, res.WorstRow.RelL2, res.MaxAbs.Value, res.Mismatches)
		s, err := compare.StatsOf(golden)
		require.NoError(t, err)
		fmt.Fprintf(h, "%x\n", s.Mean)
	}
	assert.Contains(t, []string{
		"55d2971d73003a67d8c783d9a917070cf6dd8ed944052fb8ed0cbceabd9c5e64", // by the kernels of amd64, which sum in another order
		"0183110f5661089571467d477c75f4677f8766144f97b28a5775c25782bf736f", // in Go
	}, hex.EncodeToString(h.Sum(nil)))
}
