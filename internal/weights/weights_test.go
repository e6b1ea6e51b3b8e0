package weights_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/internal/weights"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

const (
	hidden, inner, words, layers = 64, 96, 50, 3
	config                       = `{"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}`
)

// matrix is the values of a weight, with its number of columns; 0 for a vector.
type matrix struct {
	v     []float32
	width int
}

type model map[string]matrix

// llama makes the weights of a small model.
func llama() model {
	rng := rand.New(rand.NewPCG(1, 2))
	m := model{}
	add := func(name string, rows, width int, mean, size float64) {
		x := matrix{make([]float32, rows*max(width, 1)), width}
		for i := range x.v {
			x.v[i] = float32(mean + size*rng.NormFloat64())
		}
		m[name] = x
	}
	add("model.embed_tokens.weight", words, hidden, 0, 0.02)
	add("lm_head.weight", words, hidden, 0, 0.02)
	add("model.norm.weight", hidden, 0, 1, 0.1)
	for i := range layers {
		at := "model.layers." + string(rune('0'+i)) + "."
		add(at+"input_layernorm.weight", hidden, 0, 1, 0.1)
		add(at+"post_attention_layernorm.weight", hidden, 0, 1, 0.1)
		add(at+"self_attn.q_proj.weight", hidden, hidden, 0, 0.05)
		add(at+"self_attn.k_proj.weight", hidden/2, hidden, 0, 0.05)
		add(at+"self_attn.v_proj.weight", hidden/2, hidden, 0, 0.05)
		add(at+"self_attn.o_proj.weight", hidden, hidden, 0, 0.05)
		add(at+"mlp.gate_proj.weight", inner, hidden, 0, 0.05)
		add(at+"mlp.up_proj.weight", inner, hidden, 0, 0.05)
		add(at+"mlp.down_proj.weight", hidden, inner, 0, 0.05)
	}
	return m
}

// each changes the weights whose name contains a text.
func (m model) each(text string, f func(x matrix) matrix) {
	for name, x := range m {
		if strings.Contains(name, text) {
			m[name] = f(x)
		}
	}
}

func mapped(f func(v float32) float32) func(matrix) matrix {
	return func(x matrix) matrix {
		out := matrix{make([]float32, len(x.v)), x.width}
		for i, v := range x.v {
			out.v[i] = f(v)
		}
		return out
	}
}

func transposed(x matrix) matrix {
	rows := len(x.v) / x.width
	out := matrix{make([]float32, len(x.v)), rows}
	for i, v := range x.v {
		out.v[i%x.width*rows+i/x.width] = v
	}
	return out
}

// interleaved has the halves of the rows of each head in turn.
func interleaved(heads int) func(matrix) matrix {
	return func(x matrix) matrix {
		size := len(x.v) / x.width / heads
		out := matrix{nil, x.width}
		for h := range heads {
			for j := range size / 2 {
				for s := range 2 {
					r := h*size + s*size/2 + j
					out.v = append(out.v, x.v[r*x.width:(r+1)*x.width]...)
				}
			}
		}
		return out
	}
}

// perHead has the rows of several weights together, as GPT-NeoX has q, k and v of each head; of one head, one after the
// other.
func perHead(heads int) func(parts ...matrix) matrix {
	return func(parts ...matrix) matrix {
		out := matrix{nil, parts[0].width}
		for h := range heads {
			for _, p := range parts {
				n := len(p.v) / heads
				out.v = append(out.v, p.v[h*n:(h+1)*n]...)
			}
		}
		return out
	}
}

// bfloat16 rounds to nearest.
func bfloat16(v float32) float32 {
	b := math.Float32bits(v)
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

func (x matrix) tensor(dtype tensor.DType) (*tensor.Tensor, error) {
	shape := []int{len(x.v)}
	if x.width > 0 {
		shape = []int{len(x.v) / x.width, x.width}
	}
	if dtype != tensor.BF16 {
		return tensor.Of(x.v, shape...)
	}
	var data []byte
	for _, v := range x.v {
		b := math.Float32bits(bfloat16(v))
		data = append(data, byte(b>>16), byte(b>>24))
	}
	return tensor.New(tensor.BF16, shape, data)
}

func (m model) write(t *testing.T, dtype tensor.DType) string {
	return write(t, m.named(t, dtype), config)
}

func (m model) named(t *testing.T, dtype tensor.DType) (named []tensor.Named) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(m)) {
		x, err := m[name].tensor(dtype)
		require.NoError(t, err)
		named = append(named, tensor.Named{Name: name, Tensor: x})
	}
	return named
}

