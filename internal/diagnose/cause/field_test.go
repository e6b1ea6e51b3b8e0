package cause_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/diagnose/cause"
	"github.com/goparity/goparity/internal/op"
)

// The toy has experts, a convolution, a scan and an image: what models have besides attention and MLP.
const (
	fieldTokens = 12
	fieldHidden = 8
	fieldInner  = 6
	fieldCount  = 4 // experts
)

type field struct {
	x, scores, shares, shared, gate values
	chosen                          values
	weights                         checkpoint.Weights
	experts                         op.Experts
}

func gaussian(seed uint64, n int) values {
	r := rand.New(rand.NewPCG(seed, 5))
	out := make(values, n)
	for i := range out {
		out[i] = float64(float32(r.NormFloat64()))
	}
	return out
}

func newField(t *testing.T) *field {
	t.Helper()
	f := &field{x: gaussian(1, fieldTokens*fieldHidden), scores: gaussian(2, fieldTokens*fieldCount), weights: checkpoint.Weights{},
		shared: gaussian(8, fieldTokens*fieldHidden), gate: gaussian(9, fieldTokens)}
	up, down := gaussian(3, fieldCount*2*fieldInner*fieldHidden), gaussian(4, fieldCount*fieldInner*fieldHidden)
	f.weights["m.layers.1.mlp.experts.gate_up_proj"] = up.tensor(t, fieldCount, 2*fieldInner, fieldHidden)
	f.weights["m.layers.1.mlp.experts.down_proj"] = down.tensor(t, fieldCount, fieldHidden, fieldInner)
	f.experts = op.Experts{Hidden: fieldHidden, Inner: fieldInner,
		GateUp: func(e int) []float64 { return up[e*2*fieldInner*fieldHidden:][:2*fieldInner*fieldHidden] },
		Down:   func(e int) []float64 { return down[e*fieldInner*fieldHidden:][:fieldInner*fieldHidden] },
		Gate:   func(g, u float64) float64 { return op.Silu(g) * u }}
	f.shares, f.chosen = f.route(op.Router{K: 2, Renormalised: true, Factor: 1})
	return f
}

// route returns what a router makes of the scores.
func (f *field) route(r op.Router) (shares, chosen values) {
	for i := range fieldTokens {
		row := f.scores[i*fieldCount : (i+1)*fieldCount]
		c := r.Choose(row)
		for j, s := range r.Shares(row, c) {
			shares, chosen = append(shares, s), append(chosen, float64(c[j]))
		}
	}
	return shares, chosen
}

// run returns what the experts make of their input.
func (f *field) run(change func(x *op.Experts)) values {
	x := f.experts
	if change != nil {
		change(&x)
	}
	var chosen [][]int
	var shares [][]float64
	for i := range fieldTokens {
		chosen = append(chosen, []int{int(f.chosen[2*i]), int(f.chosen[2*i+1])})
		shares = append(shares, f.shares[2*i:2*i+2])
	}
	return x.Of(f.x, chosen, shares)
}

const fieldMLP = "m.layers.1.mlp"

func (f *field) routed(t *testing.T, actual values) *diagnose.Scene {
	both := []int{fieldTokens, 2}
	return runOf(t, "local",
		made{fieldMLP + ".gate", "output_0", []int{fieldTokens, fieldCount}, f.scores, f.scores, false},
		made{fieldMLP + ".gate", "output_2", both, f.chosen, f.chosen, true},
		made{fieldMLP + ".gate", "output_1", both, f.shares, actual, false})
}

func (f *field) given(t *testing.T, actual values) *diagnose.Scene {
	both, shape := []int{fieldTokens, 2}, []int{fieldTokens, fieldHidden}
	return runOf(t, "between",
		made{fieldMLP + ".experts", "input_0", shape, f.x, f.x, false},
		made{fieldMLP + ".experts", "input_1", both, f.chosen, f.chosen, true},
		made{fieldMLP + ".experts", "input_2", both, f.shares, f.shares, false},
		made{fieldMLP + ".experts", "output", shape, f.run(nil), actual, false})
}

