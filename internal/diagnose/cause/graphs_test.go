package cause_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/cause"
	"github.com/goparity/goparity/internal/op"
)

// An attention of a graph that was written by hand: neither config nor weights tell what it does.
func ownAttention() op.Attention {
	return op.Attention{Sequences: 1, Tokens: 12, Heads: 4, KV: 2, Dim: 16, Scale: 0.3, Mask: op.Causal()}
}

type projections struct{ q, k, v values }

func project(a op.Attention) projections {
	n := a.Tokens * a.Dim
	return projections{gaussian(80, n*a.Heads), gaussian(81, n*a.KV), gaussian(82, n*a.KV)}
}

// context is the scene of an attention whose context is wrong.
func (p projections) context(t *testing.T, right, wrong op.Attention) *diagnose.Scene {
	rows := op.Sequence(right.Tokens)
	return runOf(t, "between",
		made{"m.layers.1.attn.q_proj", "output", []int{1, right.Tokens, right.Heads * right.Dim}, p.q, p.q, false},
		made{"m.layers.1.attn.k_proj", "output", []int{1, right.Tokens, right.KV * right.Dim}, p.k, p.k, false},
		made{"m.layers.1.attn.v_proj", "output", []int{1, right.Tokens, right.KV * right.Dim}, p.v, p.v, false},
		made{"m.layers.1.attn.o_proj", "input_0", []int{1, right.Tokens, right.Width()}, right.Of(p.q, p.k, p.v, rows), wrong.Of(p.q, p.k, p.v, rows), false})
}

func TestOwnAttention(t *testing.T) {
	capped, windowed, sinking := ownAttention(), ownAttention(), ownAttention()
	capped.Cap, windowed.Mask = 2, op.Windowed(6)
	sinking.Sinks, sinking.Scale = []float64{0.5, -1, 2, 0.1}, 0.25
	for _, c := range []struct {
		id     string
		right  op.Attention
		change func(a *op.Attention)
		reason string
	}{
		{"attention/gqa", capped, func(a *op.Attention) { a.OfV.Tiled = true }, "v alone is grouped in turn"},
		{"attention/gqa", ownAttention(), func(a *op.Attention) { a.OfK.Tiled = true }, "k alone is"},
		{"attention/gqa", ownAttention(), func(a *op.Attention) { a.OfV.Shift = 1 }, "v of the next head"},
		{"attention/heads", ownAttention(), func(a *op.Attention) { a.Q.Roll = 1 }, "q of the next head"},
		{"attention/mask", windowed, func(a *op.Attention) { a.Mask = op.Windowed(5) }, "a window that is one too short"},
		{"attention/mask", windowed, func(a *op.Attention) { a.Mask = op.Windowed(7) }, "a window that is one too long"},
		{"config/attn_logit_softcapping", capped, func(a *op.Attention) { a.Cap = 4 }, "another cap"},
		{"config/attn_logit_softcapping", capped, func(a *op.Attention) { a.Cap = 2 * 0.3 }, "the cap in front of the scale"},
		{"attention/anchor-missing", sinking, func(a *op.Attention) { a.Sinks = nil }, "no sinks"},
		{"attention/anchor-missing", sinking, func(a *op.Attention) { a.Sinks = []float64{-1, 2, 0.1, 0.5} }, "each has the next one's sink"},
		{"dtype/downcast", ownAttention(), func(a *op.Attention) {
			a.Rounded = &op.Rounded{To: op.Half.Round, V: true}
		}, "v in float16"},
		{"layout/shifted", ownAttention(), func(a *op.Attention) {
			a.KeyAt = func(b, s int) (int, int) { return b, (s + a.Tokens - 1) % a.Tokens }
		}, "the keys are a place late"},
	} {
		wrong := c.right
		c.change(&wrong)
		proven(t, project(c.right).context(t, c.right, wrong), c.id, c.reason)
	}
}

