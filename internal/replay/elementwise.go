package replay

import (
	"math"
	"math/cmplx"

	"github.com/goparity/goparity/tensor"
)

// unary are the functions of one number.
var unary = map[string]func(x float64) float64{
	"neg": negative, "_neg_view": negative, "abs": math.Abs,
	"exp": math.Exp, "exp2": math.Exp2, "expm1": math.Expm1,
	"log": math.Log, "log2": math.Log2, "log10": math.Log10, "log1p": math.Log1p,
	"sqrt": math.Sqrt, "rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"reciprocal": func(x float64) float64 { return 1 / x },
	"sin":        math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
	"floor": math.Floor, "ceil": math.Ceil, "trunc": math.Trunc, "frac": func(x float64) float64 { return x - math.Trunc(x) },
	"sign": sign, "sgn": sign,
	"erf": math.Erf, "erfc": math.Erfc, "erfinv": math.Erfinv, "lgamma": lgamma,
	"sigmoid": sigmoid, "silu": func(x float64) float64 { return x * sigmoid(x) },
	"relu":        func(x float64) float64 { return max(x, 0) },
	"hardsigmoid": hardsigmoid, "hardswish": func(x float64) float64 { return x * hardsigmoid(x) },
	"mish":                func(x float64) float64 { return x * math.Tanh(softplus(x)) },
	"log_sigmoid_forward": logSigmoid,
	"isnan":               func(x float64) float64 { return b2f(x != x) }, "isinf": func(x float64) float64 { return b2f(math.IsInf(x, 0)) },
	"logical_not": func(x float64) float64 { return b2f(x == 0) },
}

// binary are the functions of two numbers: self, and other or what stands for it.
var binary = map[string]func(x, y float64) float64{
	"maximum": func(x, y float64) float64 { return max(x, y) }, "minimum": func(x, y float64) float64 { return min(x, y) },
	"floor_divide": floorDivide, "remainder": remainder, "fmod": math.Mod,
	"atan2": math.Atan2, "hypot": math.Hypot, "copysign": math.Copysign, "logaddexp": logAddExp,
	"lt": func(x, y float64) float64 { return b2f(x < y) }, "le": func(x, y float64) float64 { return b2f(x <= y) },
	"gt": func(x, y float64) float64 { return b2f(x > y) }, "ge": func(x, y float64) float64 { return b2f(x >= y) },
	"eq": func(x, y float64) float64 { return b2f(x == y) }, "ne": func(x, y float64) float64 { return b2f(x != y) },
	"logical_and":         func(x, y float64) float64 { return b2f(x != 0 && y != 0) },
	"logical_or":          func(x, y float64) float64 { return b2f(x != 0 || y != 0) },
	"logical_xor":         func(x, y float64) float64 { return b2f((x != 0) != (y != 0)) },
	"bitwise_and":         func(x, y float64) float64 { return float64(int64(x) & int64(y)) },
	"bitwise_or":          func(x, y float64) float64 { return float64(int64(x) | int64(y)) },
	"bitwise_xor":         func(x, y float64) float64 { return float64(int64(x) ^ int64(y)) },
	"bitwise_left_shift":  func(x, y float64) float64 { return float64(int64(x) << min(uint64(y), 63)) },
	"bitwise_right_shift": func(x, y float64) float64 { return float64(int64(x) >> min(uint64(y), 63)) },
}

// ternary are the functions of three numbers, and the names of the operands. Limits that are not given
// are infinite; of two that cross, the upper one counts.
var ternary = map[string]struct {
	operands [3]string // "" for none
	f        func(x, y, z float64) float64
}{
	"where":       {[3]string{"condition", "self", "other"}, choose},
	"masked_fill": {[3]string{"mask", "value", "self"}, choose},
	"lerp":        {[3]string{"self", "end", "weight"}, func(x, y, t float64) float64 { return x + t*(y-x) }},
	"clamp":       {[3]string{"self", "min", "max"}, clamp},
	"clamp_min":   {[3]string{"self", "min"}, clamp},
	"clamp_max":   {[3]string{"self", "", "max"}, clamp},
	"hardtanh":    {[3]string{"self", "min_val", "max_val"}, clamp},
}

