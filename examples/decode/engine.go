package decode

import (
	"fmt"
	"math"

	"github.com/goparity/goparity/parity"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// The shape of the model in fixtures/tiny.
const (
	layers, hidden, inner = 2, 32, 48
	heads, kvHeads, dim   = 4, 2, 8
	epsilon, theta        = 1e-5, 10000
)

// engine is an inference engine for Llamas as one would write it in an afternoon.
type engine struct {
	weights map[string][]float32
	cache   map[int]*cache // by sequence

	// offByOne is the fault of the example: what is decoded after a prefill takes the position of the
	// token before it.
	offByOne bool
}

// cache has the rotated keys and the values of a sequence, [token][kvHeads·dim] in each layer.
type cache struct {
	tokens       int
	keys, values [layers][][]float32
}

// load reads the weights.
func load(file string, offByOne bool) (*engine, error) {
	f, err := safetensors.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e := &engine{weights: map[string][]float32{}, cache: map[int]*cache{}, offByOne: offByOne}
	for _, n := range f.Tensors {
		values := make([]float32, n.Tensor.Len())
		for i := range values {
			values[i] = float32(n.Tensor.At(i))
		}
		e.weights[n.Name] = values
	}
	return e, nil
}

// run is one forward pass, as parity asks for it.
func (e *engine) run(in parity.Pass) (map[string]*tensor.Tensor, error) {
	fed := in.Fed
	if in.Path == "" { // one pass over each whole sequence
		for i, ids := range in.TokenIDs {
			fed = append(fed, parity.Span{Sequence: i, To: len(ids)})
		}
	}
	out := record{}
	for _, f := range fed {
		if f.From == 0 {
			e.cache[f.Sequence] = &cache{}
		}
		c := e.cache[f.Sequence]
		if c == nil || c.tokens != f.From {
			return nil, fmt.Errorf("sequence %d: the cache does not end at token %d", f.Sequence, f.From)
		}
		e.forward(in.TokenIDs[f.Sequence][f.From:f.To], c, out)
	}
	return out.tensors()
}

// forward feeds tokens of one sequence.
func (e *engine) forward(ids []int, c *cache, out record) {
	var x [][]float32
	for _, id := range ids {
		x = append(x, e.weights["model.embed_tokens.weight"][id*hidden:][:hidden])
	}
	out.add("model.embed_tokens", x)
	first := c.tokens
	if e.offByOne && first > 0 {
		first-- // the bug
	}
	for l := range layers {
		name := fmt.Sprintf("model.layers.%d", l)
		normed := e.norm(name+".input_layernorm", x, out)
		x = sum(x, e.attention(name+".self_attn", l, first, normed, c, out))
		normed = e.norm(name+".post_attention_layernorm", x, out)
		x = sum(x, e.mlp(name+".mlp", normed, out))
		out.add(name, x)
	}
	c.tokens += len(ids)
	x = e.norm("model.norm", x, out)
	e.linear("lm_head", x, out)
}

func (e *engine) attention(name string, layer, first int, x [][]float32, c *cache, out record) [][]float32 {
	q := e.linear(name+".q_proj", x, out)
	k := e.linear(name+".k_proj", x, out)
	v := e.linear(name+".v_proj", x, out)
	q, k = rotate(q, first), rotate(k, first)
	c.keys[layer] = append(c.keys[layer], k...)
	c.values[layer] = append(c.values[layer], v...)
	var rows [][]float32
	for t := range q {
		row := make([]float32, hidden)
		seen := c.tokens + t + 1
		for h := range heads {
			at := h / (heads / kvHeads) * dim
			weights := make([]float64, seen)
			total := 0.0
			for s := range seen {
				weights[s] = math.Exp(dot(q[t][h*dim:][:dim], c.keys[layer][s][at:][:dim]) / math.Sqrt(dim))
				total += weights[s]
			}
			for s, w := range weights {
				for i := range dim {
					row[h*dim+i] += float32(w / total * float64(c.values[layer][s][at+i]))
				}
			}
		}
		rows = append(rows, row)
	}
	rows = e.linear(name+".o_proj", rows, out)
	out.add(name, rows)
	return rows
}

func (e *engine) mlp(name string, x [][]float32, out record) [][]float32 {
	gate, up := e.linear(name+".gate_proj", x, out), e.linear(name+".up_proj", x, out)
	var rows [][]float32
	for t := range gate {
		row := make([]float32, inner)
		for i, g := range gate[t] {
			row[i] = g / (1 + float32(math.Exp(-float64(g)))) * up[t][i]
		}
		rows = append(rows, row)
	}
	rows = e.linear(name+".down_proj", rows, out)
	out.add(name, rows)
	return rows
}

func (e *engine) norm(name string, x [][]float32, out record) (rows [][]float32) {
	w := e.weights[name+".weight"]
	for _, in := range x {
		row := make([]float32, len(in))
		scale := 1 / math.Sqrt(dot(in, in)/float64(len(in))+epsilon)
		for i := range row {
			row[i] = w[i] * float32(float64(in[i])*scale)
		}
		rows = append(rows, row)
	}
	out.add(name, rows)
	return rows
}

func (e *engine) linear(name string, x [][]float32, out record) (rows [][]float32) {
	w := e.weights[name+".weight"]
	for _, in := range x {
		row := make([]float32, len(w)/len(in))
		for i := range row {
			row[i] = float32(dot(w[i*len(in):][:len(in)], in))
		}
		rows = append(rows, row)
	}
	out.add(name, rows)
	return rows
}

// rotate turns the pairs (i, i + dim/2) of each head by the positions first, first + 1, …
func rotate(x [][]float32, first int) (rows [][]float32) {
	for t, in := range x {
		row := make([]float32, len(in))
		for at := 0; at < len(in); at += dim {
			for i := range dim / 2 {
				angle := float64(first+t) * math.Pow(theta, -2*float64(i)/dim)
				sin, cos := math.Sincos(angle)
				a, b := float64(in[at+i]), float64(in[at+i+dim/2])
				row[at+i], row[at+i+dim/2] = float32(a*cos-b*sin), float32(b*cos+a*sin)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func sum(x, y [][]float32) (rows [][]float32) {
	for t := range x {
		row := make([]float32, len(x[t]))
		for i := range row {
			row[i] = x[t][i] + y[t][i]
		}
		rows = append(rows, row)
	}
	return rows
}

func dot(x, y []float32) (sum float64) {
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum
}

// record has the output of each layer, the rows of all sequences one after the other.
type record map[string][][]float32

func (r record) add(layer string, rows [][]float32) { r[layer] = append(r[layer], rows...) }

func (r record) tensors() (map[string]*tensor.Tensor, error) {
	out := map[string]*tensor.Tensor{}
	for layer, rows := range r {
		var values []float32
		for _, row := range rows {
			values = append(values, row...)
		}
		t, err := tensor.Of(values, len(rows), len(rows[0]))
		if err != nil {
			return nil, err
		}
		out[layer] = t
	}
	return out, nil
}