// Where a model hands the weights of attention to a dropout, they are what is wrong first.
func TestWeightsOfAttention(t *testing.T) {
	a := ownAttention()
	a.KV, a.Relative = 4, &op.RelativeBias{Slopes: op.Slopes(4)}
	p := project(a)
	weights := func(change func(a *op.Attention)) (out values) {
		b := a
		change(&b)
		w := b.Weigh(p.q, p.k, p.v)
		for h := range a.Heads {
			for i := range a.Tokens {
				out = append(out, w.Weights(0, h, i)...)
			}
		}
		return out
	}
	wide, shape := []int{1, a.Tokens, 64}, []int{1, a.Heads, a.Tokens, a.Tokens}
	for _, c := range []struct {
		id     string
		change func(a *op.Attention)
		reason string
	}{
		{"attention/bias", func(a *op.Attention) { a.Relative = nil }, "no slopes"},
		{"attention/scale", func(a *op.Attention) { a.Scale = 0.6 }, "another scale"},
		{"attention/causal", func(a *op.Attention) { a.Mask = &op.Mask{} }, "no mask"},
	} {
		s := runOf(t, "between",
			made{"m.layers.1.attn", "input_alibi", []int{4, 1, a.Tokens}, gaussian(83, 4*a.Tokens), gaussian(83, 4*a.Tokens), false},
			made{"m.layers.1.attn.q_proj", "output", wide, p.q, p.q, false},
			made{"m.layers.1.attn.k_proj", "output", wide, p.k, p.k, false},
			made{"m.layers.1.attn.v_proj", "output", wide, p.v, p.v, false},
			made{"m.layers.1.attn.dropout", "input_0", shape, weights(func(*op.Attention) {}), weights(c.change), false})
		proven(t, s, c.id, c.reason)
	}
}

func TestMamba2(t *testing.T) {
	const tokens, heads, each, n, groups = 10, 4, 2, 3, 2
	const d, wide = heads * each, heads*each + 2*groups*n
	x, in := gaussian(90, tokens*wide), gaussian(91, tokens*(d+wide+heads))
	aLog, skip, bias := gaussian(92, heads).each(math.Abs), gaussian(93, heads), gaussian(94, heads)
	part := func(x values, width, first, n int) (out values) {
		for at := 0; at < len(x); at += width {
			out = append(out, x[at+first:at+first+n]...)
		}
		return out
	}
	spread := func(x values, n int) (out values) {
		for _, v := range x {
			for range n {
				out = append(out, v)
			}
		}
		return out
	}
	of := func(biases float64, change func(s *op.Scan)) values {
		s := op.Scan{Channels: d, States: n, Heads: heads, Groups: groups, ALog: spread(aLog, each*n), D: spread(skip, each)}
		change(&s)
		dt := part(in, d+wide+heads, d+wide, heads)
		for i := range dt {
			dt[i] += biases * bias[i%heads]
		}
		return s.Of(part(x, wide, 0, d), spread(dt, each), nil, part(x, wide, d, groups*n), part(x, wide, d+groups*n, groups*n))
	}
	right := of(1, func(*op.Scan) {})
	for _, c := range []struct {
		id     string
		actual values
		reason string
	}{
		{"ssm/skip", of(1, func(s *op.Scan) { s.D = make(values, d) }), "D is lost"},
		{"ssm/step", of(0, func(*op.Scan) {}), "no bias of dt"},
		{"ssm/decay", of(1, func(s *op.Scan) { s.Decay = func(a float64) float64 { return -a } }), "A_log is not raised"},
		{"ssm/decay", of(1, func(s *op.Scan) { s.Keep = func(x float64) float64 { return 1 + x } }), "Euler's step"},
		{"ssm/state", of(1, func(s *op.Scan) { s.OfB.Tiled = true }), "the groups of B in turn"},
		{"ssm/state", of(1, func(s *op.Scan) { s.Exchanged = true }), "B and C exchanged"},
		{"dtype/downcast", of(1, func(s *op.Scan) { s.Round = op.Half.Round }), "the state in float16"},
	} {
		s := runOf(t, "between",
			made{"m.mixer.in_proj", "output", []int{1, tokens, d + wide + heads}, in, in, false},
			made{"m.mixer.act", "output", []int{1, tokens, wide}, x, x, false},
			made{"m.mixer.norm", "input_0", []int{1, tokens, d}, right, c.actual, false})
		s.Weights = checkpoint.Weights{"m.mixer.A_log": aLog.tensor(t, heads), "m.mixer.D": skip.tensor(t, heads), "m.mixer.dt_bias": bias.tensor(t, heads)}
		s.Config = checkpoint.Config{"n_groups": float64(groups)}
		proven(t, s, c.id, c.reason)
	}
}

func TestGatedNorm(t *testing.T) {
	const tokens, d = 10, 8
	x, z, w := gaussian(100, tokens*d), gaussian(101, tokens*d), gaussian(102, d)
	norm := op.Norm{Width: d, Weight: w, Eps: 1e-5}
	gate := op.Map(z, op.Silu)
	right := norm.Of(op.Times(x, gate))
	shape := []int{1, tokens, d}
	for _, weights := range []checkpoint.Weights{{"m.mixer.norm.weight": w.tensor(t, d)}, nil} {
		for _, c := range []struct {
			actual values
			reason string
		}{
			{op.Times(norm.Of(x), gate), "the gate behind the norm"},
			{norm.Of(x), "no gate"},
			{norm.Of(op.Times(x, z)), "a gate without its activation"},
		} {
			s := runOf(t, "local",
				made{"m.mixer.norm", "input_0", shape, x, x, false},
				made{"m.mixer.norm", "input_1", shape, z, z, false},
				made{"m.mixer.norm", "output", shape, right, c.actual, false})
			s.Weights = weights
			proven(t, s, "ssm/gate", c.reason)
		}
	}
}

