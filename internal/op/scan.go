package op

import "math"

// Scan is the selective scan of Mamba (arXiv 2312.00752) and of Mamba-2 (arXiv 2405.21060). For each
// channel of x, with a state h of States numbers:
//
//	h = exp(Δ·A)·h + Δ·B·x,   Δ = softplus(dt),   A = −exp(ALog)
//	y = (C·h + D·x)·silu(z)
type Scan struct {
	Channels, States int
	Heads, Groups    int                              // of channels: the heads of a group share B and C; 0 for one group
	ALog             []float64                        // [channels, states]
	D                []float64                        // of each channel
	Step             func(dt float64) float64         // Δ; nil for softplus
	Decay            func(aLog float64) float64       // A; nil for −exp
	Keep             func(x float64) float64          // what is kept of h, of Δ·A; nil for exp
	Output           func(y, skip, z float64) float64 // of C·h, D·x and z; nil for (y + skip)·silu(z), without z y + skip
	Into             func(step, b, x float64) float64 // what enters the state; nil for Δ·B·x
	Round            func(h float64) float64          // of the state; nil for as it is
	OfB, OfC         Grouping                         // which group a head uses
	Plain            func(dt float64) float64         // Δ of what enters the state, where Step is that of what is kept; nil for Step
	Fresh            bool                             // the state is not kept from token to token
	Back             bool                             // the tokens are taken from the last to the first
	Exchanged        bool                             // B and C are exchanged
}

// Work is the number of multiplications for so many tokens.
func (s *Scan) Work(tokens int) float64 { return 4 * float64(tokens*s.Channels*s.States) }

// Of returns y for the tokens of one sequence: x, dt and z are [tokens, channels], b and c are [tokens,
// groups·states]. z is nil where there is no gate.
func (s *Scan) Of(x, dt, z, b, c []float64) []float64 {
	tokens, d, n := len(x)/s.Channels, s.Channels, s.States
	if s.Exchanged {
		b, c = c, b
	}
	groups, heads := max(s.Groups, 1), max(s.Heads, 1)
	step, decay, keep, gate, into := s.Step, s.Decay, s.Keep, s.Output, s.Into
	if step == nil {
		step = softplus
	}
	if decay == nil {
		decay = func(a float64) float64 { return -math.Exp(a) }
	}
	if keep == nil {
		keep = math.Exp
	}
	if gate == nil {
		gate = func(y, skip, z float64) float64 { return (y + skip) * z * sigmoid(z) }
		if z == nil {
			gate = func(y, skip, _ float64) float64 { return y + skip }
		}
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
			head := k / max(d/heads, 1)
			bAt, cAt := (t*groups+s.OfB.of(head, heads, groups))*n, (t*groups+s.OfC.of(head, heads, groups))*n
			delta, in, y := step(dt[t*d+k]), x[t*d+k], 0.0
			enters := delta
			if s.Plain != nil {
				enters = s.Plain(dt[t*d+k])
			}
			for j := range n {
				at := k*n + j
				h[at] = keep(delta*a[at])*h[at] + into(enters, b[bAt+j], in)
				if s.Round != nil {
					h[at] = s.Round(h[at])
				}
				y += h[at] * c[cAt+j]
			}
			g := 0.0
			if z != nil {
				g = z[t*d+k]
			}
			out[t*d+k] = gate(y, s.D[k]*in, g)
		}
	}
	return out
}

// WKV is the linear attention of RWKV (arXiv 2305.13048). For each channel, with a numerator p and a
// denominator q that begin at 0:
//
//	y = (p + e^(First+k)·v) / (q + e^(First+k))
//	p = e^Decay·p + e^k·v,   q = e^Decay·q + e^k,   Decay = −exp(decay)
type WKV struct {
	Decay, First []float64 // of each channel, Decay as it is used
	Fresh        bool      // numerator and denominator are not kept from token to token
	Back         bool      // the tokens are taken from the last to the first
}

// Of returns y for the tokens of one sequence: k and v are [tokens, channels].
func (w *WKV) Of(k, v []float64) []float64 {
	d := len(w.Decay)
	tokens := len(k) / d
	out := make([]float64, len(k))
	for c := range d {
		p, q, most := 0.0, 0.0, math.Inf(-1) // p and q are kept as multiples of e^most
		for i := range tokens {
			t := i
			if w.Back {
				t = tokens - 1 - i
			}
			if w.Fresh {
				p, q, most = 0, 0, math.Inf(-1)
			}
			key, value := k[t*d+c], v[t*d+c]
			m := max(most, key+w.First[c])
			old, own := math.Exp(most-m), math.Exp(key+w.First[c]-m)
			out[t*d+c] = (old*p + own*value) / (old*q + own)
			m = max(most+w.Decay[c], key)
			old, own = math.Exp(most+w.Decay[c]-m), math.Exp(key-m)
			p, q, most = old*p+own*value, old*q+own, m
		}
	}
	return out
}

// Softplus is ln(1 + eˣ).
func Softplus(x float64) float64 { return softplus(x) }

// Silu is x·σ(x).
func Silu(x float64) float64 { return x * sigmoid(x) }

// Sigmoid is 1 / (1 + e⁻ˣ).
func Sigmoid(x float64) float64 { return sigmoid(x) }
