package op_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/op"
	_ "github.com/goparity/goparity/internal/updateflag"
	"github.com/goparity/goparity/tensor"
)

func random(n int) []float64 {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	out := make([]float64, n)
	for i := range out {
		out[i] = r.NormFloat64()
	}
	return out
}

func TestRelative(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		a, b   []float64
		want   float64
		reason string
	}{
		{[]float64{3, 4}, []float64{0, 4}, 0.75, "of the second"},
		{[]float64{0}, []float64{0}, 0, "equal zeros"},
		{[]float64{1}, []float64{0}, inf, "nothing to be relative to"},
		{[]float64{1}, []float64{1, 2}, inf, "other lengths"},
		{nil, nil, inf, "no elements say nothing"},
		{[]float64{math.NaN()}, []float64{1}, inf, "NaN is no number"},
	} {
		assert.Equal(t, c.want, op.Relative(c.a, c.b), c.reason)
	}
}

func TestNorm(t *testing.T) {
	x := []float64{1, 2, 3, 6}
	rms, std := math.Sqrt(50./4), math.Sqrt(14./4)
	for _, c := range []struct {
		norm   op.Norm
		want   float64 // the last element
		reason string
	}{
		{op.Norm{}, 6 / rms, "RMS"},
		{op.Norm{Center: true}, 3 / std, "layer norm"},
		{op.Norm{Center: true, Unbiased: true}, 3 / math.Sqrt(14./3), "one less than the width"},
		{op.Norm{Eps: 1}, 6 / math.Sqrt(50./4+1), "eps below the root"},
		{op.Norm{Eps: 1, Outside: true}, 6 / (rms + 1), "eps beside the root"},
		{op.Norm{Weight: []float64{1, 1, 1, 2}, Bias: []float64{0, 0, 0, 5}}, 12/rms + 5, "weight and bias"},
		{op.Norm{Weight: []float64{1, 1, 1, 2}, OnePlus: true}, 18 / rms, "1 + w"},
		{op.Norm{Weight: []float64{1, 1, 1, 2}}.WithoutOne(), 6 / rms, "w − 1"},
	} {
		c.norm.Width = 4
		got := c.norm.Of(append(x, x...))
		require.Len(t, got, 8, c.reason)
		assert.InDelta(t, c.want, got[7], 1e-12, c.reason)
		assert.Equal(t, got[:4], got[4:], "row by row")
	}
	x = random(40 * 4)
	for _, n := range []op.Norm{{Weight: random(4)}, {Center: true, Weight: random(4), Bias: random(4)}} {
		n.Width = 4
		learned := op.Norm{Width: 4, Center: n.Center}.Fitted(x, n.Of(x))
		assert.InDeltaSlice(t, n.Weight, learned.Weight, 1e-9, "of the golden rows")
	}
}

func TestLinear(t *testing.T) {
	const in, out, rows = 3, 5, 40
	x, w, b := random(rows*in), random(in*out), random(out)
	want := make([]float64, 0, rows*out)
	for r := range rows {
		for o := range out {
			y := b[o]
			for i := range in {
				y += x[r*in+i] * w[o*in+i]
			}
			want = append(want, y)
		}
	}
	turned, err := tensor.Of(op.Select(w, len(w), op.Interleaved(len(w), in)), in, out)
	require.NoError(t, err)
	learned, ok := op.FitLinear(x, want, rows, in, out)
	require.True(t, ok)
	for reason, l := range map[string]op.Linear{
		"[out, in]":          {W: op.MatrixOf(w, out, in), B: b, Biases: 1},
		"[in, out]":          {W: op.NewMatrix(turned), B: b, Biases: 1, Conv: true},
		"[in, out], decoded": {W: op.NewMatrix(turned).Kept(), B: b, Biases: 1, Conv: true},
		"learned":            learned,
	} {
		assert.InDeltaSlice(t, want, l.Of(x), 1e-9, reason)
	}
}

// naive is the context of one sequence, element by element.
func naive(q, k, v []float64, tokens, heads, kv, d int, scale float64) []float64 {
	out := make([]float64, tokens*heads*d)
	for t := range tokens {
		for h := range heads {
			g := h / (heads / kv)
			sum := 0.0
			w := make([]float64, t+1)
			for s := range w {
				for i := range d {
					w[s] += scale * q[(t*heads+h)*d+i] * k[(s*kv+g)*d+i]
				}
				w[s] = math.Exp(w[s])
				sum += w[s]
			}
			for s := range w {
				for i := range d {
					out[(t*heads+h)*d+i] += w[s] / sum * v[(s*kv+g)*d+i]
				}
			}
		}
	}
	return out
}

