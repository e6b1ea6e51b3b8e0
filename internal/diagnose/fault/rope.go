package fault

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// rotated is a calculation of attention with other rotations.
func rotated(o *rebuild.Attention, change func(r *op.Rope)) rebuild.Eval {
	return with(o, func(a *rebuild.Attention) { change(&a.Rope) })
}

// both is a calculation in which q and k are rotated otherwise.
func both(o *rebuild.Attention, change func(r *op.Rotation)) rebuild.Eval {
	return rotated(o, func(r *op.Rope) { change(&r.Q); change(&r.K) })
}

// isRotated reports whether the reference rotates q and k.
func isRotated(o *rebuild.Attention) bool { return len(o.Rope.Q.Freqs) > 0 }

// RopeLayout is a rotation of other pairs, or the other way round.
func RopeLayout(o *rebuild.Attention) (out List) {
	if !isRotated(o) {
		return nil
	}
	is, not := "neighbours (2i, 2i+1)", "halves (i, i+n)"
	if o.Rope.Q.Interleaved {
		is, not = not, is
	}
	other := func(r *op.Rotation) { r.Interleaved = !r.Interleaved }
	out.add(both(o, other), 0, "the pairs that are rotated are %s and not %s", is, not)
	out.add(rotated(o, func(r *op.Rope) { other(&r.Q) }), 1, "the pairs of q are those of the other layout")
	out.add(rotated(o, func(r *op.Rope) { other(&r.K) }), 1, "the pairs of k are those of the other layout")
	back := func(r *op.Rotation) { r.Step = -r.Step }
	out.add(both(o, back), 0, "q and k are rotated the other way round (the sign of the sine)")
	out.add(rotated(o, func(r *op.Rope) { back(&r.Q) }), 1, "q is rotated the other way round")
	out.add(rotated(o, func(r *op.Rope) { back(&r.K) }), 1, "k is rotated the other way round")
	for _, m := range []struct {
		text string
		mix  func(p, q, c, s float64) (float64, float64)
	}{
		{"the halves are exchanged without a minus (p·cos + q·sin, q·cos + p·sin)",
			func(p, q, c, s float64) (float64, float64) { return p*c + q*s, q*c + p*s }},
		{"cosine and sine are exchanged", func(p, q, c, s float64) (float64, float64) { return p*s - q*c, q*s + p*c }},
		{"what is multiplied by the sine is left out", func(p, q, c, _ float64) (float64, float64) { return p * c, q * c }},
		{"what is multiplied by the sine is not turned (x·cos + x·sin)",
			func(p, q, c, s float64) (float64, float64) { return p * (c + s), q * (c + s) }},
	} {
		out.add(both(o, func(r *op.Rotation) { r.Mix = m.mix }), 1, "%s", m.text)
	}
	return out
}

// RopeApplied is a rotation of something else than q and k, or of another part of each head.
func RopeApplied(o *rebuild.Attention) (out List) {
	if !isRotated(o) {
		thetas := []float64{1e4, 5e5, 1e6}
		if t := o.Scene().Config.Theta(); t > 0 && !slices.Contains(thetas, t) {
			thetas = append([]float64{t}, thetas...)
		}
		for _, theta := range thetas {
			for _, interleaved := range []bool{false, true} {
				out.add(both(o, func(r *op.Rotation) {
					*r = op.Rotation{Freqs: op.Frequencies(theta, o.Dim), Interleaved: interleaved, Step: 1, Size: 1}
				}), 1, "q and k are rotated (theta %g), which the reference does not do", theta)
			}
		}
		return out
	}
	none := op.Rotation{}
	out.add(both(o, func(r *op.Rotation) { *r = none }), 0, "neither q nor k is rotated")
	out.add(rotated(o, func(r *op.Rope) { r.Q = none }), 0, "q is not rotated")
	out.add(rotated(o, func(r *op.Rope) { r.K = none }), 0, "k is not rotated")
	raw := func(r *op.Rotation) { r.Step, r.Offset, r.Reordered = 0, 0, true } // beside one that is reordered by the code that rotates it
	out.add(rotated(o, func(r *op.Rope) { raw(&r.Q) }), 1, "q is not rotated, nor are its pairs put where those of k stand")
	out.add(rotated(o, func(r *op.Rope) { raw(&r.K) }), 1, "k is not rotated, nor are its pairs put where those of q stand")
	if o.ValueDim == 0 {
		rotatedValues(o, &out)
	}
	out.add(both(o, func(r *op.Rotation) { r.Step *= 2; r.Offset *= 2 }), 0, "q and k are rotated twice")
	out.add(rotated(o, func(r *op.Rope) { r.Q.Step *= 2 }), 1, "q is rotated twice")
	out.add(rotated(o, func(r *op.Rope) { r.K.Step *= 2 }), 1, "k is rotated twice")
	n, d, theta := 2*len(o.Rope.Q.Freqs), o.Dim, o.Rope.Theta
	for _, dim := range []int{d, d / 2, d / 4} {
		if dim < 2 || dim == n || theta == 0 {
			continue
		}
		out.add(both(o, func(r *op.Rotation) { r.Freqs = op.Frequencies(theta, dim) }), 0,
			"%d of %d columns of a head are rotated and not %d", dim, d, n)
		if dim < n {
			out.add(both(o, func(r *op.Rotation) { r.Freqs = r.Freqs[:dim/2] }), 1,
				"only the first %d of %d frequencies are used", dim/2, n/2)
		}
	}
	return out
}

