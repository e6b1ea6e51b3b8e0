package diagnose_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// made is a port of a small run: golden and candidate, by label.
type made struct {
	layer, port    string
	shape          []int
	golden, actual values // actual nil: not recorded
	ids            bool   // integers
}

// runOf makes a scene of ports; the last one is the target.
func runOf(t testing.TB, kind string, ports ...made) *diagnose.Scene {
	t.Helper()
	of := func(v values, m made) *tensor.Tensor {
		if v == nil {
			return nil
		}
		if !m.ids {
			return v.tensor(t, m.shape...)
		}
		x := make([]int64, len(v))
		for i := range v {
			x[i] = int64(v[i])
		}
		return toy.Of(t, x, m.shape...)
	}
	run := &diagnose.Run{}
	for i, m := range ports {
		p := &diagnose.Port{Case: "a", Step: "0", Layer: m.layer, Port: m.port, Seq: i, Golden: of(m.golden, m), Actual: of(m.actual, m), Agrees: i < len(ports)-1}
		if !m.ids {
			p.Floor = leafFloor
		}
		run.Ports = append(run.Ports, p)
	}
	target := run.Ports[len(ports)-1]
	return &diagnose.Scene{Run: run, Kind: kind, Case: "a", Step: "0", Layer: target.Layer, Target: target,
		Failed: func(err error) { assert.NoError(t, err) }}
}

