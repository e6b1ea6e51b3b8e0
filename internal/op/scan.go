package op

import "math"

// Scan is the selective scan of Mamba (arXiv 2312.00752). For each channel of x, with a state h of
// States numbers:
//
//	h = exp(Δ·A)·h + Δ·B·x,   Δ = softplus(dt),   A = −exp(ALog)
//	y = (C·h + D·x)·silu(z)
type Scan struct {
	Channels, States int
	ALog             []float64 // [channels, states]
	D                []float64
	Step             func(dt float64) float64         // Δ; nil for softplus
	Decay            func(aLog float64) float64       // A; nil for −exp
	Output           func(y, skip, z float64) float64 // of C·h, D·x and z; nil for (y + skip)·silu(z)
	Into             func(step, b, x float64) float64 // what enters the state; nil for Δ·B·x
	Fresh            bool                             // the state is not kept from token to token
	Back             bool                             // the tokens are taken from the last to the first
	Exchanged        bool                             // B and C are exchanged
}

// Work is the number of multiplications for so many tokens.
func (s *Scan) Work(tokens int) float64 { return 4 * float64(tokens*s.Channels*s.States) }

// Of returns y for the tokens of one sequence: x, dt and z are [tokens, channels], b and c are [tokens,
// states].
func (s *Scan) Of(x, dt, z, b, c []float64) []float64 {
	tokens, d, n := len(x)/s.Channels, s.Channels, s.States
	if s.Exchanged {
		b, c = c, b
	}
	step, decay, gate, into := s.Step, s.Decay, s.Output, s.Into
	if step == nil {
		step = softplus
	}
	if decay == nil {
		decay = func(a float64) float64 { return -math.Exp(a) }
	}
	if gate == nil {
		gate = func(y, skip, z float64) float64 { return (y + skip) * z * sigmoid(z) }
	}
	if into == nil {
		into = func(step, b, x float64) float64 { return step * b * x }
	}
	out, h, a := make([]float64, len(x)), make([]float64, d*n), Map(s.ALog, decay)
	for i := range tokens {
		t := i
		if s.Back {
			t = tokens - 1 - i
		}
		if s.Fresh {
			clear(h)
		}
		for k := range d {
			delta, in, y := step(dt[t*d+k]), x[t*d+k], 0.0
			for j := range n {
				at := k*n + j
				h[at] = math.Exp(delta*a[at])*h[at] + into(delta, b[t*n+j], in)
				y += h[at] * c[t*n+j]
			}
			out[t*d+k] = gate(y, s.D[k]*in, z[t*d+k])
		}
	}
	return out
}

// Silu is x·σ(x).
func Silu(x float64) float64 { return x * sigmoid(x) }

// Sigmoid is 1 / (1 + e⁻ˣ).
func Sigmoid(x float64) float64 { return sigmoid(x) }