func (f *field) choice(t *testing.T, golden, actual values) *diagnose.Scene {
	return runOf(t, "between",
		made{fieldMLP + ".gate", "output", []int{fieldTokens, fieldCount}, f.scores, f.scores, false},
		made{fieldMLP + ".experts", "input_1", []int{fieldTokens, 2}, golden, actual, true})
}

// sum is routed experts, and a shared one with a gate.
func (f *field) sum(t *testing.T, gated func(g float64) float64) *diagnose.Scene {
	routed, shape := f.run(nil), []int{fieldTokens, fieldHidden}
	add := func(of func(g float64) float64) values {
		return routed.from(func(i int) int { return i }).add(f.shared, func(i int) float64 { return of(f.gate[i/fieldHidden]) })
	}
	return runOf(t, "between",
		made{fieldMLP + ".experts", "output", shape, routed, routed, false},
		made{fieldMLP + ".shared_expert.down_proj", "output", shape, f.shared, f.shared, false},
		made{fieldMLP + ".shared_expert_gate", "output", []int{fieldTokens, 1}, f.gate, f.gate, false},
		made{fieldMLP, "output", shape, add(op.Sigmoid), add(gated), false})
}

func (v values) add(o values, by func(i int) float64) values {
	out := make(values, len(v))
	for i := range v {
		out[i] = v[i] + by(i)*o[i]
	}
	return out
}

func TestExperts(t *testing.T) {
	f := newField(t)
	of := func(r op.Router) values { shares, _ := f.route(r); return shares }
	chosenBy := func(r op.Router) values { _, chosen := f.route(r); return chosen }
	bias := values{0.4, -0.4, 0.1, 0.2}
	biased := op.Router{K: 2, Scoring: op.SigmoidScores, Factor: 1, Bias: bias}
	plain := biased
	plain.Bias = nil
	f.weights[fieldMLP+".gate.e_score_correction_bias"] = bias.tensor(t, fieldCount)
	exchanged := func(e int) int { return []int{1, 0, 2, 3}[e] }
	for _, c := range []struct {
		id     string
		scene  *diagnose.Scene
		reason string
	}{
		{"moe/renorm", f.routed(t, of(op.Router{K: 2, Factor: 1})), "softmax of all"},
		{"moe/scores", f.routed(t, of(op.Router{K: 2, Scoring: op.SigmoidScores, Factor: 1})), "sigmoids"},
		{"moe/shares", f.routed(t, f.shares.from(func(i int) int { return i ^ 1 })), "turned order"},
		{"moe/bias", f.choice(t, chosenBy(biased), chosenBy(plain)), "the choice without its bias"},
		{"moe/expert-order", f.given(t, f.run(func(x *op.Experts) { x.Weights = exchanged })), "two experts exchanged"},
		{"moe/k", f.given(t, f.run(func(x *op.Experts) { x.Without = 1 })), "one expert of two"},
		{"moe/shares", f.given(t, f.run(func(x *op.Experts) { x.OnInput = true })), "shares on the input"},
		{"activation/gelu", f.given(t, f.run(func(x *op.Experts) {
			x.Gate = func(g, u float64) float64 { return g * 0.5 * math.Erfc(-g/math.Sqrt2) * u }
		})), "another activation inside"},
		{"linear/gate-up", f.given(t, f.run(func(x *op.Experts) { x.InTurn = true })), "gate and up in turn"},
		{"moe/shared", f.sum(t, func(float64) float64 { return 0 }), "no shared expert"},
		{"moe/shared", f.sum(t, func(float64) float64 { return 1 }), "a shared expert without its gate"},
	} {
		c.scene.Weights, c.scene.Config = f.weights, checkpoint.Config{"hidden_act": "silu"}
		proven(t, c.scene, c.id, c.reason)
	}
}

