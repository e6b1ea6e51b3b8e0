package checkpoint

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// ggufKeys are the keys of GGUF by those of config.json, after a dot those after the name of the architecture.
var ggufKeys = map[string]string{
	"hidden_size": ".embedding_length", "num_hidden_layers": ".block_count",
	"intermediate_size": ".feed_forward_length", "max_position_embeddings": ".context_length",
	"num_attention_heads": ".attention.head_count", "num_key_value_heads": ".attention.head_count_kv",
	"head_dim": ".attention.key_length", "rms_norm_eps": ".attention.layer_norm_rms_epsilon",
	"layer_norm_eps": ".attention.layer_norm_epsilon", "rope_theta": ".rope.freq_base",
	"rope_scaling_factor": ".rope.scaling.factor", "sliding_window": ".attention.sliding_window",
	"num_local_experts": ".expert_count", "num_experts_per_tok": ".expert_used_count", "vocab_size": ".vocab_size",
	"final_logit_softcapping": ".final_logit_softcapping", "attn_logit_softcapping": ".attn_logit_softcapping",
	"bos_token_id": "tokenizer.ggml.bos_token_id", "eos_token_id": "tokenizer.ggml.eos_token_id",
}

// ggufMark is the key that only the config of a .gguf file has.
const ggufMark = "gguf"

// GGUFConfig returns the config that the metadata of a .gguf file stands for, by the keys of
// Hugging Face. model_type is the architecture.
func GGUFConfig(metadata map[string]string) Config {
	arch := metadata["general.architecture"]
	c := Config{"model_type": arch, ggufMark: true}
	for key, from := range ggufKeys {
		if strings.HasPrefix(from, ".") {
			from = arch + from
		}
		if v, err := strconv.ParseFloat(metadata[from], 64); err == nil {
			c[key] = v
		}
	}
	if text := metadata[arch+".rope.scaling.type"]; strings.TrimSpace(text) != "" {
		c["rope_scaling_type"] = text
	}
	return c
}

// family is how llama.cpp writes the models of an architecture.
type family struct {
	interleaved bool              // the rows of each head of q and k stand in pairs: i, i + d/2
	plusOne     bool              // norms hold 1 + w
	names       map[string]string // that differ
}

// sandwich are the norms of a model that has them before and after each part of a layer.
var sandwich = map[string]string{"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
	"post_ffw_norm": "post_feedforward_layernorm"}

