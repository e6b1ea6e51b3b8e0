package op_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/op"
)

// The numbers are those of transformers 5 (ROPE_INIT_FUNCTIONS), for heads of 8 and theta 10000.
func TestRopeScalings(t *testing.T) {
	for _, c := range []struct {
		scaling op.RopeScaling
		want    []float64
		size    float64
	}{
		{op.RopeScaling{Kind: "yarn", Factor: 4, Original: 64, Context: 256}, []float64{1, 0.0625, 0.0025, 0.00025}, 1.138629436111989},
		{op.RopeScaling{Kind: "longrope", Factor: 4, Original: 64, Context: 256, Length: 12, Short: []float64{1, 1, 2, 2}, Long: []float64{4, 4, 4, 4}},
			[]float64{1, 0.1, 0.005, 0.0005}, 1.1547005383792517},
		{op.RopeScaling{Kind: "longrope", Factor: 4, Original: 64, Context: 256, Length: 65, Short: []float64{1, 1, 2, 2}, Long: []float64{4, 4, 4, 4}},
			[]float64{0.25, 0.025, 0.0025, 0.00025}, 1.1547005383792517},
		{op.RopeScaling{Kind: "dynamic", Factor: 2, Context: 256, Length: 12}, []float64{1, 0.1, 0.01, 0.001}, 1},
		{op.RopeScaling{Kind: "linear", Factor: 4}, []float64{0.25, 0.025, 0.0025, 0.00025}, 1},
	} {
		assert.InDeltaSlice(t, c.want, c.scaling.Frequencies(10000, 8), 1e-9, c.scaling.Kind)
		assert.InDelta(t, c.size, c.scaling.Size(), 1e-12, c.scaling.Kind)
	}
	assert.Nil(t, op.RopeScaling{Kind: "longrope", Short: []float64{1}}.Frequencies(10000, 8), "factors for other heads")
	assert.Nil(t, op.RopeScaling{Kind: "other", Factor: 2}.Frequencies(10000, 8), "an unknown type")
}

