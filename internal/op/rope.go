package op

import "math"

// Thetas are the bases of rotary embeddings in use, the usual ones first.
var Thetas = []float64{
	1e4, 5e5, 1e6, 1e5, 1.5e5, 2e5, 2.5e5, 3e5, 5e4, 2e4, 4e4, 1e3, 100, 5e6, 8e6, 1e7,
}

// Frequencies returns theta^(−2i/dim) for i < dim/2, in radians per position (RoFormer, arXiv
// 2104.09864).
func Frequencies(theta float64, dim int) []float64 {
	out := make([]float64, dim/2)
	for i := range out {
		out[i] = math.Pow(theta, -2*float64(i)/float64(dim))
	}
	return out
}

// RopeScaling is the rope_scaling of a config.json.
type RopeScaling struct {
	Kind      string  // "linear" or "llama3"
	Factor    float64 // by which a context is longer than the original one
	Low, High float64 // low_freq_factor, high_freq_factor
	Original  float64 // original_max_position_embeddings
}

// Frequencies returns scaled frequencies; nil for another kind than
//
//	linear   f / factor
//	llama3   f / factor for wavelengths (2π/f) over original/low, f for those under original/high,
//	         between them (1−s)·f/factor + s·f with s = (original/wavelength − low) / (high − low)
//
// as transformers calculates them (modeling_rope_utils.py).
func (s RopeScaling) Frequencies(theta float64, dim int) []float64 {
	if !(s.Factor > 0) {
		return nil
	}
	f := Frequencies(theta, dim)
	switch {
	case s.Kind == "linear":
		return Map(f, func(f float64) float64 { return f / s.Factor })
	case s.Kind == "llama3" && s.Original > 0 && s.Low > 0 && s.High > s.Low:
		return Map(f, func(f float64) float64 {
			share := (s.Original*f/(2*math.Pi) - s.Low) / (s.High - s.Low)
			share = min(max(share, 0), 1)
			return (1-share)*f/s.Factor + share*f
		})
	}
	return nil
}

// Rotation turns each pair (p, q) of the elements of a head by a = (position·Step + Offset)·f:
//
//	p' = Size·(p·cos a − q·sin a)
//	q' = Size·(p·sin a + q·cos a)
//
// The elements behind the pairs stay. The zero value leaves the head alone.
type Rotation struct {
	Freqs       []float64 // f of each pair, in radians per position
	Interleaved bool      // the pairs are (2i, 2i+1), and not (i, i+n)
	Offset      float64   // in positions
	Step        float64   // 1
	Size        float64   // 1; YaRN scales cosine and sine
	At          []float64 // the position of each token, where it is not its place; nil: the place
}

// Rope is how q, k and v are rotated.
type Rope struct {
	Q, K, V Rotation
	Theta   float64 // 0 where it is not known
}

// angles are the cosine and the sine of each token's pairs.
type angles struct {
	Rotation
	cos, sin []float64
}

func (r Rotation) angles(tokens int) *angles {
	n := len(r.Freqs)
	a := &angles{r, make([]float64, tokens*n), make([]float64, tokens*n)}
	for t := range tokens {
		position := float64(t)
		if r.At != nil {
			position = r.At[t]
		}
		for i, f := range r.Freqs {
			s, c := math.Sincos((position*r.Step + r.Offset) * f)
			a.cos[t*n+i], a.sin[t*n+i] = c*r.Size, s*r.Size
		}
	}
	return a
}

// turn returns a head rotated for a token.
func (a *angles) turn(in []float64, token int) []float64 {
	n := len(a.Freqs)
	if n == 0 {
		return in
	}
	out := append([]float64(nil), in...)
	for i := range n {
		p, q := i, i+n
		if a.Interleaved {
			p, q = 2*i, 2*i+1
		}
		c, s := a.cos[token*n+i], a.sin[token*n+i]
		out[p], out[q] = in[p]*c-in[q]*s, in[p]*s+in[q]*c
	}
	return out
}

// Angles is out = cos or sin of position·frequency, what a rotary embedding puts out.
type Angles struct {
	Width        int
	Freqs        []float64
	Sine         bool
	Double       bool // each angle stands twice: all angles and all again
	Pairs        bool // twice in a row, with Double
	Offset, Step float64
}

// Of returns a row of Width for each position.
func (a Angles) Of(positions []float64) []float64 {
	out := make([]float64, 0, len(positions)*a.Width)
	f := math.Cos
	if a.Sine {
		f = math.Sin
	}
	for _, p := range positions {
		for c := range a.Width {
			switch {
			case a.Double && a.Pairs:
				c /= 2
			case a.Double:
				c %= len(a.Freqs)
			}
			out = append(out, f((p*a.Step+a.Offset)*a.Freqs[c]))
		}
	}
	return out
}
