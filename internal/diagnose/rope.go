package diagnose

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// rope says how q, k and v are rotated; the zero value leaves them alone.
type rope struct {
	q, k, v rotation
	theta   float64 // 0 where it is not known
}

// rotation turns pairs of columns by position·frequency.
type rotation struct {
	freqs       []float64 // radians per position, one per pair; none for no rotation
	interleaved bool      // pairs (2i, 2i+1), and not (i, i+n)
	offset      float64   // added to each position
	step        float64   // the positions are multiplied by it; 1 is usual
	size        float64   // the result is multiplied by it; 1 is usual
}

// frequencies are theta^(−2i/dim).
func frequencies(theta float64, dim int) []float64 {
	out := make([]float64, dim/2)
	for i := range out {
		out[i] = math.Pow(theta, -2*float64(i)/float64(dim))
	}
	return out
}

// scaledFrequencies are the frequencies after the config's rope scaling; nil if it has none, or one of another kind than
//
//	linear   f / factor
//	llama3   f / factor for wavelengths (2π/f) over original / low_freq_factor, f for those under original / high_freq_factor, between them
//	         (1−s)·f/factor + s·f with s = (original/wavelength − low) / (high − low)
func (c Config) scaledFrequencies(theta float64, dim int) []float64 {
	scaling, ok := c["rope_scaling"].(map[string]any)
	if !ok {
		scaling, _ = c["rope_parameters"].(map[string]any) // since transformers 5
	}
	r := Config(scaling)
	factor, _ := r.Float("factor")
	low, _ := r.Float("low_freq_factor")
	high, _ := r.Float("high_freq_factor")
	original, _ := r.Float("original_max_position_embeddings")
	if !(factor > 0) {
		return nil
	}
	out := frequencies(theta, dim)
	switch r.String("rope_type", "type") {
	case "linear":
		for i := range out {
			out[i] /= factor
		}
	case "llama3":
		if !(original > 0 && low > 0 && high > low) {
			return nil
		}
		for i, f := range out {
			s := (original*f/(2*math.Pi) - low) / (high - low)
			s = min(max(s, 0), 1)
			out[i] = (1-s)*f/factor + s*f
		}
	default:
		return nil
	}
	return out
}

// turn rotates each head.
func (r rotation) turn(x heads, tokens, d int) heads {
	n := len(r.freqs)
	if n == 0 || x == nil {
		return x
	}
	if 2*n > d {
		return nil
	}
	cos, sin := make([]float64, tokens*n), make([]float64, tokens*n)
	for t := range tokens {
		for i, f := range r.freqs {
			s, c := math.Sincos((float64(t)*r.step + r.offset) * f)
			cos[t*n+i], sin[t*n+i] = c*r.size, s*r.size
		}
	}
	return func(b, h, t int) []float64 {
		in := x(b, h, t)
		out := make([]float64, d)
		copy(out, in)
		for i := range n {
			p, q := i, i+n
			if r.interleaved {
				p, q = 2*i, 2*i+1
			}
			c, s := cos[t*n+i], sin[t*n+i]
			out[p], out[q] = in[p]*c-in[q]*s, in[p]*s+in[q]*c
		}
		return out
	}
}

// thetas in use.
var thetas = []float64{1e4, 5e5, 1e6, 1e5, 1.5e5, 2e5, 2.5e5, 3e5, 5e4, 2e4, 4e4, 1e3, 100, 5e6, 8e6, 1e7}