// proven requires a proof of a cause.
func proven(t *testing.T, s *diagnose.Scene, id, reason string) {
	t.Helper()
	causes := diagnose.Diagnose(context.Background(), s, cause.For(s.Kind))
	require.NotEmpty(t, causes, reason)
	assert.Equal(t, id, causes[0].ID, "%s: %s", reason, causes[0].String())
	assert.True(t, causes[0].Proven, "%s: %s", reason, causes[0].String())
}

// A choice that is right for the candidate's own scores is no fault of the router.
func TestChoiceOfOtherScores(t *testing.T) {
	f := newField(t)
	other := gaussian(20, len(f.scores))
	own := f.scores
	f.scores = other
	_, chosen := f.route(op.Router{K: 2, Factor: 1})
	f.scores = own
	s := runOf(t, "between",
		made{fieldMLP + ".gate", "output", []int{fieldTokens, fieldCount}, own, other, false},
		made{fieldMLP + ".experts", "input_1", []int{fieldTokens, 2}, f.chosen, chosen, true})
	for _, c := range diagnose.Diagnose(context.Background(), s, cause.For(s.Kind)) {
		assert.NotContains(t, c.ID, "moe/", c.String())
	}
}

func TestScan(t *testing.T) {
	const tokens, d, n = 10, 4, 3
	x, dt, bc, in := gaussian(40, tokens*d), gaussian(41, tokens*d), gaussian(42, tokens*(2+2*n)), gaussian(43, tokens*2*d)
	scan := op.Scan{Channels: d, States: n, ALog: gaussian(44, d*n).each(math.Abs), D: gaussian(45, d)}
	of := func(change func(s *op.Scan)) values {
		s := scan
		change(&s)
		var z, b, c values
		for r := range tokens {
			z = append(z, in[r*2*d+d:(r+1)*2*d]...)
			b, c = append(b, bc[r*(2+2*n)+2:][:n]...), append(c, bc[r*(2+2*n)+2+n:][:n]...)
		}
		return s.Of(x, dt, z, b, c)
	}
	for _, c := range []struct {
		id     string
		change func(s *op.Scan)
		reason string
	}{
		{"ssm/skip", func(s *op.Scan) { s.D = make(values, d) }, "D is lost"},
		{"ssm/step", func(s *op.Scan) { s.Step = op.Sigmoid }, "another Δ"},
		{"ssm/decay", func(s *op.Scan) { s.Decay = func(a float64) float64 { return -a } }, "A_log is not raised"},
		{"ssm/gate", func(s *op.Scan) { s.Output = func(y, skip, _ float64) float64 { return y + skip } }, "no gate"},
		{"ssm/state", func(s *op.Scan) { s.Fresh = true }, "the state is not kept"},
	} {
		s := runOf(t, "between",
			made{"m.mixer.in_proj", "output", []int{1, tokens, 2 * d}, in, in, false},
			made{"m.mixer.x_proj", "input_0", []int{1, tokens, d}, x, x, false},
			made{"m.mixer.x_proj", "output", []int{1, tokens, 2 + 2*n}, bc, bc, false},
			made{"m.mixer.dt_proj", "output", []int{1, tokens, d}, dt, dt, false},
			made{"m.mixer.out_proj", "input_0", []int{1, tokens, d}, of(func(*op.Scan) {}), of(c.change), false})
		s.Weights = checkpoint.Weights{"m.mixer.A_log": values(scan.ALog).tensor(t, d, n), "m.mixer.D": values(scan.D).tensor(t, d)}
		proven(t, s, c.id, c.reason)
	}
}

