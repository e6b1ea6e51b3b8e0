package compare_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
)

// number is a float64 that JSON writes as a string if it is NaN or infinite.
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	*n = number(v)
	return err
}

type stored struct {
	DType   string
	Shape   []int
	Strides []int
	Offset  int
	Big     bool
	Data    []byte
}

func (s stored) tensor(t *testing.T) *tensor.Tensor {
	d, err := tensor.ParseDType(s.DType)
	require.NoError(t, err)
	v, err := tensor.FromSpec(tensor.Spec{DType: d, Shape: s.Shape, Strides: s.Strides, Data: s.Data, Offset: s.Offset,
		BigEndian: s.Big})
	require.NoError(t, err)
	return v
}

type numpyCase struct {
	Name           string
	Golden, Actual stored
	Atol, Rtol     float64
	EqualNaN       bool `json:"equal_nan"`
	Want           struct {
		N, Mismatches, First, Finite int
		NaNGolden                    int       `json:"nan_golden"`
		NaNActual                    int       `json:"nan_actual"`
		InfGolden                    int       `json:"inf_golden"`
		InfActual                    int       `json:"inf_actual"`
		MaxAbs                       [2]number `json:"max_abs"` // value, index
		MaxRel                       [2]number `json:"max_rel"`
		Norms                        [3]number // golden, actual, difference
		MSE, SNR                     number
		RelL2                        number `json:"rel_l2"`
		CosineDistance               number `json:"cosine_distance"`
		Row                          number
		Rows                         []int // any of these
	}
}

// precision returns the largest relative error of sums: those of most pairs of 16-bit types are
// computed in float32.
func precision(g, a *tensor.Tensor) float64 {
	if g.DType() == a.DType() && g.DType().IsFloat() && g.DType().Size() == 2 && g.Len() > compare.PieceLen {
		return 1e-6
	}
	return 1e-12
}

// TestNumpy compares all metrics with those of testdata/generate.py: counts, indices and maxima
// exactly, sums up to their precision.
func TestNumpy(t *testing.T) {
	raw, err := os.ReadFile("testdata/cases.json")
	require.NoError(t, err)
	var cases []numpyCase
	require.NoError(t, json.Unmarshal(raw, &cases))
	require.Greater(t, len(cases), 200)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			tol := compare.Tolerance{Atol: c.Atol, Rtol: c.Rtol, EqualNaN: c.EqualNaN}
			g, a, w := c.Golden.tensor(t), c.Actual.tensor(t), c.Want
			r := tensors(t, g, a, tol)
			assert.Equal(t, w.N, r.N)
			assert.Equal(t, w.Finite, r.Finite)
			assert.Equal(t, w.Mismatches, r.Mismatches)
			assert.Equal(t, w.First, r.FirstMismatch)
			assert.Equal(t, [4]int{w.NaNGolden, w.NaNActual, w.InfGolden, w.InfActual},
				[4]int{r.NaNGolden, r.NaNActual, r.InfGolden, r.InfActual})
			for _, m := range []struct {
				name string
				want [2]number
				got  compare.Extreme
			}{{"max_abs", w.MaxAbs, r.MaxAbs}, {"max_rel", w.MaxRel, r.MaxRel}} {
				exact := 0.0
				if is64(g.DType()) || is64(a.DType()) {
					exact = 0x1p-52 // distances are rounded twice
				}
				assert.True(t, near(float64(m.want[0]), m.got.Value, exact, 0), "%s: %v, not %v", m.name, m.got.Value, m.want[0])
				assert.EqualValues(t, m.want[1], m.got.Index, m.name)
				if m.got.Index >= 0 {
					assert.Equal(t, g.At(m.got.Index), m.got.Golden)
					assert.Equal(t, a.At(m.got.Index), m.got.Actual)
				}
			}
			close := func(name string, want number, got, floor float64) {
				assert.Truef(t, near(float64(want), got, precision(g, a), floor), "%s: want %v, got %v",
					name, want, got)
			}
			close("mse", w.MSE, r.MSE, 0)
			close("rel_l2", w.RelL2, r.RelL2, 0)
			close("snr", w.SNR, r.SNR, 1e-10)
			close("norm of golden", w.Norms[0], r.NormGolden, 0)
			close("norm of actual", w.Norms[1], r.NormActual, 0)
			close("norm of difference", w.Norms[2], r.NormDiff, 0)
			close("cosine distance", w.CosineDistance, r.CosineDistance, 1e-15*min(1, r.RelL2)+1e-15*bigger(r))
			if w.Rows == nil {
				assert.Equal(t, -1, r.WorstRow.Index)
				return
			}
			close("worst row", w.Row, r.WorstRow.RelL2, 0)
			assert.Contains(t, w.Rows, r.WorstRow.Index)
			if r.MaxAbs.Index >= 0 {
				assert.Equal(t, r.MaxAbs.Index/r.RowLen, r.WorstRow.MaxAbsRow)
			}
		})
	}
}

// bigger returns 1 if the lengths of two vectors are so different that 1 − cos has only absolute
// precision.
func bigger(r compare.Result) float64 {
	if r.NormDiff*r.NormDiff <= r.NormActual*r.NormGolden {
		return 0
	}
	return 1
}

func near(want, got, relative, absolute float64) bool {
	return want == got || math.Abs(want-got) <= relative*math.Abs(want)+absolute && !math.IsInf(got, 0)
}

// Every metric of a transposed or broadcast view equals that of its copy, bit for bit.
func TestViewsEqualCopies(t *testing.T) {
	g, a := pairOf(t, tensor.F32, 50, 90)
	for _, row := range []struct {
		reason string
		view   func(*tensor.Tensor) (*tensor.Tensor, error)
	}{
		{"columns are gathered", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Transpose() }},
		{"a slice starts within a row", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(1, 3, 80) }},
		{"one row stands for many", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Broadcast(3, 50, 90) }},
	} {
		t.Run(row.reason, func(t *testing.T) {
			gv, err := row.view(g)
			require.NoError(t, err)
			av, err := row.view(a)
			require.NoError(t, err)
			tol := compare.Tolerance{Rtol: 1e-3}
			want := tensors(t, gv.Copy(), av.Copy(), tol)
			got := tensors(t, gv, av, tol)
			assert.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
		})
	}
}

// Every machine calculates the same metrics, bit for bit: none adds a product that was not rounded.
// make isa runs this in Go alone and for arm64.
func TestMetricsAreThoseOfEveryMachine(t *testing.T) {
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