func TestCausesOfOtherPlaces(t *testing.T) {
	const n, w = 12, 32
	shape := []int{1, n, w}
	x, y, z := leafRandom(1, n*w), leafRandom(2, n*w), leafRandom(3, n*w)
	ids := make(values, n)
	for i := range ids {
		ids[i] = float64(i * 5 % 8)
	}
	table := leafRandom(5, 9*w)
	looked := func(index func(i int) int) values {
		out := make(values, n*w)
		for i := range out {
			out[i] = table[index(int(ids[i/w]))*w+i%w]
		}
		return out
	}
	same := func(i int) int { return i }
	var all strings.Builder
	positions := values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	biased := z.centred(w).normed(w)
	for i := range biased {
		biased[i] += float64(i%w) / 9
	}
	of := func(rows int, v values) values { return v[:rows*w] }
	blocksAndNormed := func(rows int, weights checkpoint.Weights) *diagnose.Scene {
		s := runOf(t, "capture", made{"m.layers.0", "output", []int{1, rows, w}, of(rows, x), noisyOf(of(rows, x)), false},
			made{"m.layers.1", "output", []int{1, rows, w}, of(rows, z), noisyOf(of(rows, z.normed(w))), false})
		s.Weights = weights
		return s
	}
	factors := slices.Repeat(values{1}, w).timesColumns(w).tensor(t, w)
	lastNormed := func(normed values) *diagnose.Scene {
		return runOf(t, "capture", made{"m.layers.0", "output", shape, x, noisyOf(x), false}, made{"m.layers.1", "output", shape, y, noisyOf(y), false},
			made{"m.norm", "output", shape, normed, noisyOf(normed), false}, made{"m.layers.2", "output", shape, z, noisyOf(normed), false})
	}
	for _, c := range []struct {
		name, kind, id string
		proven         bool
		scene          *diagnose.Scene
		reason         string
	}{
		{"row i+1", "local", "embedding/index", true, runOf(t, "local",
			made{"m.embed_tokens", "input_0", []int{1, n}, ids, ids, true},
			made{"m.embed_tokens", "output", shape, looked(same), looked(func(i int) int { return (i + 1) % 8 }), false}),
			"without the weights: the reference has shown these rows"},
		{"another table", "local", "embedding/index", false, runOf(t, "local",
			made{"m.embed_tokens", "input_0", []int{1, n}, ids, ids, true},
			made{"m.embed_tokens", "output", shape, looked(same), x.from(func(i int) int { return int(ids[i/w])*w + i%w }), false}), "whose rows the reference has not"},
		{"row of type 0", "local", "embedding/type", true, runOf(t, "local",
			made{"m.token_type_embeddings", "input_0", []int{1, n}, ids.each(func(x float64) float64 { return math.Mod(x, 2) }), ids.each(func(x float64) float64 { return math.Mod(x, 2) }), true},
			made{"m.token_type_embeddings", "output", shape, looked(func(i int) int { return i % 2 }), looked(func(int) int { return 0 }), false}),
			"one row for every index"},
		{"positions from 2", "between", "embedding/position", true, runOf(t, "between",
			made{"m.position_embeddings", "input_0", []int{1, n}, positions, positions.each(func(x float64) float64 { return x + 2 }), true}), "RoBERTa"},
		{"rotary positions", "between", "rope/offset", true, runOf(t, "between",
			made{"m.rotary_emb", "input_0", []int{1, n}, positions, positions.each(func(x float64) float64 { return x + 1 }), true}), "the same for a rotary embedding"},
		{"other tokens", "input", "input/tokens", false, runOf(t, "input",
			made{"m.embed_tokens", "input_0", []int{1, n}, ids, ids.each(func(x float64) float64 { return math.Mod(x+1, 8) }), true}), "exact: few numbers, so that no proof by fit is asked"},
		{"other positions, called an input", "input", "rope/offset", false, func() *diagnose.Scene {
			s := runOf(t, "input",
				made{"m.rotary_emb", "input_1", []int{1, n}, positions, positions.each(func(x float64) float64 { return x + 1 }), true})
			s.TokenIDs = func(_, _ string) [][]int { return [][]int{{7, 3, 3, 1}} }
			return s
		}(), "they count on, and are no tokens of the prompt"},
		{"the position of a decode step", "input", "rope/offset", false, stepOf(t, 5), "one number alone, and another one is the token of the pass"},
		{"the token of a decode step", "input", "input/tokens", false, stepOf(t, 12), "one number alone, which is the token"},
		{"other mask", "input", "input/mask", false, runOf(t, "input",
			made{"m", "input_attention_mask", []int{1, n}, positions.each(func(x float64) float64 { return min(x, 1) }), positions.each(func(float64) float64 { return 1 }), true}), "by the port's name"},
		{"other mask, called an input", "input", "input/mask", false, runOf(t, "input",
			made{"m", "input_1", []int{1, 1, 2, 3}, values{0, -1e9, -1e9, 0, 0, -1e9}, values{0, 0, -1e9, 0, 0, 0}, false}), "by its numbers"},
		{"wrong dump", "capture", "capture/wrong-tensor", true, runOf(t, "capture",
			made{"m.layers.0", "output", shape, x, noisyOf(x), false},
			made{"m.layers.1", "output", shape, y, noisyOf(x), false}), "it holds the block before"},
		{"same file", "capture", "capture/same-file", true, func() *diagnose.Scene {
			s := runOf(t, "capture",
				made{"m.layers.1", "output", shape, y, noisyOf(y), false},
				made{"m.layers.0", "output", shape, x, noisyOf(y), false})
			s.Ports[0].Seq = 9
			return s
		}(), "it holds what a later layer of the name wrote last"},
		{"drift", "drift", "drift", false, runOf(t, "drift",
			made{"m.layers.0", "output", shape, x, noisyOf(x), false},
			made{"m.layers.1", "output", shape, y, y.each(func(x float64) float64 { return 1.0001 * x }), false}), "whatever fits: the kind is the cause"},
		{"interaction", "interaction", "interaction", false, runOf(t, "interaction",
			made{"m.up_proj", "input_0", shape, x, noisyOf(x), false},
			made{"m.up_proj", "output", shape, y, make(values, len(y)), false}), "zeros would be value/constant in a local error"},
		{"blue first", "input", "image/channels", true, imageOf(t, 5, 4, func(x values) values { return x.from(func(i int) int { return i/60*60 + 40 - i/20%3*20 + i%20 }) }), "channels from after"},
		{"on its side", "input", "image/layout", true, imageOf(t, 4, 4, func(x values) values { return x.from(func(i int) int { return i/16*16 + i%4*4 + i/4%4 }) }), "rows as columns"},
		{"channels last", "input", "image/layout", true, imageOf(t, 5, 4, func(x values) values { return x.from(func(i int) int { return i/60*60 + i%3*20 + i%60/3 }) }), "as PNG has them"},
		{"another mean", "input", "image/normalise", false, imageOf(t, 8, 9, func(x values) values {
			return x.from(func(i int) int { return i }).each(func(x float64) float64 { return 2*x + 0.5 })
		}), "a factor and an offset for each channel"},
		{"another image", "input", "input/tokens", false, imageOf(t, 8, 9, func(x values) values { return leafRandom(8, len(x)) }), "nothing of the right one"},
		{"q, k and v", "local", "linear/qkv-order", true, runOf(t, "local",
			made{"m.layers.1.attn.qkv_proj", "output", []int{1, n, 3 * w}, leafRandom(7, 3*n*w), noisyOf(leafRandom(7, 3*n*w).turned(3*w, w)), false}), "whole parts"},
		{"gate and up", "local", "linear/gate-up", true, runOf(t, "local",
			made{"m.layers.1.mlp.gate_up_proj", "output", []int{1, n, 2 * w}, leafRandom(7, 2*n*w), noisyOf(leafRandom(7, 2*n*w).turned(2*w, w)), false}), "two parts"},
		{"a block of columns", "local", "layout/permuted", true, runOf(t, "local",
			made{"m.layers.1.attn.o_proj", "output", shape, x, noisyOf(x.turned(w, w/2)), false}), "halves"},
		{"three columns further", "local", "layout/shifted", true, runOf(t, "local",
			made{"m.layers.1.attn.o_proj", "output", shape, x, noisyOf(x.turned(w, 3)), false}), "round the edge, the shorter way"},
		{"three columns back", "local", "layout/shifted", true, runOf(t, "local",
			made{"m.layers.1.attn.o_proj", "output", shape, x, noisyOf(x.turned(w, w-3)), false}), "the other way"},
		{"rows in another order", "local", "layout/permuted", true, runOf(t, "local",
			made{"m.layers.1.attn.o_proj", "output", shape, x, noisyOf(x.from(func(i int) int { return i/w*5%n*w + i%w })), false}), "of one sequence"},
		{"scaled embedding", "between", "embedding/scale", true, runOf(t, "between",
			made{"m.embed_tokens", "input_0", []int{1, n}, ids, ids, true}, made{"m.embed_tokens", "output", shape, x, noisyOf(x), false},
			made{"m.layers.0", "input_0", shape, x.each(func(x float64) float64 { return x * math.Sqrt(w) }), noisyOf(x), false}), "a root of the width"},
		{"scaled, of another shape", "between", "value/scale", true, runOf(t, "between",
			made{"m.embed_tokens", "input_0", []int{1, n}, ids, ids, true}, made{"m.embed_tokens", "output", []int{1, n * w}, x, noisyOf(x), false},
			made{"m.layers.0", "input_0", shape, x.each(func(x float64) float64 { return x * math.Sqrt(w) }), noisyOf(x), false}), "no output of the table"},
		{"no types", "local", "embedding/type", true, runOf(t, "local",
			made{"m.token_type_embeddings", "output", shape, x, make(values, n*w), false}), "zeros"},
		{"few numbers", "local", "value/scale", true, runOf(t, "local", made{"m.layers.1.mlp", "output", shape,
			noisyOf(x.each(func(x float64) float64 { return math.Copysign(1.001, x) })), x.each(func(x float64) float64 { return math.Copysign(1, x) }), false}), "no rounding: they are of any type"},
		{"as all blocks", "local", "dtype/downcast", false, runOf(t, "local",
			made{"m.layers.0.mlp", "output", shape, x, x.each(leafRound(8)), false},
			made{"m.layers.1.mlp", "output", shape, y, y.each(leafRound(8)), false}), "how the run computes"},
		{"names off by one", "capture", "capture/neighbour", true, neighboursOf(t, 1), "each holds the next one's"},
		{"names off by one back", "capture", "capture/neighbour", true, neighboursOf(t, -1), "each holds that of the one before"},
		{"the last is normed", "capture", "capture/normed", true, lastNormed(z.normed(w)), "the candidate's blocks end after the final norm"},
		{"by a layer norm", "capture", "capture/normed", true, lastNormed(z.centred(w).normed(w)), "which has no bias"},
		{"of a bias", "capture", "capture/normed", true, lastNormed(biased), "of its own for each column"},
		{"by a weight at hand", "capture", "capture/normed", true, blocksAndNormed(n, checkpoint.Weights{"m.norm.weight": factors, "m.layers.0.norm.weight": factors,
			"m.head.weight": x.tensor(t, n, w), "m.bias": y[:w+1].tensor(t, w+1)}), "no output shows the norm"},
		{"by rows that prove nothing", "capture", "capture/normed", false, blocksAndNormed(4, nil), "a weight for each column fits four rows by chance, sometimes"},
		{"one row everywhere", "local", "output/last-token", true, runOf(t, "local", made{"m.layers.0", "output", shape, x, noisyOf(x), false},
			made{"m.layers.1", "output", shape, z, noisyOf(z.from(func(i int) int { return i%w + (n-1)*w })), false}), "the bias of a norm would make it"},
		{"by too few rows", "capture", "capture/wrong-tensor", false, blocksAndNormed(3, nil), "not even that"},
		{"another step's", "local", "state/stale", true, func() *diagnose.Scene {
			s := runOf(t, "local",
				made{"m.act", "output", shape, z, noisyOf(z), false},
				made{"m.act", "output", shape, y, noisyOf(z), false})
			s.Step, s.Target.Step = "1", "1"
			return s
		}(), "the same layer one step before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			causes := diagnose.Diagnose(t.Context(), c.scene)
			said(&all, c.name, causes)
			require.NotEmpty(t, causes, c.reason)
			assert.Equal(t, c.id, causes[0].ID, "%s: %s", c.reason, causes[0].Text)
			assert.True(t, causes[0].Proven || !c.proven, "%s: %s", c.reason, causes[0].Text)
		})
	}
	toy.Kept(t, "places.txt", all.String())
}

