package diagnose

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

func (o *attention) faults(g *graph, v *value) []fault {
	var out []fault
	base := o.base
	add := func(id, text string, rank int, change func(s *setting)) {
		s := base
		change(&s)
		out = append(out, fault{id: id, text: text, rank: rank, eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, &s) }})
	}
	o.scales(g, add)
	for _, f := range o.rules.faults(o.b, o.t) {
		add(f.id, f.text, 0, f.change)
	}
	add("attention/softmax-axis", "the softmax goes over the queries and not over the keys", 0, func(s *setting) { s.axis = overQueries })
	add("attention/softmax-axis", "the softmax goes over the heads and not over the keys", 0, func(s *setting) { s.axis = overHeads })
	if base.kv < base.heads {
		text := "the kv heads are repeated in turn (0 1 … 0 1 …) and not each in a row (0 0 … 1 1 …)"
		if base.tiled {
			text = "the kv heads are repeated each in a row (0 0 … 1 1 …) and not in turn (0 1 … 0 1 …)"
		}
		if base.kv > 1 {
			add("attention/gqa", text, 0, func(s *setting) { s.tiled = !s.tiled })
			add("attention/gqa", "all heads use the first kv head", 0, func(s *setting) { s.oneKV = true })
			for roll := 1; roll < base.kv; roll += max(base.kv-2, 1) {
				add("attention/gqa", fmt.Sprintf("each group of heads uses the kv head %+d", roll), 0, func(s *setting) { s.rollKV = roll })
			}
		}
	} else if base.heads > 1 {
		add("attention/gqa", "all heads use the first kv head", 1, func(s *setting) { s.oneKV = true })
		for kv := 2; kv < base.heads; kv *= 2 {
			if base.heads%kv == 0 {
				add("attention/gqa", fmt.Sprintf("only the first %d kv heads are used", kv), 1, func(s *setting) { s.kv = kv })
				add("attention/gqa", fmt.Sprintf("only the first %d kv heads are used, in turn", kv), 1, func(s *setting) { s.kv, s.tiled = kv, true })
			}
		}
	}
	o.headOrders(add)
	o.rotations(g, add)
	if base.sinks != nil {
		add("attention/anchor-missing", "the learned sinks are left out of the softmax", 0, func(s *setting) { s.sinks = nil })
	}
	if base.cap > 0 {
		add("config/attn_logit_softcapping", "the soft cap of the scores is missing", 0, func(s *setting) { s.cap = 0 })
	}
	for _, p := range [][3]projection{{o.k, o.q, o.v}, {o.q, o.v, o.k}, {o.v, o.k, o.q}, {o.k, o.v, o.q}, {o.v, o.q, o.k}} {
		swapped := *o
		swapped.q, swapped.k, swapped.v = p[0], p[1], p[2]
		out = append(out, fault{id: "linear/qkv-order", text: "q, k and v are exchanged in the attention", eval: func(e *evaluation, rows []int) []float64 {
			return swapped.with(e, rows, &base)
		}})
	}
	out = append(out, o.stale(g)...)
	scaled := base
	out = append(out, o.fit(g, v, "attention/scale", "the scores are scaled by another number", math.Log(base.scale/64), math.Log(base.scale*64), func(x float64) *setting {
		scaled.scale = math.Exp(x)
		return &scaled
	}))
	if n := 2 * len(base.rope.q.freqs); n > 0 && base.rope.theta > 0 {
		turned := base
		out = append(out, o.fit(g, v, "rope/theta", "theta is another number", math.Log(10), math.Log(1e9), func(x float64) *setting {
			turned.rope.q.freqs = frequencies(math.Exp(x), n)
			turned.rope.k.freqs = turned.rope.q.freqs
			return &turned
		}))
	}
	return out
}