// adjusted are the functions of one number that have parameters.
var adjusted = map[string]func(c *Call) func(x float64) float64{
	"gelu": gelu, "round": round,
	"bitwise_not": func(c *Call) func(x float64) float64 {
		if c.value(0).DType == tensor.Bool {
			return unary["logical_not"]
		}
		return func(x float64) float64 { return float64(^int64(x)) }
	},
	"elu": func(c *Call) func(x float64) float64 { // alpha · (exp(x · in) − 1) below 0
		alpha, scale, in := c.float("alpha", 1), c.float("scale", 1), c.float("input_scale", 1)
		return func(x float64) float64 {
			if x <= 0 {
				return scale * alpha * math.Expm1(x*in)
			}
			return scale * x
		}
	},
	"softplus": func(c *Call) func(x float64) float64 {
		beta, most := c.float("beta", 1), c.float("threshold", 20)
		return func(x float64) float64 {
			if x*beta > most {
				return x
			}
			return softplus(x*beta) / beta
		}
	},
	"leaky_relu": func(c *Call) func(x float64) float64 {
		slope := c.scalar("negative_slope", 0.01)
		return func(x float64) float64 {
			if x > 0 {
				return x
			}
			return x * slope
		}
	},
}

// elementwise are the operators whose results hang on one element of each operand.
var elementwise = func() family {
	f := family{
		"add":  one(func(c *Call) *Array { return c.arithmetic(plus, c.operand("self"), c.operand("other")) }),
		"sub":  one(func(c *Call) *Array { return c.arithmetic(minus, c.operand("self"), c.operand("other")) }),
		"rsub": one(func(c *Call) *Array { return c.arithmetic(minus, c.operand("other"), c.operand("self")) }),
		"mul":  one(func(c *Call) *Array { return c.arithmetic(times, c.operand("self"), c.operand("other")) }),
		"div":  one(div), "pow": one(power), "glu": one(glu), "_to_copy": one(func(c *Call) *Array { return c.copyOf(c.self()) }),
	}
	for name, g := range unary {
		f[name] = one(func(c *Call) *Array { return c.mapped(g) })
	}
	for name, g := range adjusted {
		f[name] = one(func(c *Call) *Array { return c.mapped(g(c)) })
	}
	for name, g := range binary {
		f[name] = one(func(c *Call) *Array { return c.paired(g, c.operand("self"), c.operand("other")) })
	}
	for name, t := range ternary {
		f[name] = one(func(c *Call) *Array {
			operands := []*Array{c.operand(t.operands[0]), c.maybe(t.operands[1]), c.maybe(t.operands[2])}
			for i, a := range operands {
				if a == nil { // no limit
					operands[i] = &Array{dtype: tensor.F64, d: []float64{math.Inf(2*i - 3)}}
				}
			}
			return c.eachOf(func(out []float64, x [][]float64) {
				for i, v := range x[0] {
					out[i] = t.f(v, x[1][i], x[2][i])
				}
			}, operands)
		})
	}
	return f
}()

// mapped applies a function to each element of self.
func (c *Call) mapped(f func(x float64) float64) *Array {
	if c.self().complex {
		return c.complexUnary()
	}
	return c.each(func(out []float64, x [][]float64) {
		for i, v := range x[0] {
			out[i] = f(v)
		}
	}, c.self())
}

// paired applies a function to the elements of two operands that are broadcast to one another.
func (c *Call) paired(f func(x, y float64) float64, a, b *Array) *Array {
	return c.each(func(out []float64, x [][]float64) {
		for i, v := range x[0] {
			out[i] = f(v, x[1][i])
		}
	}, a, b)
}

// copyOf returns a tensor in the recorded type, and itself if it has it.
func (c *Call) copyOf(a *Array) *Array {
	switch {
	case a.complex:
		return a
	case c.value(0).DType == tensor.Invalid:
		return c.complexly(func(x, _ complex128) complex128 { return x }, a, a)
	}
	return a.cast(c.value(0).DType, c.mode.Wide)
}

func div(c *Call) *Array {
	a, b := c.operand("self"), c.operand("other")
	switch c.text("rounding_mode") {
	case "floor":
		return c.paired(floorDivide, a, b)
	case "trunc":
		return c.paired(func(x, y float64) float64 { return math.Trunc(x / y) }, a, b)
	}
	return c.arithmetic(over, a, b)
}

