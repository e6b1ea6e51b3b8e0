package cause_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/quant"
	"github.com/goparity/goparity/tensor"
)

const (
	quantIn, quantOut, quantTokens = 512, 32, 24
	quantLayer                     = "m.layers.1.mlp.down_proj"
)

// codes is a weight s·(q − z) with a scale and a zero point for each group of a row.
type codes struct {
	size int
	q    []float64 // by row and input
	s, z []float64 // by row and group
}

func (c codes) groups() int { return quantIn / c.size }

func (c codes) weight() values {
	out := make(values, quantOut*quantIn)
	for i := range out {
		k := i/quantIn*c.groups() + i%quantIn/c.size
		out[i] = float64(float32(c.s[k] * (c.q[i] - c.z[k])))
	}
	return out
}

// mapped returns numbers, scales or zero points taken from elsewhere.
func mapped(v []float64, width int, at func(r, k int) (int, int)) []float64 {
	out := make([]float64, len(v))
	for i := range out {
		r, k := at(i/width, i%width)
		out[i] = v[r*width+k]
	}
	return out
}

func each(v []float64, f func(x float64) float64) []float64 {
	out := slices.Clone(v)
	for i := range out {
		out[i] = f(out[i])
	}
	return out
}

// newCodes makes numbers from 0 to top, and zero points.
func newCodes(size int, top float64, zero func(r *rand.Rand) float64) codes {
	r := rand.New(rand.NewPCG(uint64(size), uint64(top)))
	c := codes{size: size}
	for range quantOut * quantIn {
		c.q = append(c.q, float64(r.IntN(int(top)+1)))
	}
	for k := range quantOut * quantIn / size {
		c.q[k*size], c.q[k*size+1] = 0, top // as the smallest and the largest number of a group have them
		c.s, c.z = append(c.s, 0.01+0.01*r.Float64()), append(c.z, zero(r))
	}
	return c
}

// kQuant makes scales and minima of 6 bits in blocks of 256, as q4_k has them.
func kQuant() (c codes, d, e, s, m []float64) {
	c = newCodes(32, 15, func(*rand.Rand) float64 { return 0 })
	r := rand.New(rand.NewPCG(7, 7))
	for k := range c.s {
		if k%8 == 0 {
			d, e = append(d, 0.001*(1+r.Float64())), append(e, 0.002*(1+r.Float64()))
		}
		s, m = append(s, float64(20+r.IntN(43)|1)), append(m, float64(20+r.IntN(43)|1)) // odd: none is 0 without its upper bits
		if k%8 == 3 {
			s[k], m[k] = 63, 63
		}
	}
	return c, d, e, s, m
}

func ofBlocks(c codes, d, e, s, m []float64) codes {
	out := codes{size: c.size, q: c.q}
	for k := range s {
		scale := d[k/8] * s[k]
		out.s, out.z = append(out.s, scale), append(out.z, e[k/8]*m[k]/scale)
	}
	return out
}

func quantScene(t *testing.T, right *tensor.Tensor, wrong values, given bool) *diagnose.Scene {
	t.Helper()
	x := gaussian(11, quantTokens*quantIn)
	product := func(w func(i int) float64) values {
		y := make(values, quantTokens*quantOut)
		for i := range quantTokens {
			for c := range quantOut {
				for k := range quantIn {
					y[i*quantOut+c] += x[i*quantIn+k] * w(c*quantIn+k)
				}
			}
		}
		return y
	}
	s := runOf(t, "local",
		made{quantLayer, "input_0", []int{quantTokens, quantIn}, x, x, false},
		made{quantLayer, "output", []int{quantTokens, quantOut}, product(right.At), product(func(i int) float64 { return wrong[i] }), false})
	if given {
		s.Weights = checkpoint.Weights{quantLayer + ".weight": right}
	}
	return s
}