// noisyOf is the rounding of another order of summation, the same for the same numbers.
func noisyOf(v values) values {
	r := rand.New(rand.NewPCG(uint64(len(v)), 3))
	return v.each(func(x float64) float64 { return x * (1 + 1e-7*r.NormFloat64()) })
}

// stepOf is a decode step at position 12 with another one in the candidate, after a token.
func stepOf(t *testing.T, token int) *diagnose.Scene {
	s := runOf(t, "input", made{"m.rotary_emb", "input_1", []int{1, 1}, values{12}, values{13}, true})
	s.Step, s.Target.Step = "1", "1"
	s.TokenIDs = func(_, step string) [][]int { return map[string][][]int{"0": {{7, 12, 3, 1}}, "1": {{token}}}[step] }
	return s
}

// imageOf is a batch of two images of three channels that a model is given, and others in the candidate.
func imageOf(t *testing.T, h, w int, other func(x values) values) *diagnose.Scene {
	x := leafRandom(9, 6*h*w)
	return runOf(t, "input", made{"m.patch_embed", "input_0", []int{2, 3, h, w}, x, other(x), false})
}

// neighboursOf is the last but one of four blocks whose outputs have the names of those further on.
func neighboursOf(t *testing.T, by int) *diagnose.Scene {
	var ports []made
	for i := range 4 {
		layer := fmt.Sprint("m.layers.", i)
		ports = append(ports, made{layer, "output", []int{1, 12, 32}, leafRandom(uint64(i), 384), noisyOf(leafRandom(uint64((i+by+4)%4), 384)), false})
	}
	s := runOf(t, "capture", ports...)
	for _, p := range s.Ports {
		p.Agrees = false
	}
	s.Target = s.Ports[2]
	s.Layer = s.Target.Layer
	return s
}