// fit takes the setting of the number between low and high at which the target is nearest to the candidate's.
func (o *attention) fit(g *graph, v *value, id, text string, low, high float64, of func(float64) *setting) fault {
	return g.fitted(v, id, text, low, high, 80*float64(6*o.t*o.out.width*2+o.b*o.t*o.out.width), math.Exp, func(x float64) func(*evaluation, []int) []float64 {
		return func(e *evaluation, rows []int) []float64 { return o.with(e, rows, of(x)) }
	})
}

type addSetting = func(id, text string, rank int, change func(s *setting))

func (o *attention) scales(g *graph, add addSetting) {
	hidden := float64(o.base.heads * o.base.d)
	if n, ok := g.s.Config.Float("hidden_size", "n_embd", "d_model"); ok && n > 0 {
		hidden = n
	}
	d := float64(o.base.d)
	for _, s := range []struct {
		text  string
		scale float64
		rank  int
	}{
		{"1/√hidden", 1 / math.Sqrt(hidden), 0},
		{"1 (none)", 1, 0},
		{"1/√head_dim", 1 / math.Sqrt(d), 0},
		{"1/head_dim (applied twice)", 1 / d, 0},
		{"√head_dim", math.Sqrt(d), 0},
		{"1/hidden", 1 / hidden, 1},
		{"1/√heads", 1 / math.Sqrt(float64(o.base.heads)), 1},
		{"1/√(kv heads)", 1 / math.Sqrt(float64(o.base.kv)), 1},
		{"1/√(2·head_dim)", 1 / math.Sqrt(2*d), 1},
		{"1/√(head_dim/2)", 1 / math.Sqrt(d/2), 1},
		{"head_dim^(−1/4)", math.Pow(d, -0.25), 1},
		{"twice the right one", 2 * o.base.scale, 1},
		{"half the right one", o.base.scale / 2, 1},
		{"1/√(kv heads·head_dim)", 1 / math.Sqrt(float64(o.base.kv)*d), 1},
	} {
		if math.Abs(s.scale/o.base.scale-1) > 1e-9 {
			add("attention/scale", fmt.Sprintf("the scores are scaled by %s = %.6g and not by %.6g", s.text, s.scale, o.base.scale), s.rank,
				func(x *setting) { x.scale = s.scale })
		}
	}
}

func (o *attention) headOrders(add addSetting) {
	base := o.base
	width := base.heads * base.d
	for h := 1; h <= width && h <= 256; h++ {
		d := width / h
		if width%h != 0 || h == base.heads || d < 2 || o.q.grouped {
			continue
		}
		kv := base.kv * base.d / d
		if kv == 0 || kv*d != base.kv*base.d || h%kv != 0 || base.rope.q.freqs != nil && 2*len(base.rope.q.freqs) > d {
			continue
		}
		for i, scale := range []float64{1 / math.Sqrt(float64(d)), base.scale} {
			add("attention/heads", fmt.Sprintf("%d heads of %d and not %d of %d, scores scaled by %.4g", h, d, base.heads, base.d, scale), i, func(s *setting) {
				s.heads, s.kv, s.d, s.scale = h, kv, d, scale
				if n := len(s.rope.q.freqs); n > 0 && 2*n == base.d && base.rope.theta > 0 {
					f := frequencies(base.rope.theta, d)
					s.rope.q.freqs, s.rope.k.freqs = f, f
				}
			})
		}
	}
	if base.heads == 1 {
		return
	}
	all := func(q, k, v, write int) func(s *setting) {
		return func(s *setting) { s.readQ, s.readK, s.readV, s.write = q, k, v, write }
	}
	add("attention/heads", "the heads are not moved back behind the tokens: the context is read as [heads, tokens, d]", 0, all(0, 0, 0, byRawHead))
	if !o.q.grouped {
		add("attention/heads", "q, k and v are read as [heads, tokens, d] without moving an axis, and so is the context", 0, all(byRawHead, byRawHead, byRawHead, byRawHead))
		add("attention/heads", "q, k and v are read as [heads, tokens, d] without moving an axis", 0, all(byRawHead, byRawHead, byRawHead, byHead))
		add("attention/heads", "the columns of q, k and v are read as [d, heads]", 0, all(byColumn, byColumn, byColumn, byHead))
		add("attention/heads", "the columns of q, k, v and of the context are [d, heads]", 0, all(byColumn, byColumn, byColumn, byColumn))
		for i, name := range []string{"q", "k", "v"} {
			column, raw := [3]int{}, [3]int{}
			column[i], raw[i] = byColumn, byRawHead
			add("attention/heads", name+" is read as [d, heads]", 1, all(column[0], column[1], column[2], byHead))
			add("attention/heads", name+" is read as [heads, tokens, d]", 1, all(raw[0], raw[1], raw[2], byHead))
		}
	}
	add("attention/heads", "the heads of the context are written as [d, heads]", 0, all(0, 0, 0, byColumn))
	for roll := 1; roll < base.heads && roll <= 8; roll++ {
		add("attention/heads", fmt.Sprintf("the heads of the context are moved by %d", roll), 1, func(s *setting) { s.roll = roll })
	}
}