func TestQuantisedWeights(t *testing.T) {
	t.Parallel()
	whole := func(top int) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return float64(2 + r.IntN(top-4)) }
	}
	awq, mlx := newCodes(128, 15, whole(15)), newCodes(64, 15, func(r *rand.Rand) float64 { return 7.3 + r.Float64() })
	q40, q6 := newCodes(32, 15, func(*rand.Rand) float64 { return 8 }), newCodes(16, 63, func(*rand.Rand) float64 { return 32 })
	fp4 := newCodes(32, 15, func(*rand.Rand) float64 { return 0 })
	sizes := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	fp4.q = each(fp4.q, func(q float64) float64 { return sizes[int(q)%8] * (1 - 2*math.Floor(q/8)) })
	fp4.s = each(fp4.s, func(s float64) float64 { return math.Ldexp(1, int(s*1e3)%3-6) })
	k, d, e, s, m := kQuant()
	kRight := ofBlocks(k, d, e, s, m)
	next := func(n, by int) func(r, k int) (int, int) { return func(r, k int) (int, int) { return r, (k + by) % n } }
	along := func(order []int) func(r, k int) (int, int) {
		return func(r, k int) (int, int) { return r, k - k%len(order) + order[k%len(order)] }
	}
	outputs := func(r, k int) (int, int) { return r - r%8 + []int{0, 4, 1, 5, 2, 6, 3, 7}[r%8], k }
	halves := make([]int, 32)
	for i := range halves {
		halves[i] = i/2 + i%2*16
	}
	with := func(c codes, change func(c *codes)) codes { change(&c); return c }
	for _, tt := range []struct {
		id           string
		right, wrong codes
		reason       string
	}{
		{"quant/zero-point", awq, with(awq, func(c *codes) { c.z = each(c.z, func(z float64) float64 { return z + 1 }) }), "AWQ: one too large"},
		{"quant/order", awq, with(awq, func(c *codes) {
			c.q, c.z = mapped(c.q, quantIn, outputs), mapped(c.z, c.groups(), outputs)
		}), "AWQ: numbers and zero points in sequence"},
		{"quant/order", awq, with(awq, func(c *codes) { c.z = mapped(c.z, c.groups(), outputs) }), "AWQ: zero points alone"},
		{"quant/order", awq, with(awq, func(c *codes) { c.q = mapped(c.q, quantIn, along([]int{0, 4, 1, 5, 2, 6, 3, 7})) }), "AWQ's gemv read as gemm"},
		{"quant/zero-point", mlx, with(mlx, func(c *codes) { c.z = each(c.z, func(float64) float64 { return 0 }) }), "MLX: no biases"},
		{"quant/zero-point", mlx, with(mlx, func(c *codes) { c.z = each(c.z, func(z float64) float64 { return -z }) }), "MLX: biases subtracted"},
		{"quant/order", mlx, with(mlx, func(c *codes) { c.q = mapped(c.q, quantIn, along([]int{7, 6, 5, 4, 3, 2, 1, 0})) }), "MLX: words from the last on"},
		{"quant/group", mlx, with(mlx, func(c *codes) {
			c.s, c.z = mapped(c.s, c.groups(), next(c.groups(), 1)), mapped(c.z, c.groups(), next(c.groups(), 1))
		}), "MLX: scales and biases of the next group"},
		{"quant/zero-point", q40, with(q40, func(c *codes) { c.z = each(c.z, func(float64) float64 { return 0 }) }), "q4_0: not less 8"},
		{"quant/zero-point", q40, with(q40, func(c *codes) {
			c.q = each(c.q, func(q float64) float64 { return q + 16*(1-math.Floor(q/8)) })
		}), "q4_0: without sign"},
		{"quant/order", q40, with(q40, func(c *codes) { c.q = mapped(c.q, quantIn, along(halves)) }), "q4_0: halves as neighbours"},
		{"quant/missing", q6, with(q6, func(c *codes) { c.q = each(c.q, func(q float64) float64 { return math.Mod(q, 16) }) }), "q6_k: without the upper bits"},
		{"quant/zero-point", q6, with(q6, func(c *codes) { c.z = each(c.z, func(float64) float64 { return 0 }) }), "q6_k: not less 32"},
		{"quant/group", fp4, with(fp4, func(c *codes) { c.s = mapped(c.s, c.groups(), next(c.groups(), 1)) }), "MXFP4: scales of the next block"},
		{"quant/order", fp4, with(fp4, func(c *codes) { c.q = mapped(c.q, quantIn, along([]int{1, 0})) }), "MXFP4: the halves of a byte exchanged"},

		{"quant/scale", kRight, ofBlocks(k, d, e, lowBits(s), m), "q4_k: scales of groups 4 to 7 without their upper bits"},
		{"quant/scale", kRight, ofBlocks(k, e, d, s, m), "q4_k: d and dmin exchanged"},
		{"quant/group", kRight, ofBlocks(k, mapped(d, 2, next(2, 1)), e, s, m), "q4_k: d of the next block"},
		{"quant/group", kRight, ofBlocks(k, d, e, mapped(s, 8, next(8, 1)), m), "q4_k: scales of the next group"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			proven(t, quantScene(t, tt.right.weight().tensor(t, quantOut, quantIn), tt.wrong.weight(), true), tt.id, tt.reason)
		})
	}
}