// The buckets are those of transformers' T5Attention, for 8 buckets up to a distance of 20.
func TestBuckets(t *testing.T) {
	both := op.RelativeBias{Table: make([][]float64, 8), Far: 20, Both: true}
	past := op.RelativeBias{Table: make([][]float64, 8), Far: 20}
	for i, want := range [][2]int{{3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {3, 6}, {3, 6}, {2, 5}, {2, 3}, {0, 0}, {6, 0}, {6, 0}, {7, 0}} {
		d := 3*i - 30
		assert.Equal(t, want[0], both.Bucket(d), d)
		assert.Equal(t, want[1], past.Bucket(d), d)
	}
	assert.InDeltaSlice(t, []float64{0.25, 0.0625, 0.015625, 0.00390625}, op.Slopes(4), 1e-12, "ALiBi's paper")
	assert.Len(t, op.Slopes(6), 6, "no power of two")
}

func TestRouter(t *testing.T) {
	x := []float64{1, 3, 2, 0}
	r := op.Router{K: 2, Factor: 1}
	assert.Equal(t, []int{1, 2}, r.Choose(x))
	sum := math.Exp(1) + math.Exp(3) + math.Exp(2) + 1
	assert.InDeltaSlice(t, []float64{math.Exp(3) / sum, math.Exp(2) / sum}, r.Shares(x, []int{1, 2}), 1e-12, "of a softmax over all")
	r.Renormalised, r.Factor = true, 2
	assert.InDeltaSlice(t, []float64{2 / (1 + math.Exp(-1)), 2 / (1 + math.Exp(1))}, r.Shares(x, []int{1, 2}), 1e-12, "of the chosen, times the factor")
	r = op.Router{K: 2, Scoring: op.SigmoidScores, Factor: 1, Bias: []float64{0, 0, 0, 5}}
	assert.Equal(t, []int{3, 1}, r.Choose(x), "the bias chooses")
	assert.InDelta(t, 0.5, r.Shares(x, []int{3})[0], 1e-12, "and shares nothing")
	r = op.Router{K: 2, Factor: 1, Groups: 2, Kept: 1}
	assert.Equal(t, []int{1, 0}, r.Choose(x), "of the best group")
}

func TestConv(t *testing.T) {
	c := op.Conv{InChannels: 1, OutChannels: 1, Groups: 1, Height: 1, OutHeight: 1, KernelHeight: 1, Width: 4, OutWidth: 4, KernelWidth: 3,
		Stride: [2]int{1, 1}, Pad: [2]int{0, 1}, W: []float64{1, 2, 3}, B: []float64{10}}
	x := []float64{1, 0, 0, 2}
	assert.Equal(t, []float64{12, 11, 16, 14}, c.Row(x, 0, 0), "torch correlates: out[i] = Σ w[k]·x[i+k−1] + 10")
}

func TestScan(t *testing.T) {
	s := op.Scan{Channels: 1, States: 1, ALog: []float64{0}, D: []float64{2}, Output: func(y, skip, _ float64) float64 { return y + skip }}
	step := math.Log(2) // softplus(0)
	got := s.Of([]float64{1, 1}, []float64{0, 0}, []float64{0, 0}, []float64{1, 1}, []float64{1, 3})
	assert.InDeltaSlice(t, []float64{step + 2, 3*(step/2+step) + 2}, got, 1e-12, "h halves, and gains Δ·B·x")
}

func TestGrid(t *testing.T) {
	w := [][]float64{{-0.3, 0, 0.6, 0.3, 1, 2, 3, 4}}
	g := op.GridOf(w, 4)
	require.NotNil(t, g)
	assert.InDeltaSlice(t, []float64{0, 1, 3, 2, 1, 2, 3, 4}, g.Q[0], 1e-9)
	assert.InDelta(t, 0.3, g.Scale[0][0], 1e-9)
	assert.Equal(t, []float64{1, 0}, g.Zero[0], "the smallest number of the first group is 0")
	same := g.Weight(func(r, k, c int) (float64, float64, float64) { return g.Scale[r][k], g.Zero[r][k], g.Q[r][c] })
	assert.InDeltaSlice(t, w[0], same, 1e-9)
	assert.Nil(t, op.GridOf([][]float64{{0.1, 0.27, 0.5, 1}}, 4), "no grid")
	assert.Nil(t, op.GridOf([][]float64{{0, 1, 2, 80}}, 4), "more than 6 bits")
}

// Keys may lie elsewhere, and heads of values may have another size.
func TestAttentionElsewhere(t *testing.T) {
	a := op.Attention{Sequences: 2, Tokens: 1, Keys: 2, Heads: 1, KV: 1, Dim: 1, ValueDim: 2, Scale: 1, Mask: &op.Mask{}}
	q, k, v := []float64{0, 0}, []float64{0, 0, 0, 0}, []float64{1, 2, 3, 4, 5, 6, 7, 8}
	assert.Equal(t, []float64{2, 3, 6, 7}, a.Of(q, k, v, []int{0, 1}), "the mean of two values of two elements")
	a.ValueAt = func(b, s int) (int, int) { return 1 - b, s }
	assert.Equal(t, []float64{6, 7, 2, 3}, a.Of(q, k, v, []int{0, 1}), "of the other sequence")
	a.ValueAt = func(b, s int) (int, int) { return b, -1 }
	assert.Equal(t, []float64{0, 0, 0, 0}, a.Of(q, k, v, []int{0, 1}), "of empty slots")
}

// The numbers are those of torch.nn.functional.interpolate.
func TestResizing(t *testing.T) {
	x := []float64{1, 2, 4, 3, 0, 5, 2, 7, 1}
	for _, c := range []struct {
		way  op.Resizing
		want []float64
	}{
		{op.Resizing{Kind: "bicubic"}, []float64{1.085314, 3.569134, 1.656652, 3.831722, 2.685247, 3.339466, 3.429827, 2.447117}},
		{op.Resizing{Kind: "bicubic", Aligned: true}, []float64{1, 4, 2.481482, 5.129631, 2.907407, 3.851851, 2, 1}},
		{op.Resizing{Kind: "bilinear"}, []float64{1.25, 3.5, 1.875, 3.65625, 2.625, 3.28125, 3.25, 2.5}},
		{op.Resizing{Kind: "bilinear", Aligned: true}, []float64{1, 4, 2.333333, 4.666667, 2.666667, 3.666667, 2, 1}},
		{op.Resizing{Kind: "nearest"}, []float64{1, 2, 1, 2, 3, 0, 2, 7}},
		{op.Resizing{Kind: "nearest-exact"}, []float64{1, 4, 3, 5, 3, 5, 2, 1}},
	} {
		assert.InDeltaSlice(t, c.want, c.way.Of(x, 3, 3, 4, 2, 1), 1e-5, c.way.String())
	}
}

// A linear attention is what its definition says, whatever the size of the keys.
func TestWKV(t *testing.T) {
	w := op.WKV{Decay: []float64{-0.5}, First: []float64{0.3}}
	k, v := []float64{0.1, -2, 1}, []float64{1, 2, 3}
	var want []float64
	for i := range k {
		p, q := math.Exp(0.3+k[i])*v[i], math.Exp(0.3+k[i])
		for j := range i {
			e := math.Exp(k[j] - 0.5*float64(i-1-j))
			p, q = p+e*v[j], q+e
		}
		want = append(want, p/q)
	}
	assert.InDeltaSlice(t, want, w.Of(k, v), 1e-12)
	large := []float64{900.1, 898, 901}
	assert.InDeltaSlice(t, want, w.Of(large, v), 1e-9, "only differences of keys count")
	w.Fresh = true
	assert.InDeltaSlice(t, v, w.Of(k, v), 1e-12, "nothing is kept")
}

// Heads of a group share B and C.
func TestScanGroups(t *testing.T) {
	s := op.Scan{Channels: 2, States: 1, Heads: 2, Groups: 2, ALog: []float64{0, 0}, D: []float64{0, 0}, Step: func(dt float64) float64 { return dt }}
	x, dt, b, c := []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, []float64{1, 10, 1, 10}, []float64{1, 1, 1, 1}
	e := math.Exp(-1)
	assert.InDeltaSlice(t, []float64{1, 10, 1 + e, 10 * (1 + e)}, s.Of(x, dt, nil, b, c), 1e-12)
	s.OfB.Roll = 1
	assert.InDeltaSlice(t, []float64{10, 1, 10 * (1 + e), 1 + e}, s.Of(x, dt, nil, b, c), 1e-12, "B of the other group")
}
