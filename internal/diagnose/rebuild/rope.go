package rebuild

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/op"
)

// ropes lists the rotations of heads of d that the reference may use: what it recorded of its
// angles and what the config says, and none; without both the usual ones.
func (g *Graph) ropes(v *Value, o *Attention, d int) []op.Rope {
	c, dim := g.Scene.Config, d
	if f, ok := c.Float("partial_rotary_factor", "rotary_pct"); ok && f > 0 && f <= 1 {
		dim = int(f*float64(d)) / 2 * 2
	} else if n, ok := c.Int("rotary_dim"); ok && n <= d {
		dim = n
	}
	var out []op.Rope
	add := func(freqs []float64, size, theta float64) {
		for _, interleaved := range []bool{false, true} {
			r := op.Rotation{Freqs: freqs, Interleaved: interleaved, Step: 1, Size: size}
			out = append(out, op.Rope{Q: r, K: r, Theta: theta})
		}
	}
	theta := c.Theta()
	for _, a := range g.angles(v, d) {
		shown := theta
		if n := len(a.freqs); shown == 0 && n > 1 && math.Abs(a.freqs[0]-1) < unitFrequency && a.freqs[1] > 0 {
			shown = math.Round(math.Pow(a.freqs[1], -float64(n)))
		}
		add(a.freqs, a.size, shown)
	}
	if theta > 0 {
		if s := scaling(c, o.Layer); s.Factor > 0 || s.Short != nil {
			lengths := []float64{float64(o.Tokens)}
			if s.Kind != "yarn" && s.Kind != "linear" && s.Kind != "llama3" {
				lengths = append(lengths, s.Context+1) // longrope and dynamic, after a longer run
			}
			for _, s.Length = range lengths {
				if freqs := s.Frequencies(theta, dim); freqs != nil {
					add(freqs, s.Size(), theta)
				}
			}
		}
		add(op.Frequencies(theta, dim), 1, theta)
	}
	if at := g.positions(o); at != nil {
		placed := slices.Clone(out)
		for i := range placed {
			placed[i].Q.At, placed[i].K.At = at, at
		}
		out = append(placed, out...) // first: only padding tells them apart
	}
	if by := g.sections(o, out); by != nil {
		out = by
	}
	out = append(out, op.Rope{})
	if o.Keys != 0 {
		return []op.Rope{{}} // to other tokens there are no distances
	}
	if len(out) == 1 {
		for _, theta := range op.Thetas {
			add(op.Frequencies(theta, dim), 1, theta)
		}
		for _, part := range []int{2, 4} { // partial rotation
			for _, theta := range op.Thetas[:partialThetas] {
				if c == nil && dim%(2*part) == 0 {
					add(op.Frequencies(theta, dim/part), 1, theta)
				}
			}
		}
	}
	return out
}

// positions are those that the reference recorded, where they are not the places of the tokens; nil
// for none.
func (g *Graph) positions(o *Attention) []float64 {
	n := o.Tokens
	for _, x := range g.values {
		if x.IsFloat() || x.golden.Len() != n && x.golden.Len() != o.Sequences*n || x.golden.RowLen() != n ||
			!slices.ContainsFunc(x.ports, func(p *diagnose.Port) bool {
				return p.IsInput() && (strings.Contains(p.Port, "position") || strings.Contains(p.Layer, "rotary"))
			}) {
			continue
		}
		at := op.ReadAll(x.golden)
		for i, p := range at {
			if p != float64(i%n) {
				return at
			}
		}
		return nil
	}
	return nil
}

// Scaling is how frequencies may be scaled, in place of what the config says.
type Scaling struct {
	Text  string
	Freqs []float64
	Size  float64 // of cosine and sine
}

// Scalings lists other scalings than the config's, with its numbers; nil for a config without one.
func (o *Attention) Scalings() (out []Scaling) {
	c := o.Scene().Config
	own, theta, n := scaling(c, o.Layer), c.Theta(), len(o.Rope.Q.Freqs)
	if own.Factor == 0 && own.Short == nil || theta == 0 || n == 0 {
		return nil
	}
	add := func(text string, change func(s *op.RopeScaling)) {
		s := own
		s.Length = float64(o.Tokens)
		change(&s)
		if f := s.Frequencies(theta, 2*n); f != nil {
			out = append(out, Scaling{text, f, s.Size()})
		}
	}
	for _, kind := range []string{"linear", "llama3", "yarn", "dynamic"} {
		if kind != own.Kind {
			add("scaled as type "+kind+" and not "+own.Kind, func(s *op.RopeScaling) { s.Kind = kind })
		}
	}
	for _, f := range []float64{0.5, 2, 0.25, 4} {
		add(fmt.Sprintf("scaled by factor %g and not %g", f*own.Factor, own.Factor), func(s *op.RopeScaling) { s.Factor *= f })
	}
	if own.Short != nil {
		add("divided by the short factors and the long ones exchanged", func(s *op.RopeScaling) { s.Short, s.Long = s.Long, s.Short })
	}
	add("scaled with max_position_embeddings for original_max_position_embeddings", func(s *op.RopeScaling) { s.Original = s.Context })
	add("scaled with the factors of low and high frequencies exchanged", func(s *op.RopeScaling) {
		s.Low, s.High, s.Fast, s.Slow = s.High, s.Low, cmp.Or(s.Slow, 1), cmp.Or(s.Fast, 32)
	})
	add("scaled with bounds that are not whole numbers", func(s *op.RopeScaling) { s.Untruncated = !s.Untruncated })
	return out
}

