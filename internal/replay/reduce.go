package replay

import (
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
)

// folds make one number of the numbers of a line.
var folds = map[string]func(x []float64) float64{
	"sum": total, "mean": mean, "amax": greatest, "amin": least,

	"prod": func(x []float64) float64 { return folded(x, 1, func(so, v float64) float64 { return so * v }) },
	"any":  func(x []float64) float64 { return min(nonzeros(x), 1) },
	"all":  func(x []float64) float64 { return b2f(!slices.Contains(x, 0)) }, "count_nonzero": nonzeros,
	"argmax": func(x []float64) float64 { return float64(slices.IndexFunc(x, same(greatest(x)))) },
	"argmin": func(x []float64) float64 { return float64(slices.IndexFunc(x, same(least(x)))) },
	"logsumexp": func(x []float64) float64 {
		top := greatest(x)
		if math.IsInf(top, 0) || len(x) == 0 {
			return top
		}
		return top + math.Log(folded(x, 0, func(so, v float64) float64 { return so + math.Exp(v-top) }))
	},
}

// reductions are the operators that make one number of each line along some axes.
var reductions = func() family {
	f := family{
		"var": variance(1), "std": variance(0.5), "var_mean": variance(1),
		"linalg_vector_norm": func(c *Call) []*Array {
			p := c.float("ord", 2)
			return c.folded(func(x []float64) float64 { return normOf(x, p) })
		},
	}
	for name, fold := range folds {
		f[name] = func(c *Call) []*Array { return c.folded(fold) }
	}
	return f
}()

// variance is the kernel of powers of variances, and the means.
func variance(power float64) kernel {
	return func(c *Call) []*Array {
		less := c.float("correction", c.float("unbiased", 1))
		return c.folded(func(x []float64) float64 { return math.Pow(squares(x, mean(x))/max(float64(len(x))-less, 0), power) }, mean)
	}
}

// folded makes the results that are recorded of each line along some axes.
func (c *Call) folded(folds ...func(x []float64) float64) []*Array {
	out := make([]*Array, len(folds))
	for i, fold := range folds {
		if c.wants(i) {
			a := c.self()
			out[i] = c.lines(i, a, c.dims(len(a.shape)), 1, func(out, x []float64) { out[0] = fold(x) }).reshape(c.shape(i))
		}
	}
	return out
}

// normOf is (Σ |x|^p)^(1/p), and its limits.
func normOf(x []float64, p float64) float64 {
	size := slices.Clone(x)
	for i, v := range size {
		size[i] = math.Abs(v)
	}
	switch {
	case p == 2:
		return math.Sqrt(squares(x, 0))
	case math.IsInf(p, 1):
		return max(0, greatest(size))
	case math.IsInf(p, -1):
		return least(size)
	case p == 0:
		return nonzeros(x)
	}
	return math.Pow(folded(size, 0, func(so, v float64) float64 { return so + math.Pow(v, p) }), 1/p)
}

// folded makes one number of all, from one on.
func folded(x []float64, so float64, f func(so, v float64) float64) float64 {
	for _, v := range x {
		so = f(so, v)
	}
	return so
}

func total(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

func nonzeros(x []float64) float64 {
	return folded(x, 0, func(so, v float64) float64 { return so + b2f(v != 0) })
}

func mean(x []float64) float64 { return total(x) / float64(len(x)) }

// squares is Σ (x − m)².
func squares(x []float64, m float64) (s float64) {
	for _, v := range x {
		s += (v - m) * (v - m)
	}
	return s
}

// greatest is NaN where there is one, as is least.
func greatest(x []float64) float64 {
	m := math.Inf(-1)
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func least(x []float64) float64 {
	m := math.Inf(1)
	for _, v := range x {
		m = min(m, v)
	}
	return m
}

// same finds a number, or NaN.
func same(as float64) func(v float64) bool {
	return func(v float64) bool { return v == as || v != v && as != as }
}

func scanned(f func(so, v float64) float64) kernel {
	return one(func(c *Call) *Array {
		return c.along(0, c.self(), -1, func(out, x []float64) {
			for i, v := range x {
				if out[i] = v; i > 0 {
					out[i] = f(out[i-1], v)
				}
			}
		})
	})
}

// norms are the operators that scale lines to a size of their own, or make each number of all before it in a line.
var norms = family{
	"cumsum":  scanned(func(sum, v float64) float64 { return sum + v }),
	"cumprod": scanned(func(product, v float64) float64 { return product * v }),
	"logcumsumexp": scanned(func(sum, v float64) float64 {
		if math.IsInf(sum, -1) || v != v {
			return v
		}
		return logAddExp(sum, v)
	}),

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
func (a *Array) perChannel(w *Array) *Array { return w.onAxis(1, len(a.shape)) }

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
// metrics.
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