// write makes the folder of a model.
func write(t *testing.T, named []tensor.Named, config string) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(f, named, nil))
	require.NoError(t, f.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
	return dir
}

func compare(t *testing.T, ref, cand string) *weights.Report {
	t.Helper()
	r, err := compareWith(t, ref, cand, weights.Options{})
	require.NoError(t, err)
	return r
}

func compareWith(t *testing.T, ref, cand string, opt weights.Options) (*weights.Report, error) {
	t.Helper()
	a, err := weights.Open(ref, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	b, err := weights.Open(cand, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	return weights.Compare(t.Context(), a, b, opt)
}

const (
	gate0 = "model.layers.0.mlp.gate_proj.weight"
	gate1 = "model.layers.1.mlp.gate_proj.weight"
	query = "model.layers.1.self_attn.q_proj.weight"
	final = "model.norm.weight"
)

// plus adds a number to each value.
func plus(by float32) func(matrix) matrix { return mapped(func(v float32) float32 { return v + by }) }

// What is right, what is wrong, and what says nothing, by pairs of models. All that is said is in testdata/compared.want.
func TestCompare(t *testing.T) {
	const bias, head = "model.layers.0.self_attn.q_proj.bias", "lm_head.weight"
	times := func(by float32) func(matrix) matrix { return mapped(func(v float32) float32 { return v * by }) }
	fused := func(join func(parts ...matrix) matrix, into string, parts ...string) func(m model) {
		return func(m model) {
			for i := range layers {
				at := "model.layers." + string(rune('0'+i)) + "."
				var all []matrix
				for _, p := range parts {
					all = append(all, m[at+p+".weight"])
					delete(m, at+p+".weight")
				}
				m[at+into+".weight"] = join(all...)
			}
		}
	}
	qkv := func(heads int) func(m model) {
		return fused(perHead(heads), "self_attn.qkv_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
	}
	gateUp := func(parts int) func(m model) {
		return fused(perHead(parts), "mlp.gate_up_proj", "mlp.gate_proj", "mlp.up_proj")
	}
	fuse, byHead := qkv(1), qkv(2) // two heads of k and v, four of q
	columns := func(change func(m model)) func(m model) {
		return func(m model) { change(m); m.each("qkv", transposed); m.each("gate_up", transposed) }
	}
	off := func(change func(m model)) func(m model) {
		return func(m model) { change(m); m.each("1.self_attn.q", func(x matrix) matrix { x.v[300] += 0.5; return x }) }
	}
	fill := func(v float32, names ...string) func(m model) {
		return func(m model) {
			for _, name := range names {
				if _, ok := m[name]; !ok {
					m[name] = matrix{make([]float32, hidden), 0}
				}
				m[name] = mapped(func(float32) float32 { return v })(m[name])
			}
		}
	}
	without := func(names ...string) func(m model) {
		return func(m model) {
			maps.DeleteFunc(m, func(name string, _ matrix) bool { return slices.Contains(names, name) })
		}
	}
	tied := func(m model) { m[head] = m["model.embed_tokens.weight"] }
	ignored := func(m model) { clear(m); m["model.rotary_emb.inv_freq"] = matrix{[]float32{1, 2}, 0} }
	large := func(by float32) func(m model) {
		return func(m model) { m.each("norm", mapped(func(v float32) float32 { return 300 * v * by })) }
	}
	folded := func(by float32) func(m model) {
		return func(m model) {
			for name, n := range maps.Clone(m) {
				at, ok := strings.CutSuffix(name, "input_layernorm.weight")
				if !ok {
					continue
				}
				delete(m, name)
				for _, c := range "qkv" {
					x := m[at+"self_attn."+string(c)+"_proj.weight"]
					for i := range x.v {
						x.v[i] *= 1 + by*(n.v[i%hidden]-1)
					}
				}
			}
		}
	}
	one := func(m model) {
		for i := range layers {
			at := "model.layers." + string(rune('0'+i)) + "."
			n := m[at+"input_layernorm.weight"]
			for _, c := range "qkv" {
				x := m[at+"self_attn."+string(c)+"_proj.weight"]
				for k := range x.v {
					x.v[k] *= n.v[k%hidden]
				}
			}
			m[at+"input_layernorm.weight"] = mapped(func(float32) float32 { return 1 })(n)
		}
	}
	gated := func(width int, by float32) func(m model) { // Qwen3-Next's
		return func(m model) {
			norm := matrix{slices.Clone(m[final].v[:width]), 0}
			m.each("layernorm", plus(by))
			m[final] = plus(by)(m[final])
			m["model.layers.0.linear_attn.norm.weight"] = norm
		}
	}
	with := func(name string, x matrix) func(m model) { return func(m model) { m[name] = x } }
	zeros := func(m model) { m.each("", mapped(func(float32) float32 { return 0 })) }
	names := strings.NewReplacer("model.", "net.", "layers", "stage", "self_attn.o_proj", "mix.out", "mlp.down_proj", "ff.narrow",
		"self_attn.qkv_proj", "mix.in", "mlp.gate_up_proj", "ff.wide", "input_layernorm", "a",
		"post_attention_layernorm", "b", "embed_tokens", "table", "lm_head", "words")
	port := func(change func(m model)) func(m model) { // called otherwise, and fused
		return func(m model) {
			m[final] = mapped(func(float32) float32 { return 1 })(m[final])
			change(m)
			fuse(m)
			gateUp(1)(m)
			for name, x := range maps.Clone(m) {
				delete(m, name)
				m[names.Replace(name)] = x
			}
		}
	}
	down := func(a, b rune) func(m model) { // under a name of its own, with two layers exchanged
		return func(m model) {
			for i := range layers {
				from := rune('0' + i)
				if from == a || from == b {
					from = a + b - from
				}
				m["blocks."+string(rune('0'+i))+".shrink.matrix"] = m["model.layers."+string(from)+".mlp.down_proj.weight"]
			}
			maps.DeleteFunc(m, func(name string, _ matrix) bool { return strings.Contains(name, "down_proj") })
		}
	}
	ones := fill(1, final)
	some, blank := []string{"some"}, []string{"blank"}
	of := func(layer rune) string { return "model.layers." + string(layer) + ".mlp.down_proj.weight" }
	attention := func(projections string) (names []string) { // of all layers
		for _, p := range projections {
			for i := range layers {
				names = append(names, fmt.Sprintf("model.layers.%d.self_attn.%c_proj.weight", i, p))
			}
		}
		return names
	}
	narrow := map[string][2]tensor.DType{ // by reason; float32 else
		"one of 16 bits": {tensor.F32, tensor.BF16},
		"norms that are off by a unit of rounding are no norm + 1": {tensor.BF16, tensor.BF16},
		"rounded to nearest":   {tensor.F32, tensor.BF16},
		"and the other way":    {tensor.BF16, tensor.F32},
		"cut off, not rounded": {tensor.F32, tensor.BF16},
	}
	const unknown = "no config says how many heads there are"
	var all strings.Builder
	for _, r := range []struct {
		ref, cand func(m model)
		wrong     []string // the weights that are; nil for a pass
		says      string   // a step, or what is said of the first wrong one
		reason    string
	}{
		{nil, func(m model) {}, nil, "", "the same"},
		{nil, func(m model) { m.each("proj", transposed) }, nil, "transposed", "all of each role"},
		{nil, func(m model) { m[query] = transposed(m[query]) }, []string{query}, "transposed in this layer only", "one is a fault"},
		{nil, func(m model) { m.each("q_proj", interleaved(4)); m.each("k_proj", interleaved(2)) }, nil, "interleaved in 4 heads",
			"as llama.cpp"},
		{nil, func(m model) { m.each("q_proj", interleaved(4)); m.each("k_proj", interleaved(2)) }, nil, "interleaved in 4 heads", unknown},
		{nil, func(m model) { m[query] = interleaved(4)(m[query]) }, []string{query}, "in this layer only", "one is a fault"},
		{nil, func(m model) { m.each("q_proj", interleaved(4)) }, attention("qk"), "rows that belong together no longer meet", "q and not k"},
		{nil, func(m model) { m.each("o_proj", transposed) }, attention("o"),
			"transposed, and the other matrices of this module are not", "a square one alone"},
		{nil, func(m model) { m.each("self_attn", transposed) }, nil, "transposed", "a module that is stored by columns"},
		{nil, func(m model) { m.each("embed", times(8)) }, nil, "scale √64", "of an embedding"},
		{nil, func(m model) { m.each("lm_head", times(8)) }, []string{"lm_head.weight"}, "that is the scale of embeddings", "of the head alone"},
		{nil, func(m model) { m.each("embed", times(5.65)) }, []string{"model.embed_tokens.weight"}, "every element is 5.65 times the reference's", "near √64"},
		{nil, func(m model) { m.each("lm_head", times(0.125)) }, nil, "scale 1/√64", "T5 divides its logits"},
		{nil, fuse, nil, "fused", "q, k and v in one"},
		{nil, func(m model) { fuse(m); m["model.layers.1.self_attn.qkv_proj.weight"].v[70*hidden] += 0.01 },
			[]string{"model.layers.1.self_attn.k_proj.weight"}, "1 of 2048 elements", "its part is named"},
		{nil, byHead, nil, "fused per head", "the candidate has them together"},
		{byHead, without(), nil, "split per head", "the reference has"},
		{byHead, fuse, nil, "regrouped per head", "GPT-NeoX to GGUF"},
		{fuse, byHead, nil, "regrouped per head", "and back"},
		{byHead, byHead, nil, "", "the same, together"},
		{nil, off(byHead), some, "", "an element is another"},
		{off(byHead), without(), some, "", "or of the reference"},
		{byHead, off(fuse), some, "", "or regrouped"},
		{with("b.x", matrix{make([]float32, 48), 8}), with("c.x", matrix{nil, 8}), some, "", "nothing is no part of another"},
		{nil, columns(fuse), nil, "fused, transposed", "by columns"},
		{columns(byHead), without(), nil, "split per head, transposed", "and per head"},
		{nil, gateUp(inner), nil, "fused in turn", "rows of gate and up in turn"},
		{columns(gateUp(inner)), without(), nil, "split in turn, transposed", "or columns"},
		{nil, without(), nil, "cast", "rounded to nearest"},
		{nil, without(), nil, "cast", "and the other way"},
		{nil, func(m model) {
			m[gate1] = mapped(func(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ 0xffff) })(m[gate1])
		}, []string{gate1}, "", "cut off, not rounded"},
		{nil, func(m model) { m.each("norm", plus(1)) }, nil, "norm + 1", "Gemma"},
		{nil, func(m model) { m[final] = plus(1)(m[final]) }, []string{final}, "in this norm only", "one is a fault"},
		{nil, func(m model) { m.each("layernorm", plus(1)) }, []string{final}, "everywhere but in this norm", "one is missing"},
		{nil, func(m model) { m.each("q_proj", times(0.25)) }, nil, "scale 16^-1/2", "1/√d in q"},
		{nil, func(m model) { m.each("q_proj", times(4)) }, nil, "scale 16^1/2", "√d in q"},
		{nil, func(m model) { m.each("q_proj", times(2)); m.each("k_proj", times(2)) }, nil, "scale 16^1/4", "d^1/4 in q and k"},
		{nil, func(m model) { m.each("q_proj", times(math.Log2E)) }, nil, "scale log₂e", "exponentials of base 2"},
		{nil, func(m model) { m.each("q_proj", times(math.Ln2)) }, nil, "scale ln 2", "and back"},
		{nil, func(m model) { m.each("q_proj", times(math.Log2E/4)) }, nil, "scale 16^-1/2·log₂e", "with 1/√d"},
		{nil, func(m model) { m.each("norm", plus(-1)) }, nil, "norm − 1", "back from Gemma's"},
		{nil, func(m model) { m.each("q_proj", times(0.3)) }, attention("q"), "every element is 0.3 times the reference's", "a scale of no list"},
		{nil, func(m model) { // half of the rows by another number: multipliers that an engine folded in
			for i := range m[gate1].v {
				m[gate1].v[i] *= []float32{0.3, 1.7}[i/(inner*hidden/2)]
			}
		}, []string{gate1}, "each row is the reference's times a number, 0.3 to 1.7", ""},
		{nil, func(m model) { m[query] = times(0.25)(m[query]) }, []string{query}, "scale 16^-1/2 in this layer only", ""},
		{nil, func(m model) { m.each("q_proj", times(0.5)); m.each("k_proj", times(0.5)) }, nil, "scale 16^-1/4", "d^-1/4 in q and k"},
		{nil, func(m model) { m.each("k_proj", times(0.5)) }, attention("k"), "no engine makes up for that", "d^-1/4 in k alone"},
		{nil, func(m model) { m.each("q_proj", times(0.25)); m.each("k_proj", times(0.25)) }, attention("qk"),
			"no engine makes up for that", "1/√d in q and again in k"},
		{nil, func(m model) {
			for name, x := range m {
				if strings.Contains(name, "lm_head") || strings.Contains(name, "embed") {
					m[name] = matrix{append(slices.Clone(x.v), make([]float32, 14*hidden)...), hidden}
				}
			}
		}, nil, "padded", "a vocabulary that is filled up with zeros"},
		{nil, func(m model) {
			m[head] = matrix{append(append(m[head].v, make([]float32, hidden-1)...), 1), hidden}
		}, []string{head}, "shape", "or with something else"},
		{nil, func(m model) { delete(m, gate1) }, []string{gate1}, "", "missing"},
		{nil, func(m model) { m["model.extra.weight"] = m[final] }, []string{"model.extra.weight"}, "", "unused"},
		{nil, func(m model) { m["model.rotary_emb.inv_freq"] = m[final] }, nil, "", "engines calculate it"},
		{nil, func(m model) { m[gate1] = times(0)(m[gate1]) }, []string{gate1}, "all zeros", ""},
		{nil, func(m model) { m[gate0], m[gate1] = m[gate1], m[gate0] }, []string{gate0, gate1}, "it is " + gate1, "exchanged"},
		{nil, func(m model) { m[gate1] = m[gate0] }, []string{gate1}, "it is " + gate0, "twice"},
		{nil, func(m model) { m[gate1].v[77] += 1e-4 }, []string{gate1}, "first at [1 13]", "one element"},
		{nil, func(m model) { m[gate1].v[77] = float32(math.NaN()) }, []string{gate1}, "NaN or infinity", "one element"},
		{nil, func(m model) {
			for i, name := range slices.Sorted(maps.Keys(m)) {
				m["w"+string(rune('A'+i))] = m[name]
				delete(m, name)
			}
		}, nil, "renamed", "names that tell nothing"},
		{nil, func(m model) {
			for name, x := range m {
				delete(m, name)
				m["language_model."+name] = x
			}
		}, nil, "", "a prefix"},
		{nil, one, nil, "norm folded", "the norm is 1 then"},
		{one, without(), nil, "norm unfolded", "and back"},
		{nil, func(m model) { m.each("layers.1.input_layernorm", mapped(func(float32) float32 { return 1 })) },
			[]string{"model.layers.1.input_layernorm.weight"}, "64 of 64 elements", "folded into nothing"},
		{tied, without(head), nil, "", "tied"},
		{without(head), tied, nil, "", "or untied"},
		{large(1), without(head), some, "", "another output layer is no embedding"},
		{fill(0, head), fill(0, head), blank, "", "a head of zeros on both sides"},
		{fill(float32(math.NaN()), head), fill(float32(math.NaN()), head), blank, "", "a head of NaN on both sides"},
		{with(head, matrix{nil, hidden}), with(head, matrix{nil, hidden}), blank, "", "a head without rows"},
		{zeros, zeros, blank, "", "nothing but zeros"},
		{ignored, ignored, blank, "", "nothing but what engines calculate"},
		{fill(0, bias), fill(0, bias), nil, "", "a bias of zeros is usual"},
		{fill(1, final), without(final), nil, "", "a norm of ones need not be there"},
		{fill(0, bias), without(bias), nil, "", "nor a bias of zeros"},
		{fill(0.5, final), without(final), some, "", "a norm that is not 1"},
		{fill(0.1, bias), without(bias), some, "", "a bias that is not 0"},
		{without(), folded(1), nil, "", "norms in what reads them"},
		{without(), folded(0), some, "", "they are nowhere"},
		{gated(hidden/4, 0), gated(hidden/4, 1), nil, "", "a norm of another width than those + 1 is of another class"},
		{gated(hidden, 0), gated(hidden, 1), some, "", "of their width it was forgotten"},
		{large(1), large(1.0047), some, "", "norms that are off by a unit of rounding are no norm + 1"},
		{ones, port(without()), nil, "renamed", "a right port"},
		{ones, port(without()), nil, "cast", "one of 16 bits"},
		{ones, port(func(m model) { m[gate1].v[77]++ }), []string{gate1}, "", "a part of a layer is wrong: the others tell its name"},
		{ones, port(func(m model) { m[gate0], m[gate1] = m[gate1], m[gate0] }), []string{gate0, gate1}, "", "parts of two layers are exchanged"},
		{nil, down('0', '0'), nil, "renamed", "called otherwise"},
		{without(of('2')), func(m model) {
			down('0', '0')(m)
			delete(m, "blocks.2.shrink.matrix")
			m["blocks.1.shrink.matrix"].v[5]++
		}, []string{of('1')}, "1 of 6144 elements", "one of two is another"},
		{nil, down('1', '2'), []string{of('1'), of('2')}, "it is " + of('2'), "two are exchanged: they are not joined crosswise"},
	} {
		ref, cand := llama(), llama()
		if r.ref != nil {
			r.ref(ref)
		}
		r.cand(cand)
		types, ok := narrow[r.reason]
		if !ok {
			types = [2]tensor.DType{tensor.F32, tensor.F32}
		}
		config := config
		if r.reason == unknown {
			config = "{}"
		}
		other := config
		if r.reason == "the same" {
			other = `{"hidden_size": 64, "num_attention_heads": 4, "head_dim": 8}`
		}
		got := compare(t, write(t, ref.named(t, types[0]), config), write(t, cand.named(t, types[1]), other))
		name := r.reason + " " + r.says
		fmt.Fprintf(&all, "=== %s\n", name)
		require.NoError(t, got.Text(&all))
		var wrong []string
		said := false
		for _, w := range got.Weights {
			if !w.Good() {
				wrong = append(wrong, cmp.Or(w.Reference, w.Candidate))
				fmt.Fprintf(&all, "  %s: %q\n", wrong[len(wrong)-1], w.Cause)
			}
			said = said || strings.Contains(strings.Join(w.Steps, ", ")+w.Detail, r.says)
		}
		assert.Equal(t, len(r.wrong) == 0, got.Pass, name)
		if first := strings.Join(r.wrong, ""); first == "some" || first == "blank" {
			assert.Equal(t, first == "some", got.Wrong(), name)
			continue
		}
		assert.ElementsMatch(t, r.wrong, wrong, name)
		assert.True(t, said, name)
	}
	toy.Kept(t, "compared.want", all.String())
}

// TestAdapter tells a candidate that lacks the adapter which the reference has.
func TestAdapter(t *testing.T) {
	testAdapter(t, query, 0.05, `{"peft_type": "LORA", "lora_alpha": 8, "r": 4}`)
	testAdapter(t, gate1, 1, `{"lora_alpha": 4, "use_rslora": true}`) // B·A is larger than the weight
}

func testAdapter(t *testing.T, of string, size float64, config string) {
	const rank, scale = 4, 2.0
	rng := rand.New(rand.NewPCG(5, 6))
	random := func(n int) []float32 {
		return mapped(func(float32) float32 { return float32(size * rng.NormFloat64()) })(matrix{make([]float32, n), 0}).v
	}
	merged := llama()
	rows := len(merged[of].v) / hidden
	a, b := random(rank*hidden), random(rows*rank)
	for i := range rows {
		for k := range rank {
			for j := range hidden {
				merged[of].v[i*hidden+j] += scale * b[i*rank+k] * a[k*hidden+j]
			}
		}
	}
	dir := t.TempDir()
	name := "base_model.model." + strings.TrimSuffix(of, ".weight")
	lora := model{name + ".lora_A.weight": {a, hidden}, name + ".lora_B.weight": {b, rank}}
	from := lora.write(t, tensor.F32)
	data, err := os.ReadFile(filepath.Join(from, "model.safetensors"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_model.safetensors"), data, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(config), 0o600))
	adapter, err := weights.OpenAdapter(dir)
	require.NoError(t, err)
	for _, r := range []struct {
		ref, cand model
		adapter   *weights.Adapter
		pass      bool
		says      string
		reason    string
	}{
		{llama(), merged, adapter, true, "LoRA merged", "as it should be"},
		{llama(), llama(), adapter, false, "without the adapter: 2·B·A of rank 4", "forgotten"},
		{merged, llama(), nil, false, "rank 4", "no adapter is at hand: its rank tells"},
	} {
		got, err := compareWith(t, r.ref.write(t, tensor.F32), r.cand.write(t, tensor.F32), weights.Options{Adapter: r.adapter})
		require.NoError(t, err)
		assert.Equal(t, r.pass, got.Pass, r.reason)
		i := slices.IndexFunc(got.Weights, func(w weights.Result) bool { return w.Reference == of })
		assert.Contains(t, strings.Join(got.Weights[i].Steps, ", ")+got.Weights[i].Detail, r.says, r.reason)
		if !r.pass {
			assert.Equal(t, "weights/lora", got.Weights[i].Cause, r.reason)
		}
	}
	_, err = weights.OpenAdapter(from)
	require.ErrorIs(t, err, os.ErrNotExist)
	for text, want := range map[string]string{`{"peft_type": "LORA", "lora_alpha": 8, "use_dora": true}`: "only LoRA is read", `{"lora_alpha": 8, "fan_in_fan_out": true}`: "only LoRA is read",
		`{"lora_alpha": 8, "alpha_pattern": {"q": 2}}`: "only LoRA is read", `{"peft_type": "IA3", "lora_alpha": 8}`: "only LoRA is read", `{}`: "it has no lora_alpha", `[]`: "want a JSON object"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(text), 0o600))
		_, err = weights.OpenAdapter(dir)
		require.ErrorContains(t, err, want)
	}
	for want, lora := range map[string]model{"want lora_A [r, in] and lora_B [out, r]": {name + ".lora_A.weight": {a, hidden}}, "lora_B [out, r]": {name + ".lora_A.weight": {a, hidden},
		name + ".lora_B.weight": {b, 2 * rank}}, "no lora_A and lora_B": {"x": {a, hidden}}} {
		from := lora.write(t, tensor.F32)
		require.NoError(t, os.Rename(filepath.Join(from, "model.safetensors"), filepath.Join(from, "adapter_model.safetensors")))
		require.NoError(t, os.WriteFile(filepath.Join(from, "adapter_config.json"), []byte(config), 0o600))
		_, err = weights.FindAdapter(t.TempDir(), from)
		require.ErrorContains(t, err, want)
	}
}

// TestDequantised compares a quantised weight with what it stands for.
func TestDequantised(t *testing.T) {
	folder := filepath.Join("..", "checkpoint", "testdata", "quantised", "gptq_config")
	r := compare(t, filepath.Join(folder, "want.safetensors"), filepath.Join(folder, "model.safetensors"))
	require.True(t, r.Pass)
	require.Equal(t, []string{"dequantised"}, r.Weights[0].Steps)
}

func TestErrors(t *testing.T) {
	_, err := weights.Open("none.safetensors", "")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = compareWith(t, llama().write(t, tensor.F32), model{"x": {[]float32{1, 2}, 0}}.write(t, tensor.F32), weights.Options{})
	require.ErrorContains(t, err, "no weight of")
}

// A normalisation by running statistics, folded into the layer before it.
func TestBatchNorm(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	some := func(n, width int, from float32) (x matrix) {
		for range n * max(width, 1) {
			x.v = append(x.v, from+rng.Float32())
		}
		x.width = width
		return x
	}
	ref := model{"fc.weight": some(5, 8, -0.5), "conv.weight": some(8, 27, -0.5), "conv.bias": some(8, 0, -0.5), "bn.weight": some(8, 0, 0.5),
		"bn.bias": some(8, 0, -0.5), "bn.running_mean": some(8, 0, -0.5), "bn.running_var": some(8, 0, 0.5)}
	for _, tt := range []struct {
		wrong  string
		by     float32
		eps    float64
		drop   string // what the reference has not
		reason string
	}{
		{"", 1, 1e-5, "", "folded"},
		{"conv.weight", 1.01, 1e-5, "", "its weight is off"},
		{"conv.bias", 1.01, 1e-5, "", "its bias is off"},
		{"", 1, 1e-3, "conv.bias", "a layer without a bias"},
		{"conv.bias", 1.01, 1e-3, "conv.bias", "a bias that only the port has is off"},
		{"", 1, 1e-6, "bn.bias", "a norm without a bias"},
		{"", 1, 1e-4, "bn.weight", "or without a weight"},
	} {
		ref := maps.Clone(ref)
		if tt.drop != "" {
			ref[tt.drop] = mapped(func(float32) float32 { return map[string]float32{"bn.weight": 1}[tt.drop] })(ref[tt.drop])
		}
		port := model{"fc.weight": ref["fc.weight"], "conv.weight": {nil, 27}, "conv.bias": {}}
		for r := range 8 {
			s := ref["bn.weight"].v[r] / float32(math.Sqrt(float64(ref["bn.running_var"].v[r])+tt.eps))
			for _, v := range ref["conv.weight"].v[r*27 : (r+1)*27] {
				port.push("conv.weight", v*s)
			}
			port.push("conv.bias", (ref["conv.bias"].v[r]-ref["bn.running_mean"].v[r])*s+ref["bn.bias"].v[r])
		}
		delete(ref, tt.drop)
		if tt.wrong != "" {
			port[tt.wrong] = mapped(func(v float32) float32 { return v * tt.by })(port[tt.wrong])
		}
		assert.Equal(t, tt.wrong == "", compare(t, ref.write(t, tensor.F32), port.write(t, tensor.F32)).Pass, tt.reason)
	}
}

func (m model) push(name string, v float32) {
	x := m[name]
	x.v = append(x.v, v)
	m[name] = x
}

// Rules join what neither names nor values tell.
func TestRules(t *testing.T) {
	m := llama()
	m[gate0].v[5]++
	m[gate1].v[5]++
	other := model{}
	for name, x := range m {
		other[strings.ReplaceAll(name, "gate_proj", "a")] = x
	}
	got := func(rules ...match.Rule) (*weights.Report, error) {
		return compareWith(t, llama().write(t, tensor.F32), other.write(t, tensor.F32), weights.Options{Rules: rules})
	}
	r, err := got(match.Rule{Golden: []string{"mlp.gate_proj"}, Candidate: []string{"mlp.a"}})
	require.ErrorContains(t, err, "joins no weights", "%v: without a wildcard it is one layer", r)
	r, err = got(match.Rule{Golden: []string{"layers.*.mlp.gate_proj"}, Candidate: []string{"layers.*.mlp.a"}})
	require.NoError(t, err)
	for _, w := range r.Weights {
		assert.Equal(t, w.Reference != gate0 && w.Reference != gate1, w.Good(), w.Reference)
		assert.NotEqual(t, weights.Missing, w.Status, w.Reference)
	}
}
