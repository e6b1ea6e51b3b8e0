package replay

import (
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// norms are the operators that scale lines to a size of their own.
var norms = family{
	"_softmax":     one(func(c *Call) *Array { return c.along(0, c.self(), -1, softmaxOf) }),
	"_log_softmax": one(func(c *Call) *Array { return c.along(0, c.self(), -1, logSoftmaxOf) }),

	"native_layer_norm": layerNorm(true, 1e-5), "_fused_rms_norm": layerNorm(false, 0x1p-23), "native_group_norm": groupNorm,
	"_native_batch_norm_legit_no_training": one(batchNorm),
}

// softmaxOf is exp(x) / Σ exp(x).
func softmaxOf(out, x []float64) {
	top, s := greatest(x), 0.0
	for i, v := range x {
		out[i] = math.Exp(v - top)
		s += out[i]
	}
	for i := range out {
		out[i] /= s
	}
}

// logSoftmaxOf is x − log Σ exp(x).
func logSoftmaxOf(out, x []float64) {
	top, s := greatest(x), 0.0
	for _, v := range x {
		s += math.Exp(v - top)
	}
	s = math.Log(s)
	for i, v := range x {
		out[i] = v - top - s
	}
}

// layerNorm is (x − mean) / √(variance + eps) · weight + bias, the mean and the reciprocal of the root of
// each row; without the mean where that is not centred.
func layerNorm(centre bool, eps float64) kernel {
	return func(c *Call) []*Array {
		n := size(c.ints("normalized_shape"))
		return c.normed(n, c.float("eps", eps), centre, func(w *Array) *Array { return w })
	}
}

// groupNorm is layerNorm of groups of channels, which are axis 1.
func groupNorm(c *Call) []*Array {
	a := c.tensor("input")
	groups := c.int("group", c.int("num_groups", 1))
	if len(a.shape) < 2 || groups < 1 || a.shape[1]%groups != 0 || a.Len() == 0 {
		fail("%d groups of %v", groups, a.shape)
	}
	return c.normed(a.Len()/(a.shape[0]*groups), c.float("eps", 1e-5), true, a.perChannel)
}

// perChannel shows a number for each channel, which are axis 1, so that it can be broadcast.
func (a *Array) perChannel(w *Array) *Array {
	shape := slices.Repeat([]int{1}, len(a.shape))
	shape[1] = w.Len()
	return w.reshape(shape)
}

// normed scales lines of n elements in row-major order. Weight and bias are shown so that they are broadcast.
func (c *Call) normed(n int, eps float64, centre bool, shown func(w *Array) *Array) []*Array {
	a := c.tensor("input")
	rows := a.Len() / max(n, 1)
	if n < 1 || n > maxElements || rows*n != a.Len() {
		fail("lines of %d in %v", n, a.shape)
	}
	x, means, roots := a.Floats(), make([]float64, rows), make([]float64, rows)
	for row := range rows {
		line := x[row*n:][:n]
		m := 0.0
		if centre {
			m = mean(line)
		}
		r := 1 / math.Sqrt(squares(line, m)/float64(n)+eps)
		for i, v := range line {
			line[i] = (v - m) * r
		}
		means[row], roots[row] = m, r
	}
	out := c.eachOf(func(out []float64, x [][]float64) {
		for i, v := range x[0] {
			out[i] = v*x[1][i] + x[2][i]
		}
	}, append([]*Array{arrayOf(a.shape, x)}, c.scales(shown)...))
	if !centre {
		return []*Array{out, c.result(1, nil, roots)}
	}
	return []*Array{out, c.result(1, nil, means), c.result(2, nil, roots)}
}

// scales are what a norm is multiplied with, and what is added to it: 1 and 0 where they are not given.
func (c *Call) scales(shown func(w *Array) *Array) (out []*Array) {
	for i, name := range []string{"weight", "bias"} {
		if w := c.optional(name); w != nil {
			out = append(out, shown(w))
		} else {
			out = append(out, &Array{dtype: tensor.F32, d: []float64{float64(1 - i)}})
		}
	}
	return out
}

// batchNorm is (x − mean) / √(variance + eps) · weight + bias of channels, which are axis 1, by running
// figures.
func batchNorm(c *Call) *Array {
	a, eps := c.tensor("input"), c.float("eps", 1e-5)
	if len(a.shape) < 2 {
		fail("channels of %v", a.shape)
	}
	operands := append([]*Array{a, a.perChannel(c.tensor("running_mean")), a.perChannel(c.tensor("running_var"))}, c.scales(a.perChannel)...)
	return c.eachOf(func(out []float64, x [][]float64) {
		for i, v := range x[0] {
			out[i] = (v-x[1][i])/math.Sqrt(x[2][i]+eps)*x[3][i] + x[4][i]
		}
	}, operands)
}