func TestRWKV(t *testing.T) {
	const tokens, d = 10, 6
	shape := []int{1, tokens, d}
	k, v, r, h := gaussian(110, tokens*d), gaussian(111, tokens*d), gaussian(112, tokens*d), gaussian(113, tokens*d)
	decay, first, mix := gaussian(114, d), gaussian(115, d), gaussian(116, d).each(func(x float64) float64 { return op.Sigmoid(x) })
	weights := checkpoint.Weights{"m.attention.time_decay": decay.tensor(t, d), "m.attention.time_first": first.tensor(t, d),
		"m.attention.time_mix_key": mix.tensor(t, d)}
	of := func(w op.WKV, gate func(float64) float64) values { return op.Times(w.Of(k, v), op.Map(r, gate)) }
	own := decay.each(func(x float64) float64 { return -math.Exp(x) })
	for _, c := range []struct {
		id     string
		actual values
		reason string
	}{
		{"ssm/skip", of(op.WKV{Decay: own, First: make(values, d)}, op.Sigmoid), "no time_first"},
		{"ssm/decay", of(op.WKV{Decay: decay, First: first}, op.Sigmoid), "the decay as it is kept"},
		{"ssm/state", of(op.WKV{Decay: own, First: first, Fresh: true}, op.Sigmoid), "nothing is kept"},
		{"ssm/gate", of(op.WKV{Decay: own, First: first}, func(r float64) float64 { return r }), "no sigmoid"},
	} {
		s := runOf(t, "between",
			made{"m.attention.key", "output", shape, k, k, false},
			made{"m.attention.value", "output", shape, v, v, false},
			made{"m.attention.receptance", "output", shape, r, r, false},
			made{"m.attention.output", "input_0", shape, of(op.WKV{Decay: own, First: first}, op.Sigmoid), c.actual, false})
		s.Weights = weights
		proven(t, s, c.id, c.reason)
	}
	mixed := func(m values) (out values) {
		for i, x := range h {
			before := 0.0
			if i >= d {
				before = h[i-d]
			}
			out = append(out, m[i%d]*x+(1-m[i%d])*before)
		}
		return out
	}
	s := runOf(t, "between",
		made{"m.attention.time_shift", "input_0", shape, h, h, false},
		made{"m.attention.key", "input_0", shape, mixed(mix), mixed(mix.each(func(m float64) float64 { return 1 - m })), false})
	s.Weights = weights
	proven(t, s, "ssm/state", "a token and the one before exchanged")
}

// Around a convolution the axes of tokens and channels are exchanged.
func TestTurned(t *testing.T) {
	const tokens, d, more = 8, 6, 3
	in, conv := gaussian(120, tokens*2*d), gaussian(121, d*(tokens+more))
	given := func(first int) values {
		return make(values, d*tokens).fill(func(i int) float64 { return in[i%tokens*2*d+first+i/tokens] })
	}
	taken := func(shift int, f func(float64) float64) values {
		return make(values, d*tokens).fill(func(i int) float64 { return f(conv[i%d*(tokens+more)+i/d+shift]) })
	}
	proven(t, runOf(t, "between",
		made{"m.mixer.in_proj", "output", []int{1, tokens, 2 * d}, in, in, false},
		made{"m.mixer.conv1d", "input_0", []int{1, d, tokens}, given(0), given(d), false}), "linear/gate-up", "the other half")
	for _, c := range []struct {
		id     string
		actual values
	}{
		{"conv/padding", taken(1, op.Silu)},
		{"activation/missing", taken(0, func(x float64) float64 { return x })},
		{"activation/sigmoid", taken(0, op.Sigmoid)},
	} {
		proven(t, runOf(t, "between",
			made{"m.mixer.conv1d", "output", []int{1, d, tokens + more}, conv, conv, false},
			made{"m.mixer.x_proj", "input_0", []int{1, tokens, d}, taken(0, op.Silu), c.actual, false}), c.id, c.id)
	}
}

func (v values) fill(of func(i int) float64) values {
	for i := range v {
		v[i] = of(i)
	}
	return v
}

