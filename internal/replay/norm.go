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
	return c.normed(a.Len()/(a.shape[0]*groups), c.float("eps", 1e-5), true, func(w *Array) *Array {
		return a.perChannel(w).broadcast(append([]int{1}, a.shape[1:]...))
	})
}

// perChannel shows a number for each channel, which are axis 1, so that it can be broadcast.
func (a *Array) perChannel(w *Array) *Array {
	shape := slices.Repeat([]int{1}, len(a.shape))
	shape[1] = w.Len()
	return w.reshape(shape)
}

// normed scales lines of n elements in row-major order. Weight and bias are as long as some of them, as
// which they are shown.
func (c *Call) normed(n int, eps float64, centre bool, shown func(w *Array) *Array) []*Array {
	a := c.tensor("input")
	rows := a.Len() / max(n, 1)
	if n < 1 || n > maxElements || rows*n != a.Len() {
		fail("lines of %d in %v", n, a.shape)
	}
	var scales [2][]float64
	for i, name := range []string{"weight", "bias"} {
		if w := c.optional(name); w != nil {
			scales[i] = shown(w).floats64()
		}
	}
	out, x, means, roots := c.of(0, a.shape), make([]float64, n), make([]float64, rows), make([]float64, rows)
	for row := range rows {
		read(a, x, row*n)
		m := 0.0
		if centre {
			m = mean(x)
		}
		r := 1 / math.Sqrt(squares(x, m)/float64(n)+eps)
		for i, v := range x {
			x[i] = (v - m) * r
		}
		if w := scales[0]; w != nil {
			for i, v := range w[row*n%len(w):][:n] {
				x[i] *= v
			}
		}
		if w := scales[1]; w != nil {
			for i, v := range w[row*n%len(w):][:n] {
				x[i] += v
			}
		}
		out.write(x, row*n)
		means[row], roots[row] = m, r
	}
	if !centre {
		return []*Array{out, c.result(1, nil, roots)}
	}
	return []*Array{out, c.result(1, nil, means), c.result(2, nil, roots)}
}

// batchNorm is (x − mean) / √(variance + eps) · weight + bias of channels, which are axis 1, by running
// figures.
func batchNorm(c *Call) *Array {
	a, eps := c.tensor("input"), c.float("eps", 1e-5)
	if len(a.shape) < 2 {
		fail("channels of %v", a.shape)
	}
	operands := []*Array{a, a.perChannel(c.tensor("running_mean")), a.perChannel(c.tensor("running_var"))}
	for i, name := range []string{"weight", "bias"} {
		w := &Array{dtype: tensor.F32, d: []float64{float64(1 - i)}}
		if given := c.optional(name); given != nil {
			w = a.perChannel(given)
		}
		operands = append(operands, w)
	}
	return c.eachOf(func(out []float64, x [][]float64) {
		for i, v := range x[0] {
			out[i] = (v-x[1][i])/math.Sqrt(x[2][i]+eps)*x[3][i] + x[4][i]
		}
	}, operands)
}