func TestAttention(t *testing.T) {
	const tokens, heads, kv, d = 5, 4, 2, 3
	q, k, v := random(tokens*heads*d), random(tokens*kv*d + 1)[1:], random(tokens*kv*d + 2)[2:]
	base := op.Attention{Sequences: 1, Tokens: tokens, Heads: heads, KV: kv, Dim: d, Scale: 0.5, Mask: op.Causal()}
	rows := op.Sequence(tokens)
	right := base.Of(q, k, v, rows)
	assert.InDeltaSlice(t, naive(q, k, v, tokens, heads, kv, d, 0.5), right, 1e-12)
	for _, c := range []struct {
		change func(a *op.Attention)
		same   int // tokens from the beginning that stay
		reason string
	}{
		{func(a *op.Attention) { a.Scale = 1 }, 1, "one key has no softmax"},
		{func(a *op.Attention) { a.Mask = op.Windowed(3) }, 3, "the window is reached"},
		{func(a *op.Attention) { a.Mask = &op.Mask{} }, 0, "every token sees the last"},
		{func(a *op.Attention) { a.OfK.Tiled, a.OfV.Tiled = true, true }, 0, "other heads of v"},
		{func(a *op.Attention) { a.Rope.Q = op.Rotation{Freqs: []float64{1}, Step: 1, Size: 1} }, 1, "position 0 has no angle"},
		{func(a *op.Attention) { a.Axis = op.OverQueries }, 0, "the last query sees all keys"},
		{func(a *op.Attention) { a.Sinks = []float64{0, 0, 0, 0} }, 0, "a sink takes some of each"},
	} {
		a := base
		c.change(&a)
		got := a.Of(q, k, v, rows)
		n := c.same * heads * d
		assert.InDeltaSlice(t, right[:n], got[:n], 1e-12, c.reason)
		assert.Greater(t, op.Relative(got[n:n+heads*d], right[n:n+heads*d]), 1e-3, c.reason)
	}
	base.V.At = 1
	assert.Nil(t, base.Of(q, k, v, rows), "v is not as wide")
}

func TestMasks(t *testing.T) {
	m := op.Windowed(3)
	m.TakeApart(2, 8, 8)
	assert.True(t, m.Causal)
	assert.Equal(t, 3, m.Window)
	assert.Nil(t, m.Padded)
	x := make([]float32, 2*4)
	x[3], x[7] = -1e9, -1e9
	padding, err := tensor.Of(x, 2, 1, 1, 4)
	require.NoError(t, err)
	m = op.ReadMask(padding, 2, 4, 4, 0)
	require.NotNil(t, m)
	m.TakeApart(2, 4, 4)
	assert.False(t, m.Causal)
	assert.True(t, m.Padded(1, 3))
	assert.False(t, m.Padded(1, 2))
	assert.Nil(t, op.ReadMask(padding, 2, 5, 5, 0), "of another length")
}

func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		x, want float64
		reason  string
	}{
		{1 + 1./2048, 1, "a tie goes to even"},
		{1 + 3./2048, 1 + 2./1024, "a tie goes to even, upwards"},
		{6e-8, 1. / (1 << 24), "below the normal numbers the unit is fixed"},
		{-65504, -65504, "the largest is kept"},
		{math.Inf(1), math.Inf(1), "infinity stays"},
	} {
		assert.Equal(t, c.want, op.Half.Round(c.x), c.reason)
	}
}

func TestOrders(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4, 5}
	turn := op.Transposition([]int{2, 3}, 0, 1)
	got := make([]float64, 6)
	for i := range got {
		got[i] = x[turn(i)]
	}
	assert.Equal(t, []float64{0, 3, 1, 4, 2, 5}, got)
	assert.Equal(t, []int{2, 3, 4, 5, 0, 1}, op.Blocks([]int{2, 2, 2}, []int{1, 2, 0}))
	assert.Equal(t, 2, op.Runs([]int{2, 3, 4, 5, 0, 1}))
	assert.Equal(t, 2, op.BlockSize([]int{2, 3, 4, 5, 0, 1}))
	assert.Equal(t, []int{0, 2, 1, 3}, op.Interleaved(4, 2))
}

func TestSolving(t *testing.T) {
	f := op.LeastSquares([][]float64{{1, 0, 1}, {0, 1, 1}}, []float64{2, 3, 5})
	assert.InDeltaSlice(t, []float64{2, 3}, f, 1e-9)
	assert.Nil(t, op.LeastSquares([][]float64{{1, 2}, {1, 2}}, []float64{1, 2}), "the same column twice")
	assert.InDelta(t, 0.3, op.Minimum(-4, 4, func(x float64) float64 { return math.Abs(x - 0.3) }), 1e-6)
}
