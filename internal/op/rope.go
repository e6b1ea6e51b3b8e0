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

// Rotation turns each pair (p, q) of the elements of a head by a = (position·Step + Offset)·f:
//
//	p' = Size·(p·cos a − q·sin a)
//	q' = Size·(p·sin a + q·cos a)
//
// The elements behind the pairs stay. The zero value leaves the head alone.
type Rotation struct {
	Freqs       []float64             // f of each pair, in radians per position
	Interleaved bool                  // the pairs are (2i, 2i+1), and not (i, i+n)
	Reordered   bool                  // the pairs are read in the other layout than they are written
	Offset      float64               // in positions
	Step        float64               // 1
	Size        float64               // 1; YaRN scales cosine and sine
	At          []float64             // the position of each token, or of those of all sequences, where it is not its place; nil: the place
	To          func(float64) float64 // cosine and sine are rounded; nil for as they are
	// Mix is p' and q' of p, q, cos a and sin a; nil for the above.
	Mix func(p, q, cos, sin float64) (float64, float64)
	By  [][]float64 // for each pair the positions of the tokens, where these differ (M-RoPE); nil: At
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

// angles of so many tokens, or of as many as have positions of their own.
func (r Rotation) angles(tokens int) *angles {
	tokens = max(tokens, len(r.At))
	n := len(r.Freqs)
	a := &angles{r, make([]float64, tokens*n), make([]float64, tokens*n)}
	for t := range tokens {
		position := float64(t)
		if r.At != nil {
			position = r.At[t]
		}
		for i, f := range r.Freqs {
			if r.By != nil {
				position = r.By[min(i, len(r.By)-1)][t]
			}
			s, c := math.Sincos((position*r.Step + r.Offset) * f)
			c, s = c*r.Size, s*r.Size
			if r.To != nil {
				c, s = r.To(c), r.To(s)
			}
			a.cos[t*n+i], a.sin[t*n+i] = c, s
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
		x, y := in[p], in[q]
		if a.Reordered && a.Interleaved {
			x, y = in[i], in[i+n]
		} else if a.Reordered {
			x, y = in[2*i], in[2*i+1]
		}
		c, s := a.cos[token*n+i], a.sin[token*n+i]
		if a.Mix != nil {
			out[p], out[q] = a.Mix(x, y, c, s)
			continue
		}
		out[p], out[q] = x*c-y*s, x*s+y*c
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