func TestImages(t *testing.T) {
	const channels, side = 8, 4
	x, w, b := gaussian(130, 2*channels*side*side), gaussian(131, channels), gaussian(132, channels)
	shape := []int{2, channels, side, side}
	grouped := func(groups int, eps float64) values {
		y := op.Norm{Width: channels / groups * side * side, Center: true, Eps: eps}.Of(x)
		for i := range y {
			c := i / (side * side) % channels
			y[i] = y[i]*w[c] + b[c]
		}
		return y
	}
	for _, weights := range []checkpoint.Weights{{"m.norm1.weight": w.tensor(t, channels), "m.norm1.bias": b.tensor(t, channels)}, nil} {
		for id, actual := range map[string]values{"norm/kind": grouped(2, 1e-5), "norm/eps": grouped(4, 0.3)} {
			s := runOf(t, "local", made{"m.norm1", "input_0", shape, x, x, false}, made{"m.norm1", "output", shape, grouped(4, 1e-5), actual, false})
			s.Weights = weights
			proven(t, s, id, id)
		}
	}
	time := gaussian(133, 2*channels)
	added := func(f float64) values {
		return x.add(make(values, len(x)).fill(func(i int) float64 { return time[i/(side*side)] }), func(int) float64 { return f })
	}
	proven(t, runOf(t, "between",
		made{"m.time_emb_proj", "output", []int{2, channels}, time, time, false},
		made{"m.conv1", "output", shape, x, x, false},
		made{"m.norm2", "input_0", shape, added(1), added(0), false}), "residual/missing", "the time is not added")
	larger := func(way op.Resizing) (out values) {
		for at := 0; at < len(x); at += side * side {
			out = append(out, way.Of(x[at:at+side*side], side, side, 2*side, 2*side, 1)...)
		}
		return out
	}
	proven(t, runOf(t, "between",
		made{"m.mid", "output", shape, x, x, false},
		made{"m.upsample", "input_0", []int{2, channels, 2 * side, 2 * side}, larger(op.Resizing{Kind: "nearest"}), larger(op.Resizing{Kind: "bilinear"}), false}),
		"image/resize", "bilinear for nearest")
	factors := gaussian(134, channels)
	rows := gaussian(135, 10*channels)
	scaled := rows.from(func(i int) int { return i }).fill(func(i int) float64 { return rows[i] * factors[i%channels] })
	proven(t, runOf(t, "local",
		made{"m.layer.1.layer_scale1", "input_0", []int{1, 10, channels}, rows, rows, false},
		made{"m.layer.1.layer_scale1", "output", []int{1, 10, channels}, scaled, rows, false}), "residual/scale", "no layer scale, whose weights are not given")
}

// The positions of a larger image are made of those of a smaller one.
func TestPositionsOfAnotherSize(t *testing.T) {
	const old, grid, w = 3, 5, 8
	patches, table := gaussian(140, w*grid*grid), gaussian(141, old*old*w)
	class := gaussian(142, w)
	of := func(way op.Resizing) values {
		at := way.Of(table, old, old, grid, grid, w)
		return append(class.from(func(i int) int { return i }), make(values, grid*grid*w).fill(func(i int) float64 { return patches[i%w*grid*grid+i/w] + at[i] })...)
	}
	whole := append(make(values, w), table...)
	for _, way := range []op.Resizing{{Kind: "bilinear"}, {Kind: "bicubic", Aligned: true}, {Kind: "nearest"}} {
		s := runOf(t, "between",
			made{"m.embeddings.projection", "output", []int{1, w, grid, grid}, patches, patches, false},
			made{"m.embeddings", "output", []int{1, 1 + grid*grid, w}, of(op.Resizing{Kind: "bicubic"}), of(way), false})
		s.Weights = checkpoint.Weights{"m.embeddings.position_embeddings": whole.tensor(t, 1, 1+old*old, w)}
		proven(t, s, "embedding/position", way.String())
	}
}

// A dropout that is off hands on what is positive: it is no activation that a candidate lacks.
func TestDropoutIsNoActivation(t *testing.T) {
	shape := []int{1, 6, 8}
	x := gaussian(150, 48)
	positive, other := x.each(func(x float64) float64 { return max(x, 0) }), x.each(op.Silu)
	s := runOf(t, "local",
		made{"m.act", "output", shape, positive, other, false},
		made{"m.dropout", "input_0", shape, positive, other, false},
		made{"m.dropout", "output", shape, positive, other, false})
	for _, c := range diagnose.Diagnose(context.Background(), s, cause.For(s.Kind)) {
		assert.False(t, c.Proven, c.String())
	}
}