// powers are those that torch multiplies for, or takes roots.
var powers = map[float64]func(x float64) float64{2: func(x float64) float64 { return x * x }, 3: func(x float64) float64 { return x * x * x },
	0.5: math.Sqrt, -0.5: unary["rsqrt"]}

func power(c *Call) *Array {
	a, b := c.operand("self"), c.operand("exponent")
	if a.complex || b.complex {
		return c.complexly(cmplx.Pow, a, b)
	}
	if !a.number && len(b.shape) == 0 {
		if f := powers[b.first()]; f != nil {
			return c.mapped(f)
		}
	}
	return c.paired(math.Pow, a, b)
}

// glu is the first half of an axis, times the sigmoid of the second.
func glu(c *Call) *Array {
	a, d := c.self(), c.int("dim", -1)
	n := a.shape[a.has(d)] / 2
	return c.paired(func(x, y float64) float64 { return x * sigmoid(y) }, a.slice(d, 0, n, 1), a.slice(d, n, n, 1))
}

func round(c *Call) func(x float64) float64 {
	n := c.int("decimals", 0)
	ten := math.Pow(10, math.Abs(float64(n)))
	if n < 0 {
		return func(x float64) float64 { return math.RoundToEven(x/ten) * ten }
	}
	return func(x float64) float64 { return math.RoundToEven(x*ten) / ten }
}

func gelu(c *Call) func(x float64) float64 {
	if c.text("approximate") == "tanh" {
		return func(x float64) float64 { return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) }
	}
	return func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }
}

func choose(on, x, y float64) float64 {
	if on != 0 {
		return x
	}
	return y
}

func clamp(x, low, high float64) float64 { return min(max(x, low), high) }

func sigmoid(x float64) float64     { return 1 / (1 + math.Exp(-x)) }
func hardsigmoid(x float64) float64 { return min(max(x+3, 0), 6) / 6 }
func softplus(x float64) float64    { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
func logSigmoid(x float64) float64  { return -softplus(-x) }

func negative(x float64) float64 { return -x }
func sign(x float64) float64     { return b2f(x > 0) - b2f(x < 0) }

func lgamma(x float64) float64 {
	if math.IsInf(x, -1) {
		return -x
	}
	y, _ := math.Lgamma(x)
	return y
}

func floorDivide(x, y float64) float64 {
	if y == 0 {
		return x / y
	}
	m := math.Mod(x, y)
	d := (x - m) / y
	if m != 0 && (y < 0) != (m < 0) {
		d--
	}
	return math.Floor(d + 0.5)
}

// remainder has the sign of y.
func remainder(x, y float64) float64 {
	m := math.Mod(x, y)
	if m != 0 && (y < 0) != (m < 0) {
		m += y
	}
	return m
}

func logAddExp(x, y float64) float64 {
	if x == y {
		return x + math.Ln2
	}
	return max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
}

// created are the operators that make tensors of nothing.
var created = family{
	"full": one(func(c *Call) *Array {
		if out := c.make(); !out.complex {
			return filled(out, c.float("fill_value", 0))
		}
		return c.copyOf((&Array{dtype: tensor.F64, d: []float64{c.float("fill_value", 0)}}).broadcast(c.shape(0)))
	}),
	"arange": one(func(c *Call) *Array {
		start, step := c.float("start", 0), c.float("step", 1)
		if n := math.Ceil((c.float("end", 0) - start) / step); n != float64(size(c.shape(0))) {
			fail("%v numbers, not %v as recorded", n, c.shape(0))
		}
		return c.counted(func(i int) float64 { return start + float64(i)*step })
	}),
	"linspace": one(func(c *Call) *Array { // counts from both ends, as torch does
		start, end, n := c.float("start", 0), c.float("end", 0), c.int("steps", 1)
		step := (end - start) / float64(max(n-1, 1))
		return c.counted(func(i int) float64 {
			if i < (n+1)/2 {
				return start + float64(i)*step
			}
			return end - float64(n-1-i)*step
		})
	}),
	"eye": one(func(c *Call) *Array {
		w := max(c.int("m", c.int("n", 0)), 1)
		return c.counted(func(i int) float64 { return b2f(i/w == i%w) })
	}),
}

// counted makes the first result of a function of the index of each element.
func (c *Call) counted(f func(i int) float64) *Array {
	out := c.make()
	x := make([]float64, out.Len())
	for i := range x {
		x[i] = f(i)
	}
	out.write(x, 0)
	return out
}