func (o *attention) rotations(g *graph, add addSetting) {
	r := o.base.rope
	d := o.base.d
	if len(r.q.freqs) == 0 {
		usual := append([]float64{1e4}, thetas[1:3]...)
		for _, theta := range usual {
			for _, interleaved := range []bool{false, true} {
				add("rope/applied", fmt.Sprintf("q and k are rotated (theta %g), which the reference does not do", theta), 1, func(s *setting) {
					x := rotation{freqs: frequencies(theta, d), interleaved: interleaved, step: 1, size: 1}
					s.rope.q, s.rope.k = x, x
				})
			}
		}
		return
	}
	both := func(id, text string, rank int, f func(x *rotation)) {
		add(id, text, rank, func(s *setting) { f(&s.rope.q); f(&s.rope.k) })
	}
	names := map[bool]string{false: "halves (i, i+n)", true: "neighbours (2i, 2i+1)"}
	both("rope/layout", fmt.Sprintf("the pairs that are rotated are %s and not %s", names[!r.q.interleaved], names[r.q.interleaved]), 0,
		func(x *rotation) { x.interleaved = !x.interleaved })
	add("rope/layout", "the pairs of q are those of the other layout", 1, func(s *setting) { s.rope.q.interleaved = !s.rope.q.interleaved })
	add("rope/layout", "the pairs of k are those of the other layout", 1, func(s *setting) { s.rope.k.interleaved = !s.rope.k.interleaved })
	negative := func(x *rotation) { x.step = -x.step }
	both("rope/layout", "q and k are rotated the other way round (the sign of the sine)", 0, negative)
	add("rope/layout", "q is rotated the other way round", 1, func(s *setting) { negative(&s.rope.q) })
	add("rope/layout", "k is rotated the other way round", 1, func(s *setting) { negative(&s.rope.k) })
	none := rotation{}
	add("rope/applied", "neither q nor k is rotated", 0, func(s *setting) { s.rope.q, s.rope.k = none, none })
	add("rope/applied", "q is not rotated", 0, func(s *setting) { s.rope.q = none })
	add("rope/applied", "k is not rotated", 0, func(s *setting) { s.rope.k = none })
	add("rope/applied", "v is rotated as well", 0, func(s *setting) { s.rope.v = s.rope.k })
	add("rope/applied", "v is rotated in place of k", 1, func(s *setting) { s.rope.v, s.rope.k = s.rope.k, none })
	add("rope/applied", "v is rotated in place of q", 1, func(s *setting) { s.rope.v, s.rope.q = s.rope.q, none })
	both("rope/applied", "q and k are rotated twice", 0, func(x *rotation) { x.step *= 2; x.offset *= 2 })
	add("rope/applied", "q is rotated twice", 1, func(s *setting) { s.rope.q.step *= 2 })
	add("rope/applied", "k is rotated twice", 1, func(s *setting) { s.rope.k.step *= 2 })
	for _, by := range []float64{1, -1, 2, -2, 3, -3, 4, 8, 16, float64(o.t)} {
		add("rope/offset", fmt.Sprintf("the positions of q are %+g", by), 0, func(s *setting) { s.rope.q.offset += by })
		add("rope/offset", fmt.Sprintf("the positions of k are %+g", by), 0, func(s *setting) { s.rope.k.offset += by })
	}
	n := 2 * len(r.q.freqs)
	theta := r.theta
	if theta > 0 {
		if plain := frequencies(theta, n); floats.Distance(plain, r.q.freqs, 2) > 1e-3*floats.Norm(plain, 2) {
			both("config/rope_scaling", fmt.Sprintf("the scaling of the frequencies is missing, which are those of theta %g", theta), -1,
				func(x *rotation) { x.freqs = plain })
		}
		for _, t := range thetas {
			if math.Abs(t/theta-1) > 1e-6 {
				both("rope/theta", fmt.Sprintf("theta is %g and not %g", t, theta), 0, func(x *rotation) { x.freqs = frequencies(t, n) })
			}
		}
		// The exponent taken of another width, as with partial rotation.
		for _, dim := range []int{o.base.heads * d, 2 * n, n / 2} {
			both("rope/theta", fmt.Sprintf("the frequencies are theta^(−2i/%d) and not theta^(−2i/%d)", dim, n), 1, func(x *rotation) {
				if all := frequencies(theta, dim); len(all) >= n/2 {
					x.freqs = all[:n/2]
				}
			})
		}
		for _, dim := range []int{d, d / 2, d / 4} {
			if dim >= 2 && dim != n {
				both("rope/applied", fmt.Sprintf("%d of %d columns of a head are rotated and not %d", dim, d, n), 0, func(x *rotation) { x.freqs = frequencies(theta, dim) })
				if dim < n {
					both("rope/applied", fmt.Sprintf("only the first %d of %d frequencies are used", dim/2, n/2), 1, func(x *rotation) { x.freqs = x.freqs[:dim/2] })
				}
			}
		}
	}
	for _, f := range []float64{0.5, 0.25, 0.125, 0.0625, 2, 4, 8} {
		both("rope/theta", fmt.Sprintf("the positions are multiplied by %g", f), 1, func(x *rotation) { x.step *= f })
	}
	if r.q.size != 1 {
		both("rope/theta", fmt.Sprintf("the factor %.4g of cosine and sine is missing", r.q.size), 0, func(x *rotation) { x.size = 1 })
	}
}