// angle is what cosines and sines were made with.
type angle struct {
	freqs []float64
	size  float64
}

// angles takes the frequencies from recorded cosines and sines of positions 0, 1, …: two values of
// equal shape, before v, whose squares add up to the same everywhere. A model may have several, by
// the kind of layer.
func (g *Graph) angles(v *Value, d int) (out []angle) {
	var all []*Value
	for _, x := range g.before(v) {
		shape := x.golden.Shape()
		if x.Width <= d && x.Width >= 2 && x.Rows >= 2 && len(shape) >= 2 && Length(shape) == Length(v.golden.Shape()) {
			all = append(all, x)
		}
	}
	two := []int{0, 1}
	for _, c := range all {
		cos := c.Golden(two)
		if cos[0] <= 0 || !repeats(cos[:c.Width], c.Width) {
			continue // position 0 has no angle
		}
		for _, s := range all {
			if s == c || s.Width != c.Width {
				continue
			}
			sin := s.Golden(two)
			if floats.Norm(sin[:s.Width], 2) > sineAtZero*cos[0] {
				continue
			}
			if whole := anglesOf(cos[c.Width:], sin[c.Width:], cos[0]); whole != nil {
				if freqs := single(whole, d); freqs != nil {
					a := angle{g.exact(freqs), cos[0]}
					if !slices.ContainsFunc(out, func(b angle) bool { return b.size == a.size && slices.Equal(b.freqs, a.freqs) }) {
						out = append(out, a)
					}
				}
			}
		}
	}
	return out
}

// anglesOf returns the angles of cosines and sines that are multiplied by size; nil if they are
// not.
func anglesOf(cos, sin []float64, size float64) []float64 {
	out := make([]float64, len(cos))
	for i := range out {
		if math.Abs(math.Hypot(cos[i], sin[i])-size) > sizePrecision*size {
			return nil
		}
		out[i] = math.Atan2(sin[i], cos[i])
	}
	return out
}

// single returns the frequencies without their repetition; nil if they are too many for a head of
// d.
func single(whole []float64, d int) []float64 {
	n := len(whole) / 2
	switch even := len(whole)%2 == 0; {
	case even && floats.Distance(whole[:n], whole[n:], 2) <= anglePrecision*floats.Norm(whole, 2): // [f, f]
		return whole[:n]
	case even && repeats(whole, 2): // [f0, f0, f1, f1, …]
		return op.Select(whole, 2, []int{0})
	case 2*len(whole) <= d:
		return whole
	}
	return nil
}

// exact returns the frequencies of a theta where they are that: rounded angles are not good for
// later positions.
func (g *Graph) exact(freqs []float64) []float64 {
	n := len(freqs)
	if n < 2 || freqs[0] <= leastFrequency {
		return freqs
	}
	theta := math.Pow(freqs[1]/freqs[0], -float64(n))
	if t := g.Scene.Config.Theta(); t > 0 && math.Abs(t/theta-1) < configTheta {
		theta = t
	}
	exact := op.Frequencies(theta, 2*n)
	for i, f := range freqs { // one by one: scaled ones differ in the small ones alone
		if math.Abs(exact[i]-f) >= thetaPrecision*math.Abs(f) {
			return freqs
		}
	}
	if math.Abs(theta-math.Round(theta)) >= anglePrecision*theta {
		return freqs
	}
	for _, t := range op.Thetas {
		if math.Abs(theta/t-1) < sizePrecision {
			theta = t
			break
		}
	}
	return op.Frequencies(theta, 2*n)
}

// repeats reports whether the elements of each run of n are the same.
func repeats(x []float64, n int) bool {
	for i, v := range x {
		if first := x[i-i%n]; math.Abs(v-first) > anglePrecision*math.Abs(first) {
			return false
		}
	}
	return true
}