func TestPatches(t *testing.T) {
	const grid, w = 3, 8
	patches, class, positions := gaussian(50, w*grid*grid), gaussian(51, w), gaussian(52, (1+grid*grid)*w)
	of := func(at func(p int) int, patch func(p int) int) values {
		out := class.add(positions, func(int) float64 { return 1 })[:w]
		for p := range grid * grid {
			for c := range w {
				out = append(out, patches[c*grid*grid+patch(p)]+positions[(1+at(p))*w+c])
			}
		}
		return out
	}
	same := func(p int) int { return p }
	turned := func(p int) int { return p%grid*grid + p/grid }
	for _, c := range []struct {
		id     string
		actual values
		reason string
	}{
		{"embedding/position", of(turned, same), "rows and columns of the positions exchanged"},
		{"layout/permuted", of(same, turned), "the patches by column"},
	} {
		s := runOf(t, "between",
			made{"m.embeddings.patch_embedding", "output", []int{1, w, grid, grid}, patches, patches, false},
			made{"m.embeddings", "output", []int{1, 1 + grid*grid, w}, of(same, same), c.actual, false})
		s.Weights = checkpoint.Weights{"m.embeddings.position_embedding.weight": positions.tensor(t, 1+grid*grid, w)}
		proven(t, s, c.id, c.reason)
	}
}

func TestSkippedAndImages(t *testing.T) {
	shape := []int{1, 6, 8}
	x, y := gaussian(60, 48), gaussian(61, 48)
	proven(t, runOf(t, "local",
		made{"m.layers.1", "input_0", shape, x, x, false},
		made{"m.layers.1", "output", shape, y, x, false}), "residual/missing", "a block gives back its input")
	proven(t, runOf(t, "local",
		made{"m.post_norm", "input_0", shape, x, x, false},
		made{"m.post_norm", "output", shape, rmsNorm(x, 8), x, false}), "norm/missing", "a norm gives back its input")

	const h, w = 10, 10
	pixels := gaussian(62, 3*h*w)
	image := func(actual values) *diagnose.Scene {
		return runOf(t, "input", made{"m", "input_pixel_values", []int{1, 3, h, w}, pixels, actual, false})
	}
	proven(t, image(pixels.each(func(x float64) float64 { return 0.25*x + 0.5 })), "image/normalise", "another mean and deviation")
	proven(t, image(pixels.from(func(i int) int { return i + (2-2*(i/(h*w)))*h*w })), "image/channels", "blue first")
	proven(t, image(pixels.from(func(i int) int { return i/(h*w)*h*w + i%w*w + i/w%h })), "image/layout", "height and width exchanged")
}

func TestBuckets(t *testing.T) {
	const n = 24
	of := func(r op.RelativeBias) (out values) {
		r.Table = make([][]float64, 8)
		for i := range n * n {
			out = append(out, float64(r.Bucket(i%n-i/n)))
		}
		return out
	}
	right := op.RelativeBias{Far: 20, Both: true}
	for _, c := range []struct {
		other  op.RelativeBias
		reason string
	}{
		{op.RelativeBias{Far: 128, Both: true}, "the usual distance"},
		{op.RelativeBias{Far: 20}, "the buckets of a decoder"},
	} {
		s := runOf(t, "between", made{"m.SelfAttention.relative_attention_bias", "input_0", []int{n, n}, of(right), of(c.other), true})
		s.Config = checkpoint.Config{"relative_attention_num_buckets": 8.0, "relative_attention_max_distance": 20.0}
		proven(t, s, "attention/bias", c.reason)
	}
}

// Two guesses that explain an error alike explain nothing.
func TestNoDecoys(t *testing.T) {
	x, y := gaussian(70, 64), gaussian(71, 64)
	near := func(id string, share float64) diagnose.Hypothesis {
		return diagnose.Func(func(s *diagnose.Scene) []diagnose.Prediction {
			v := x.add(y, func(int) float64 { return share })
			return []diagnose.Prediction{{ID: id, Value: &diagnose.Array{Shape: []int{8, 8}, Data: v}}}
		})
	}
	scene := func() *diagnose.Scene {
		return runOf(t, "local", made{"m.fc", "output", []int{8, 8}, x.add(y, func(int) float64 { return 1 }), x, false})
	}
	for _, c := range []struct {
		other float64
		want  int
		why   string
	}{
		{0.24, 0, "as near: neither is told"},
		{0.9, 1, "far: it is no guess, the first stands alone"},
	} {
		got := diagnose.Diagnose(context.Background(), scene(), []diagnose.Hypothesis{near("a/one", 0.2), near("b/other", c.other)})
		assert.Len(t, got, c.want, c.why)
	}
}