// stale: q, k or v are those of the block before.
func (o *attention) stale(g *graph) []fault {
	var out []fault
	for i, p := range []projection{o.q, o.k, o.v} {
		layer, _ := p.v.made()
		block := blockOf(layer)
		for _, x := range g.values {
			other, _ := x.made()
			if b := blockOf(other); b == "" || b == block || block == "" || other[len(b):] != layer[len(block):] || x.rows != p.v.rows || x.width != p.v.width {
				continue
			}
			changed := *o
			parts := [3]*projection{&changed.q, &changed.k, &changed.v}
			parts[i].v = x
			out = append(out, fault{id: "state/stale", text: fmt.Sprintf("%c is still %s", "qkv"[i], x.text()),
				eval: func(e *evaluation, rows []int) []float64 { return changed.with(e, rows, &o.base) }})
			if i == 1 {
				both := changed
				both.v.v = nil
				for _, y := range g.values {
					name, _ := y.made()
					if own, _ := o.v.v.made(); blockOf(name) == blockOf(other) && name != "" && name[len(blockOf(name)):] == own[len(blockOf(own)):] && y.width == o.v.v.width {
						both.v.v = y
					}
				}
				if both.v.v != nil {
					out = append(out, fault{id: "state/stale", text: fmt.Sprintf("k and v are still those of %s", blockOf(other)),
						eval: func(e *evaluation, rows []int) []float64 { return both.with(e, rows, &o.base) }})
				}
			}
		}
	}
	return out
}