func rotatedValues(o *rebuild.Attention, out *List) {
	none := op.Rotation{}
	out.add(rotated(o, func(r *op.Rope) { r.V = r.K }), 0, "v is rotated as well")
	out.add(rotated(o, func(r *op.Rope) { r.V, r.K = r.K, none }), 1, "v is rotated in place of k")
	out.add(rotated(o, func(r *op.Rope) { r.V, r.Q = r.Q, none }), 1, "v is rotated in place of q")
}

// Sections is M-RoPE with other sections, or other positions for them.
func Sections(o *rebuild.Attention) (out List) {
	s := o.Sections
	if s == nil {
		return nil
	}
	n := len(s.Sizes)
	own := op.Sequence(n)
	add := func(rank int, text string, by [][]float64) {
		out.add(both(o, func(r *op.Rotation) { r.By = by }), rank, "%s", text)
	}
	permuted(n, func(order []int) {
		sizes := make([]int, n)
		for i, k := range order {
			sizes[i] = s.Sizes[k]
		}
		if !slices.Equal(sizes, s.Sizes) {
			add(0, fmt.Sprintf("the sections of M-RoPE are %v and not %v", sizes, s.Sizes), s.By(sizes, own))
		}
		if !slices.Equal(order, own) {
			add(0, fmt.Sprintf("the sections of M-RoPE take positions %v and not %v (time, height, width)", order, own), s.By(s.Sizes, order))
		}
	})
	pairs, tokens := len(o.Rope.Q.Freqs), len(s.Positions[0])
	for k := range n {
		add(0, fmt.Sprintf("all pairs are rotated by positions %d of M-RoPE (time, height, width)", k), s.By([]int{pairs}, []int{k}))
	}
	plain, inTurn := make([]float64, tokens), make([][]float64, pairs)
	for t := range plain {
		plain[t] = float64(t)
	}
	for i := range inTurn {
		inTurn[i] = s.Positions[i%n]
	}
	add(0, "all pairs are rotated by the places of the tokens: the positions of M-RoPE are not read", slices.Repeat([][]float64{plain}, pairs))
	add(0, "the sections of M-RoPE stand in turn", inTurn)
	for a := range pairs {
		for b := range pairs - a {
			if sizes := []int{a, b, pairs - a - b}; n == 3 && pairs <= fewSections && !slices.Equal(sizes, s.Sizes) {
				add(1, fmt.Sprintf("the sections of M-RoPE are %v and not %v", sizes, s.Sizes), s.By(sizes, own))
			}
		}
	}
	return out
}

// permuted calls do with each order of n numbers but for large n.
func permuted(n int, do func(order []int)) {
	var visit func(order []int)
	visit = func(order []int) {
		if len(order) == n {
			do(slices.Clone(order))
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				visit(append(order, i))
			}
		}
	}
	if n <= 4 {
		visit(nil)
	}
}

// RopeOffset is a rotation by other positions.
func RopeOffset(o *rebuild.Attention) (out List) {
	if !isRotated(o) {
		return nil
	}
	for _, by := range []float64{1, -1, 2, -2, 3, -3, 4, 8, 16, float64(o.Tokens)} {
		out.add(rotated(o, func(r *op.Rope) { r.Q.Offset += by }), 0, "the positions of q are %+g", by)
		out.add(rotated(o, func(r *op.Rope) { r.K.Offset += by }), 0, "the positions of k are %+g", by)
	}
	return out
}