// An engine that rounds the inputs of its products to int8 is named as one.
func TestInt8Inputs(t *testing.T) {
	t.Parallel()
	x, w := gaussian(11, quantTokens*quantIn), gaussian(12, quantOut*quantIn)
	for _, block := range []int{256, 32, quantIn} {
		var rounded values
		for from := 0; from < len(x); from += block {
			most := 0.0
			for _, v := range x[from : from+block] {
				most = max(most, math.Abs(v))
			}
			for _, v := range x[from : from+block] {
				rounded = append(rounded, math.RoundToEven(v/most*127)*most/127)
			}
		}
		product := func(x values) values {
			y := make(values, quantTokens*quantOut)
			for i := range y {
				for k := range quantIn {
					y[i] += x[i/quantOut*quantIn+k] * w[i%quantOut*quantIn+k]
				}
			}
			return y
		}
		s := runOf(t, "local",
			made{quantLayer, "input_0", []int{quantTokens, quantIn}, x, x, false},
			made{quantLayer, "output", []int{quantTokens, quantOut}, product(x), product(rounded), false})
		s.Weights = checkpoint.Weights{quantLayer + ".weight": w.tensor(t, quantOut, quantIn)}
		proven(t, s, "quant/activations", "int8")
	}
}

func lowBits(s []float64) []float64 {
	out := slices.Clone(s)
	for k := range out {
		if k%8 >= 4 {
			out[k] = math.Mod(out[k], 16)
		}
	}
	return out
}

// The file says on which grid a weight lies that its values do not tell: floats of 8 bits in blocks of
// both axes, and inputs that are grouped by g_idx.
func TestQuantisedFiles(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	data := make([]byte, quantOut*quantIn)
	for i := range data {
		data[i] = byte(r.IntN(120)) | byte(r.IntN(2))<<7
	}
	numbers, err := tensor.New(tensor.F8E4M3FN, []int{quantOut, quantIn}, data)
	require.NoError(t, err)
	scales := make([]float32, 4)
	for i := range scales {
		scales[i] = float32(1+i) * 1e-3
	}
	scale, err := tensor.Of(scales, 1, 4)
	require.NoError(t, err)
	right, err := quant.Scaled(numbers, scale, nil, []int{128, 128})
	require.NoError(t, err)
	wrong := make(values, right.Len())
	for i := range wrong {
		wrong[i] = right.At(i) / float64(scales[i%quantIn/128]) * float64(scales[(i%quantIn/128+1)%4])
	}
	proven(t, quantScene(t, right, wrong, true), "quant/group", "FP8: the next block")

	words := make([]int32, quantIn/8*quantOut)
	for i := range words {
		words[i] = int32(r.Uint32())
	}
	index := make([]int32, quantIn)
	for i, c := range r.Perm(quantIn) {
		index[c] = int32(i / 128)
	}
	half := make([]float32, 4*quantOut)
	for i := range half {
		half[i] = float32(0.01 + 0.01*r.Float64())
	}
	zeros := make([]int32, 4*quantOut/8)
	for i := range zeros {
		zeros[i] = int32(r.Uint32() & 0x77777777)
	}
	of := func(index []int32) *tensor.Tensor {
		g, err := tensor.Of(index, quantIn)
		require.NoError(t, err)
		w, err := quant.GPTQ(must(tensor.Of(words, quantIn/8, quantOut)), must(tensor.Of(zeros, 4, quantOut/8)), must(tensor.Of(half, 4, quantOut)), g, 4, true)
		require.NoError(t, err)
		return w
	}
	consecutive := make([]int32, quantIn)
	for i := range consecutive {
		consecutive[i] = int32(i / 128)
	}
	ignored := of(consecutive)
	for i := range wrong {
		wrong[i] = ignored.At(i)
	}
	proven(t, quantScene(t, of(index), wrong, true), "quant/group", "GPTQ: g_idx ignored")
}

func must(t *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic(err)
	}
	return t
}
