package replay

import (
	"math"
	"slices"
)

// folds make one number of the numbers of a line.
var folds = map[string]func(x []float64) float64{
	"sum": total, "mean": mean, "amax": greatest, "amin": least,

	"prod": func(x []float64) float64 { return folded(x, 1, func(so, v float64) float64 { return so * v }) },
	"any":  func(x []float64) float64 { return b2f(slices.ContainsFunc(x, isTrue)) },
	"all":  func(x []float64) float64 { return b2f(!slices.Contains(x, 0)) },
	"count_nonzero": func(x []float64) float64 {
		return folded(x, 0, func(so, v float64) float64 { return so + b2f(v != 0) })
	},
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
		"var": variance(func(v float64) float64 { return v }), "std": variance(math.Sqrt), "var_mean": variance(func(v float64) float64 { return v }),
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

// variance is the kernel of what is made of variances, and the means.
func variance(f func(v float64) float64) kernel {
	return func(c *Call) []*Array {
		less := c.float("correction", c.float("unbiased", 1))
		return c.folded(func(x []float64) float64 { return f(squares(x, mean(x)) / max(float64(len(x))-less, 0)) }, mean)
	}
}

// folded makes the results that are recorded of each line along some axes.
func (c *Call) folded(folds ...func(x []float64) float64) []*Array {
	out := make([]*Array, len(folds))
	for i, fold := range folds {
		if c.wants(i) {
			out[i] = c.reduce(i, c.self(), c.dims(len(c.self().shape)), fold)
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
		return folds["count_nonzero"](x)
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

func isTrue(v float64) bool { return v != 0 }

// same finds a number, or NaN.
func same(as float64) func(v float64) bool {
	return func(v float64) bool { return v == as || v != v && as != as }
}

// scans are the operators whose numbers are made of all before them in a line.
var scans = family{
	"cumsum":  scanned(func(sum, v float64) float64 { return sum + v }),
	"cumprod": scanned(func(product, v float64) float64 { return product * v }),
	"logcumsumexp": scanned(func(sum, v float64) float64 {
		if math.IsInf(sum, -1) || v != v {
			return v
		}
		return logAddExp(sum, v)
	}),
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