// RopeTheta is a rotation with other frequencies.
func RopeTheta(o *rebuild.Attention) (out List) {
	if !isRotated(o) {
		return nil
	}
	freqs, theta := o.Rope.Q.Freqs, o.Rope.Theta
	n := 2 * len(freqs)
	use := func(f []float64) rebuild.Eval { return both(o, func(r *op.Rotation) { r.Freqs = f }) }
	if theta > 0 {
		if plain := op.Frequencies(theta, n); floats.Distance(plain, freqs, 2) > sameFactor*floats.Norm(plain, 2) {
			out.add(use(plain), -1, "the scaling of the frequencies is missing, which are those of theta %g", theta).ID =
				"config/rope_scaling"
		}
		for _, t := range op.Thetas {
			if math.Abs(t/theta-1) > sameTheta {
				out.add(use(op.Frequencies(t, n)), 0, "theta is %g and not %g", t, theta)
			}
		}
		for _, dim := range []int{o.Width(), 2 * n, n / 2} { // as with partial rotation
			if all := op.Frequencies(theta, dim); len(all) >= n/2 {
				out.add(use(all[:n/2]), 1, "the frequencies are theta^(−2i/%d) and not theta^(−2i/%d)", dim, n)
			}
		}
	}
	for _, f := range []float64{0.5, 0.25, 0.125, 0.0625, 2, 4, 8} {
		out.add(both(o, func(r *op.Rotation) { r.Step *= f }), 1, "the positions are multiplied by %g", f)
	}
	const scaled = "rope/scaling"
	size := o.Rope.Q.Size
	if size != 1 {
		out.add(both(o, func(r *op.Rotation) { r.Size = 1 }), 0, "the factor %.4g of cosine and sine is missing", size).ID = scaled
		out.add(both(o, func(r *op.Rotation) { r.Size *= size }), 1, "the factor %.4g of cosine and sine is applied twice", size).ID = scaled
	}
	for _, s := range o.Scalings() {
		if floats.Distance(s.Freqs, freqs, 2) > sameFactor*floats.Norm(freqs, 2) {
			out.add(both(o, func(r *op.Rotation) { r.Freqs, r.Size = s.Freqs, s.Size }), 0, "the frequencies are %s", s.Text).ID = scaled
			out.add(use(s.Freqs), 1, "the frequencies are %s, the factor of cosine and sine is right", s.Text).ID = scaled
		}
	}
	if theta > 0 {
		out = append(out, o.Out.Searched("theta is another number", leastTheta, mostTheta, o.Work,
			func(x float64) rebuild.Eval { return use(op.Frequencies(x, n)) }))
		step := o.Out.Searched("the positions are multiplied by another number", 1.0/scaleReach, scaleReach, o.Work,
			func(x float64) rebuild.Eval { return both(o, func(r *op.Rotation) { r.Step *= x }) })
		step.ID = scaled
		out = append(out, step)
	}
	return out
}

// Angles are cosines and sines of other angles, as a rotary embedding puts them out.
func Angles(o *rebuild.Angles) (out List) {
	add := func(id, text string, change func(a *rebuild.Angles)) {
		out.add(with(o, change), 0, "%s", text).ID = id
	}
	const theta, layout = "rope/theta", "rope/layout"
	dim := 2 * len(o.Freqs)
	if o.Plain != nil {
		add("config/rope_scaling", "the scaling of the frequencies is missing", func(a *rebuild.Angles) { a.Freqs = o.Plain })
		out[0].Rank = -1 // the theta is right
	}
	for _, t := range op.Thetas {
		add(theta, fmt.Sprintf("theta is %g", t), func(a *rebuild.Angles) { a.Freqs = op.Frequencies(t, dim) })
	}
	if o.Double {
		add(layout, "the angles stand the other way: in pairs, or in halves", func(a *rebuild.Angles) { a.Pairs = !a.Pairs })
	}
	add(layout, "cosine and sine are exchanged", func(a *rebuild.Angles) { a.Sine = !a.Sine })
	for _, by := range []float64{1, -1, 2, -2} {
		add("rope/offset", fmt.Sprintf("the positions are %+g", by), func(a *rebuild.Angles) { a.Offset = by })
	}
	for _, f := range []float64{-1, 0.5, 0.25, 0.125, 2, 4, 8} {
		add(theta, fmt.Sprintf("the positions are multiplied by %g", f), func(a *rebuild.Angles) { a.Step = f })
		out[len(out)-1].Rank = 1
	}
	f := o.Out.Searched("theta is another number", leastTheta, mostTheta, nil, func(x float64) rebuild.Eval {
		return with(o, func(a *rebuild.Angles) { a.Freqs = op.Frequencies(x, dim) })
	})
	f.ID = theta
	return append(out, f)
}