// ropes lists the rotations that the reference may use: what the config says and what it recorded of its angles, else none, else the usual ones.
func (g *graph) ropes(v *value, _ *attention, d int) []rope {
	both := func(freqs []float64, interleaved bool, size, theta float64) rope {
		r := rotation{freqs: freqs, interleaved: interleaved, step: 1, size: size}
		return rope{q: r, k: r, theta: theta}
	}
	dim := d
	if f, ok := g.s.Config.Float("partial_rotary_factor", "rotary_pct"); ok && f > 0 && f <= 1 {
		dim = int(f*float64(d)) / 2 * 2
	} else if n, ok := g.s.Config.Int("rotary_dim"); ok && n <= d {
		dim = n
	}
	var out []rope
	if freqs, size := g.angles(v, d); freqs != nil {
		theta := 0.0
		if t, ok := g.s.Config.Float("rope_theta", "rotary_emb_base"); ok {
			theta = t
		} else if n := len(freqs); n > 1 && freqs[0] > 0.99 && freqs[0] < 1.01 && freqs[1] > 0 {
			theta = math.Round(math.Pow(freqs[1], -float64(n)))
		}
		out = append(out, both(freqs, false, size, theta), both(freqs, true, size, theta))
	}
	theta, known := g.s.Config.Float("rope_theta", "rotary_emb_base")
	if known && theta > 0 {
		if freqs := g.s.Config.scaledFrequencies(theta, dim); freqs != nil {
			out = append(out, both(freqs, false, 1, theta), both(freqs, true, 1, theta))
		}
		out = append(out, both(frequencies(theta, dim), false, 1, theta), both(frequencies(theta, dim), true, 1, theta))
	}
	out = append(out, rope{})
	if len(out) == 1 {
		for _, theta := range thetas {
			out = append(out, both(frequencies(theta, dim), false, 1, theta), both(frequencies(theta, dim), true, 1, theta))
		}
	}
	return out
}

// angles takes the frequencies from recorded cosines and sines of positions 0, 1, …: two values of equal shape, before v, whose squares add up
// to the same everywhere.
func (g *graph) angles(v *value, d int) (freqs []float64, size float64) {
	var all []*value
	for _, x := range g.before(v) {
		if x.width <= d && x.width >= 2 && x.rows >= 2 && len(x.shape) >= 2 && x.shape[len(x.shape)-2] == v.shape[len(v.shape)-2] {
			all = append(all, x)
		}
	}
	for _, c := range all {
		cos := read(c.golden, c.width, []int{0, 1})
		if cos[0] <= 0 || !constant(cos[:c.width]) {
			continue // position 0 has no angle
		}
		for _, s := range all {
			if s == c || s.width != c.width {
				continue
			}
			sin := read(s.golden, s.width, []int{0, 1})
			if floats.Norm(sin[:s.width], 2) > 1e-6*cos[0] {
				continue
			}
			size = cos[0]
			whole := make([]float64, c.width)
			ok := true
			for i := range whole {
				x, y := cos[c.width+i], sin[c.width+i]
				if math.Abs(math.Hypot(x, y)-size) > 0.02*size {
					ok = false
					break
				}
				whole[i] = math.Atan2(y, x)
			}
			if !ok {
				continue
			}
			n := c.width / 2
			switch {
			case c.width%2 == 0 && floats.Distance(whole[:n], whole[n:], 2) <= 1e-3*floats.Norm(whole, 2): // [f, f]
				freqs = whole[:n]
			case c.width%2 == 0 && pairwise(whole): // [f0, f0, f1, f1, …]
				for i := range n {
					freqs = append(freqs, whole[2*i])
				}
			case 2*c.width <= d:
				freqs = whole
			default:
				continue
			}
			// Rounded angles are not good for later positions: where they are those of a theta, take that.
			if n := len(freqs); n > 1 && freqs[0] > 0.9 {
				theta := math.Pow(freqs[1]/freqs[0], -float64(n))
				if t, ok := g.s.Config.Float("rope_theta", "rotary_emb_base"); ok && math.Abs(t/theta-1) < 0.1 {
					theta = t
				}
				if exact := frequencies(theta, 2*n); floats.Distance(exact, freqs, 2) < 0.01*floats.Norm(freqs, 2) && math.Abs(theta-math.Round(theta)) < 1e-3*theta {
					return frequencies(roundTheta(theta), 2*n), size
				}
			}
			return freqs, size
		}
	}
	return nil, 0
}

// roundTheta gives the usual theta next to a measured one.
func roundTheta(theta float64) float64 {
	for _, t := range thetas {
		if math.Abs(theta/t-1) < 0.02 {
			return t
		}
	}
	return theta
}

func constant(x []float64) bool {
	for _, v := range x {
		if math.Abs(v-x[0]) > 1e-3*math.Abs(x[0]) {
			return false
		}
	}
	return true
}

func pairwise(x []float64) bool {
	for i := 0; i+1 < len(x); i += 2 {
		if math.Abs(x[i]-x[i+1]) > 1e-3*math.Abs(x[i]) {
			return false
		}
	}
	return true
}