// families are those whose weights have one name each in both, by general.architecture.
var families = map[string]family{
	"llama":  {interleaved: true},
	"qwen2":  {},
	"qwen3":  {},
	"gemma":  {plusOne: true},
	"gemma2": {plusOne: true, names: sandwich},
	"gemma3": {plusOne: true, names: sandwich},
	"phi3":   {names: map[string]string{"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}},
}

// LlamaNames are modules by llama.cpp's names: of a layer, or of the whole model.
var LlamaNames = map[string]string{
	"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
	"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
	"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
	"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",

	"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
}

// llamaName has the layer, the module and the parameter of a weight.
var llamaName = regexp.MustCompile(`^(?:blk\.(\d+)\.)?(\w+)\.(\w+)$`)

// fromGGUF returns the weights of a .gguf file as Hugging Face has them.
func fromGGUF(f *tensor.File, file string) ([]tensor.Named, error) {
	arch := f.Metadata["general.architecture"]
	fam, ok := families[arch]
	if !ok {
		return nil, fmt.Errorf("%s: it is a model of the architecture %q, and names are known of %s: give a folder of Hugging Face with "+
			"the weights", file, arch, strings.Join(slices.Sorted(maps.Keys(families)), ", "))
	}
	var out []tensor.Named
	for _, t := range f.Tensors {
		if t.Name == "rope_freqs.weight" {
			continue // computed from the config
		}
		m := llamaName.FindStringSubmatch(t.Name)
		if m == nil || LlamaNames[m[2]] == "" && fam.names[m[2]] == "" || (m[1] == "") != isOutside(m[2]) {
			return nil, fmt.Errorf("%s: %s is none of the weights that are known of %s", file, t.Name, arch)
		}
		module := cmp.Or(fam.names[m[2]], LlamaNames[m[2]])
		if m[1] != "" {
			module = "model.layers." + m[1] + "." + module
		}
		w := t.Tensor
		switch heads := headsOf(f.Metadata, arch, m[2]); {
		case fam.interleaved && heads != 0:
			if heads < 0 || w.Shape()[0]%(2*heads) != 0 {
				return nil, fmt.Errorf("%s: %s has %d rows, for %d heads by its metadata", file, t.Name, w.Shape()[0], heads)
			}
			w = Rows(w, halves(w.Shape()[0], heads))
		case fam.plusOne && strings.HasSuffix(module, "norm"):
			w = Map(w, tensor.F32, w.Shape(), lessOne)
		}
		out = append(out, tensor.Named{Name: module + "." + m[3], Tensor: w})
	}
	return out, nil
}

// isOutside reports whether a module is of no layer.
func isOutside(name string) bool { return name == "token_embd" || strings.HasPrefix(name, "output") }

// headsOf returns the number of heads of a projection to queries or keys, 0 for another weight, −1
// if the metadata do not say it.
func headsOf(metadata map[string]string, arch, name string) int {
	all, kv := metadata[arch+".attention.head_count"], metadata[arch+".attention.head_count_kv"]
	count, ok := map[string]string{"attn_q": all, "attn_k": cmp.Or(kv, all)}[name]
	if !ok {
		return 0
	}
	if n, err := strconv.Atoi(count); err == nil && n > 0 {
		return n
	}
	return -1
}

// halves is where row i of a weight stands whose rows of each head stand in pairs: i and i + d/2 at 2i and 2i + 1.
func halves(rows, heads int) func(row int) int {
	d := rows / heads
	return func(row int) int {
		i := row % d
		return row - i + i%(d/2)*2 + i/(d/2)
	}
}

func lessOne(values []float32, _ int) {
	for i := range values {
		values[i]--
	}
}

// Map returns a tensor of a type of 16 or 32 bits and of a shape with as many elements, which f calculates
// from those of t, from element from on, whenever they are read.
func Map(t *tensor.Tensor, d tensor.DType, shape []int, f func(values []float32, from int)) *tensor.Tensor {
	return computed(t, d, shape, tensor.Packing{Unpack: func(dst []float32, _ []byte, from int) {
		if t.DType() == tensor.F64 {
			wide := make([]float64, len(dst))
			t.Float64s(wide, from)
			for i, v := range wide {
				dst[i] = float32(v)
			}
		} else {
			t.Float32s(dst, from)
		}
		f(dst, from)
	}})
}

// Rows returns a tensor whose row i, along the first axis, is row order(i) of t. If t is quantised, so is it.
func Rows(t *tensor.Tensor, order func(row int) int) *tensor.Tensor {
	width := t.Len() / max(t.Shape()[0], 1)
	rows := func(from, n int, f func(at, done, n int)) { // for parts of rows, with where they are in t
		for done := 0; done < n; {
			row, column := (from+done)/width, (from+done)%width
			k := min(n-done, width-column)
			f(order(row)*width+column, done, k)
			done += k
		}
	}
	packing := tensor.Packing{Name: t.Packing(), Unpack: func(dst []float32, _ []byte, from int) {
		rows(from, len(dst), func(at, done, n int) { t.Float32s(dst[done:done+n], at) })
	}}
	if one := make([]float32, 1); t.Len() > 0 {
		if g := t.Grid(one, one, 0); g != nil {
			grid := *g
			grid.Ends = func(low, high []float32, _ []byte, from int) {
				rows(from, len(low), func(at, done, n int) { t.Grid(low[done:done+n], high[done:done+n], at) })
			}
			packing.Grid = &grid
		}
	}
	return computed(t, tensor.F32, t.Shape(), packing)
}

func computed(t *tensor.Tensor, d tensor.DType, shape []int, packing tensor.Packing) *tensor.Tensor {
	out, err := tensor.FromSpec(tensor.Spec{DType: d, Shape: shape, Place: t.Place(), Packing: &packing})
	if err != nil {
		panic(err) // the shape is one that t has
	}
	return out
}
