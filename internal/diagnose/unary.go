package diagnose

import (
	"fmt"
	"math"
)

// unary is out = f(in), element by element.
type unary struct {
	in   *value
	kind unaryKind
}

type unaryKind struct {
	name, formula string
	f             func(float64) float64
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// unaryKinds are the activations in use.
var unaryKinds = []unaryKind{
	{"gelu", "x·Φ(x)", func(x float64) float64 { return x * 0.5 * math.Erfc(-x/math.Sqrt2) }},
	{"gelu-tanh", "the tanh form of GELU", func(x float64) float64 {
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}},
	{"quick-gelu", "x·σ(1.702·x)", func(x float64) float64 { return x * sigmoid(1.702*x) }},
	{"silu", "x·σ(x)", func(x float64) float64 { return x * sigmoid(x) }},
	{"relu", "max(x, 0)", func(x float64) float64 { return max(x, 0) }},
	{"relu2", "max(x, 0)²", func(x float64) float64 { return max(x, 0) * max(x, 0) }},
	{"leaky-relu", "x, 0.01·x below 0", func(x float64) float64 { return max(x, 0.01*x) }},
	{"elu", "x, eˣ−1 below 0", func(x float64) float64 {
		if x > 0 {
			return x
		}
		return math.Expm1(x)
	}},
	{"mish", "x·tanh(ln(1+eˣ))", func(x float64) float64 { return x * math.Tanh(max(x, 0)+math.Log1p(math.Exp(-math.Abs(x)))) }},
	{"tanh", "tanh(x)", math.Tanh},
	{"sigmoid", "σ(x)", sigmoid},
	{"softplus", "ln(1+eˣ)", func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }},
}

func unaryOps(in *value) []op {
	var ops []op
	for _, k := range unaryKinds {
		ops = append(ops, &unary{in, k})
	}
	return ops
}

// findUnary tries activations of earlier values: those between children, without a module of their own.
func findUnary(g *graph, v *value) []op {
	var ops []op
	for _, x := range g.alikes(v) {
		ops = append(ops, unaryOps(x)...)
		ops = append(ops, &multiple{in: x, out: v})
		if c, ok := g.s.Config.Float(finalCap); ok && c > 0 {
			ops = append(ops, &capped{x, c})
		}
	}
	return ops
}

func (o *unary) inputs() []*value { return []*value{o.in} }

func (o *unary) eval(e *evaluation, rows []int) []float64 { return mapped(e.get(o.in, rows), o.kind.f) }

func mapped(x []float64, f func(float64) float64) []float64 {
	if x == nil {
		return nil
	}
	out := make([]float64, len(x))
	for i := range x {
		out[i] = f(x[i])
	}
	return out
}

func (o *unary) faults(g *graph, _ *value) []fault {
	var out []fault
	from, _ := o.in.made()
	for _, x := range g.siblings(from) {
		other, _ := x.made()
		if id := exchangeID(from, other); id != "" && x.width == o.in.width && x.rows == o.in.rows {
			out = append(out, fault{id: id, text: fmt.Sprintf("%s is applied to %s and not to %s", o.kind.name, lastPart(other), lastPart(from)),
				eval: func(e *evaluation, rows []int) []float64 { return mapped(e.get(x, rows), o.kind.f) }})
		}
	}
	for _, k := range unaryKinds {
		if k.name != o.kind.name {
			out = append(out, fault{id: "activation/" + k.name, text: k.name + ", " + k.formula + ", in place of " + o.kind.name,
				eval: func(e *evaluation, rows []int) []float64 { return mapped(e.get(o.in, rows), k.f) }})
		}
	}
	return append(out, fault{id: "activation/missing", text: "the activation is missing",
		eval: func(e *evaluation, rows []int) []float64 { return e.get(o.in, rows) }})
}
