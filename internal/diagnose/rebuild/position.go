package rebuild

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// Length is the number of rows of one sequence.
func Length(shape []int) int {
	if len(shape) < 2 {
		return 1
	}
	return shape[len(shape)-2]
}

// AddedTable is out = in + a row of Table for each token: positions that no layer of their own
// holds.
type AddedTable struct {
	From
	Name   string
	Table  []float64
	Period int // tokens of a sequence
}

func (o *AddedTable) Eval(e *Evaluation, rows []int) []float64 { return o.Adding(1, same)(e, rows) }

// Adding adds a multiple of another row for each token; beyond the table it adds none.
func (o *AddedTable) Adding(factor float64, row func(at int) int) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		x, w := slices.Clone(e.Get(o.In, rows)), o.Out.Width
		if x == nil {
			return nil
		}
		for i, r := range rows {
			if at := row(r % o.Period); at >= 0 && at < len(o.Table)/w {
				floats.AddScaled(x[i*w:(i+1)*w], factor, o.Table[at*w:(at+1)*w])
			}
		}
		return x
	}
}

// findAddedTable tries the weights whose name says positions, and what the reference adds alike to
// every sequence of a batch.
func findAddedTable(g *Graph, v *Value) []Op {
	n := Length(v.golden.Shape())
	if n < 2 || v.Rows%n != 0 {
		return nil
	}
	keys := g.Scene.Weights.Keys(func(key string, w *tensor.Tensor) bool {
		return strings.Contains(key, "pos") && w.RowLen() == v.Width && w.Len() >= n*v.Width && w.Len() <= op.DecodeMax
	})
	first := op.Sequence(n)
	var ops []Op
	for _, x := range g.Alikes(v) {
		from := From{Made{v}, x, ""}
		for _, key := range keys {
			ops = append(ops, &AddedTable{from, key, op.ReadAll(g.Scene.Weights[key]), n})
		}
		if v.Rows > n && v.Rows*v.Width <= op.DecodeMax && len(keys) == 0 {
			table := op.Minus(v.Golden(first), x.Golden(first))
			if alikeRows(table, v.Width, v.Noise()) {
				continue // one row for all tokens: a type or a time, no position
			}
			ops = append(ops, &AddedTable{from, "what the reference adds to every sequence", table, n})
		}
	}
	return ops
}

// alikeRows reports whether all rows are the first one.
func alikeRows(table []float64, width int, noise float64) bool {
	for at := width; at < len(table); at += width {
		if op.Relative(table[at:at+width], table[:width]) > noise {
			return false
		}
	}
	return true
}

// Angles is the op of that name.
type Angles struct {
	From
	op.Angles
	Plain []float64 // the frequencies without the config's scaling; nil if there is none
}

func (o *Angles) Eval(e *Evaluation, rows []int) []float64 {
	ids := e.ids(o.In)
	positions := make([]float64, len(rows))
	for i, r := range rows {
		positions[i] = ids[r]
	}
	return o.Of(positions)
}

// findAngles tries cosines and sines of the integers that a layer took.
func findAngles(g *Graph, v *Value, layer string) []Op {
	var positions *Value
	for _, x := range g.values {
		if !x.IsFloat() && x.golden.Len() == v.Rows && slices.ContainsFunc(x.ports, func(p *diagnose.Port) bool {
			return p.Layer == layer && p.IsInput()
		}) {
			positions = x
		}
	}
	isAngle := func(x float64) bool { return math.Abs(x) <= cosineMost }
	if positions == nil || v.Width < 2 || !op.All(v.Golden(op.Spread(v.Rows, ProbeRows)), isAngle) {
		return nil
	}
	from := From{Made{v}, positions, layer}
	var ops []Op
	add := func(of func(dim int) []float64, plain float64) {
		for _, o := range []op.Angles{{Double: true}, {Double: true, Pairs: true}, {},
			{Double: true, Sine: true}, {Double: true, Pairs: true, Sine: true}, {Sine: true}} {
			dim := 2 * v.Width
			if o.Double {
				dim = v.Width
			}
			o.Width, o.Step, o.Freqs = v.Width, 1, of(dim)
			if o.Freqs == nil || dim%2 != 0 {
				continue
			}
			a := &Angles{from, o, nil}
			if plain > 0 {
				a.Plain = op.Frequencies(plain, dim)
			}
			ops = append(ops, a)
		}
	}
	thetas := op.Thetas
	if t := g.Scene.Config.Theta(); t > 0 {
		thetas = append([]float64{t}, thetas...)
		add(func(dim int) []float64 { return scaling(g.Scene.Config, "").Frequencies(t, dim) }, t)
	}
	for _, theta := range thetas {
		add(func(dim int) []float64 { return op.Frequencies(theta, dim) }, 0)
	}
	return ops
}

// scaling is the config's rope scaling for a layer; the zero value for none.
func scaling(c checkpoint.Config, layer string) (s op.RopeScaling) {
	r := ropeConfig(c, layer)
	number := func(keys ...string) float64 {
		x, _ := r.Float(keys...)
		return x
	}
	s.Kind = r.String("rope_type", "type")
	s.Factor, s.Original, s.Attention = number("factor"), number("original_max_position_embeddings"), number("attention_factor")
	s.Low, s.High = number("low_freq_factor"), number("high_freq_factor")
	s.Fast, s.Slow, s.Mscale, s.AllDim = number("beta_fast"), number("beta_slow"), number("mscale"), number("mscale_all_dim")
	s.Untruncated = r["truncate"] == false
	s.Context, _ = c.Float("max_position_embeddings")
	if s.Original == 0 {
		s.Original, _ = c.Float("original_max_position_embeddings")
	}
	s.Short, s.Long = numbers(r["short_factor"]), numbers(r["long_factor"])
	return s
}

// numbers reads a list of JSON; nil for none.
func numbers(list any) (out []float64) {
	all, _ := list.([]any)
	for _, x := range all {
		f, _ := x.(float64)
		out = append(out, f)
	}
	return out
}

// ropeConfig is what a config says of rotary embeddings, for the type of a layer where it says that by
// type; nil for nothing.
func ropeConfig(c checkpoint.Config, layer string) checkpoint.Config {
	m, ok := c["rope_scaling"].(map[string]any)
	if !ok {
		m, _ = c["rope_parameters"].(map[string]any) // since transformers 5
	}
	if own, ok := m[layerType(c, layer)].(map[string]any); ok {
		m = own
	}
	return checkpoint.Config(m)
}

// layerType is the type of a layer's block, as "sliding_attention"; "" where the config has none.
func layerType(c checkpoint.Config, layer string) string {
	types, _ := c["layer_types"].([]any)
	n, ok := blockNumber(layer)
	if !ok || n >= len(types) {
		return ""
	}
	s, _ := types[n].(string)
	return s
}

// blockNumber is the number of a layer's block.
func blockNumber(layer string) (n int, ok bool) {
	n, err := strconv.Atoi(label.Last(label.Block(layer)))
	return n, err == nil && n >= 0
}
