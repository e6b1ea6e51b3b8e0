package op

import (
	"math"
)

// Activation is out = F(in), element by element.
type Activation struct {
	Name    string // as in the ids of causes: "gelu-tanh"
	Formula string
	F       func(float64) float64
}

// Of returns F of each element.
func (a Activation) Of(x []float64) []float64 { return Map(x, a.F) }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// softplus is ln(1 + eˣ), without overflow for large x.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// Activations are those in use: the functions of torch.nn.functional, and QuickGELU of CLIP.
var Activations = []Activation{
	{"gelu", "x·Φ(x)", func(x float64) float64 { return x * 0.5 * math.Erfc(-x/math.Sqrt2) }},
	{"gelu-tanh", "the tanh form of GELU", func(x float64) float64 {
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}},
	{"quick-gelu", "x·σ(1.702·x)", func(x float64) float64 { return x * sigmoid(1.702*x) }},
	{"silu", "x·σ(x)", func(x float64) float64 { return x * sigmoid(x) }},
	{"relu", "max(x, 0)", func(x float64) float64 { return max(x, 0) }},
	{"relu2", "max(x, 0)²", func(x float64) float64 { return max(x, 0) * max(x, 0) }},
	{"leaky-relu", "x, 0.01·x below 0", func(x float64) float64 { return max(x, 0.01*x) }},
	{"elu", "x, eˣ−1 below 0", func(x float64) float64 { return max(x, math.Expm1(min(x, 0))) }},
	{"mish", "x·tanh(ln(1+eˣ))", func(x float64) float64 { return x * math.Tanh(softplus(x)) }},
	{"tanh", "tanh(x)", math.Tanh},
	{"sigmoid", "σ(x)", sigmoid},
	{"softplus", "ln(1+eˣ)", softplus},
}

// Identity is no activation.
var Identity = Activation{"identity", "x", func(x float64) float64 { return x }}

// SoftCap is limit·tanh(x / limit), as Gemma 2 bends logits and scores.
func SoftCap(x, limit float64) float64 { return limit * math.Tanh(x/limit) }

// Modulation is what an adaLN projection does to a stream (DiT, arXiv 2212.09748). Both forms are
//
//	out = x·(X + XM·m) + z·(Z + ZM·m)
//
//	scale and shift   x·(1 + scale) + shift   m is the scale, z the shift: X = XM = Z = 1
//	gate              x + gate·y              m is the gate, z is y: X = ZM = 1
type Modulation struct{ X, XM, Z, ZM float64 }

// The right forms.
var (
	ScaleShift = Modulation{X: 1, XM: 1, Z: 1}
	Gate       = Modulation{X: 1, ZM: 1}
)

// Of returns one element.
func (f Modulation) Of(x, z, m float64) float64 { return x*(f.X+f.XM*m) + z*(f.Z+f.ZM*m) }