// turned moves the columns of rows by some, round the edge.
func (v values) turned(width, by int) values {
	return v.from(func(i int) int { return i - i%width + (i+by)%width })
}

// timesColumns gives each column a factor of its own.
func (v values) timesColumns(width int) values {
	for i := range v {
		v[i] *= 0.1 + float64(i%width)/7
	}
	return v
}

// normed divides rows by their root mean square, and gives each column a factor.
func (v values) normed(width int) values {
	out := v.from(func(i int) int { return i }).timesColumns(width)
	for r := 0; r < len(v); r += width {
		square := 0.0
		for _, x := range v[r : r+width] {
			square += x * x / float64(width)
		}
		for c := range width {
			out[r+c] /= math.Sqrt(square)
		}
	}
	return out
}

// centred takes the mean from each row.
func (v values) centred(width int) values {
	out := slices.Clone(v)
	for row := range slices.Chunk(out, width) {
		floats.AddConst(-floats.Sum(row)/float64(width), row)
	}
	return out
}

// No hypothesis panics on a tensor of any shape and content, and none proves anything of numbers
// that have nothing to do with each other.
func TestHypothesesOnAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 43))
	shapes := [][]int{{}, {0}, {1}, {7}, {1, 1}, {2, 0, 4}, {3, 5}, {1, 9, 16}, {2, 4, 16}, {2, 4, 3, 8}, {1, 1, 64}, {2, 3, 2, 2, 4}}
	layers := []string{"m", "m.layers.1.self_attn", "m.layers.1.self_attn.q_proj", "m.layers.1.mlp.act_fn", "m.layers.1.input_layernorm", "m.embed_tokens",
		"m.embeddings.position_embeddings", "m.embeddings.token_type_embeddings", "m.rotary_emb", "m.lm_head", "m.blocks.1.attn", "m.t_embedder"}
	made := func(shape []int, dtype tensor.DType) *tensor.Tensor {
		n, err := tensor.NumElems(shape)
		require.NoError(t, err)
		if dtype == tensor.I64 {
			x := make([]int64, n)
			for i := range x {
				x[i] = r.Int64N(9) - 1
			}
			return toy.Of(t, x, shape...)
		}
		x := make([]float32, n)
		odd := r.IntN(4) == 0
		for i := range x {
			x[i] = float32(r.NormFloat64())
			if odd && r.IntN(5) == 0 {
				x[i] = []float32{0, float32(math.NaN()), float32(math.Inf(1)), 3e38, 1e-40}[r.IntN(5)]
			}
		}
		return toy.Of(t, x, shape...)
	}
	var all strings.Builder
	for i := range 2000 {
		run := &diagnose.Run{Config: checkpoint.Config{"num_attention_heads": float64(r.IntN(5)), "hidden_size": 16.0, "rope_theta": 1e4}, Weights: checkpoint.Weights{}}
		target := r.IntN(8)
		shape := shapes[r.IntN(len(shapes))]
		for seq := range 8 {
			s, dtype := shape, tensor.F32
			if r.IntN(3) == 0 {
				s = shapes[r.IntN(len(shapes))]
			}
			if r.IntN(6) == 0 {
				dtype = tensor.I64
			}
			p := &diagnose.Port{Case: "a", Step: "0", Layer: layers[r.IntN(len(layers))], Port: []string{"input_0", "output", "output_1", "tap"}[r.IntN(4)], Seq: seq,
				Golden: made(s, dtype), Floor: leafFloor, Agrees: seq != target}
			switch r.IntN(5) {
			case 0: // the candidate recorded nothing
			case 1:
				p.Actual = p.Golden
			case 2:
				p.Actual = made(shapes[r.IntN(len(shapes))], tensor.F32)
			default:
				p.Actual = made(s, dtype)
			}
			if rows := p.Golden.Len() / max(p.Golden.RowLen(), 1); r.IntN(4) == 0 {
				p.PadRows = make([]bool, rows)
				for k := range p.PadRows {
					p.PadRows[k] = r.IntN(3) == 0
				}
			}
			if r.IntN(3) == 0 && len(s) > 0 {
				run.Weights[p.Layer+".weight"] = made([]int{r.IntN(20), s[len(s)-1]}, tensor.F32)
			}
			run.Ports = append(run.Ports, p)
		}
		kind := []string{"local", "between", "input", "capture", "drift", "interaction", "weights", ""}[r.IntN(8)]
		at := run.Ports[target]
		s := &diagnose.Scene{Run: run, Kind: kind, Case: "a", Step: "0", Layer: at.Layer, Target: at,
			Failed: func(err error) { assert.NoError(t, err, fmt.Sprintf("scene %d", i)) }}
		for _, s.Kind = range []string{kind, "local"} {
			causes := diagnose.Diagnose(t.Context(), s)
			if i%8 == 0 && len(causes) > 0 {
				said(&all, fmt.Sprintf("scene %d: %s %s-%s", i, s.Kind, at.Layer, at.Port), causes)
			}
			for _, c := range causes {
				small := at.Golden.Len() < 64
				assert.False(t, c.Proven && !small && at.Golden.DType().IsFloat() && s.Kind != "input" && s.Kind != "capture", "scene %d: %s", i, c.Text)
			}
		}
	}
	toy.Kept(t, "anything.txt", all.String())

	// A scene without a target has nothing to say.
	s := &diagnose.Scene{Run: &diagnose.Run{}, Kind: "local", Failed: func(err error) { assert.NoError(t, err) }}
	assert.Empty(t, diagnose.Diagnose(t.Context(), s))
}
