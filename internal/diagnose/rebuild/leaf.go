package rebuild

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
	"github.com/goparity/goparity/tensor"
)

// Norm is the op of that name.
type Norm struct {
	From
	op.Norm
}

func (o *Norm) Eval(e *Evaluation, rows []int) []float64 { return o.Of(e.Get(o.In, rows)) }

// Heads is the number of heads that are normed each by itself; 0 where rows are tokens, and for layer
// norms.
func (o *Norm) Heads() int {
	if shape := o.Out.golden.Shape(); len(shape) == 4 && !o.Center {
		return shape[2]
	}
	return 0
}

// GatedNorm is a norm of in·silu(Gate), or with Behind the norm of in, times silu(Gate): that of Mamba-2.
type GatedNorm struct {
	From
	Gate   *Value
	Behind bool
	F      func(float64) float64 // in place of silu; nil for that
	op.Norm
}

func (o *GatedNorm) Inputs() []*Value { return []*Value{o.In, o.Gate} }

func (o *GatedNorm) Eval(e *Evaluation, rows []int) []float64 {
	x, gate := e.Get(o.In, rows), e.Get(o.Gate, rows)
	if x == nil || len(gate) != len(x) {
		return nil
	}
	f := o.F
	if f == nil {
		f = op.Silu
	}
	if gate = op.Map(gate, f); o.Behind {
		return op.Times(o.Of(x), gate)
	}
	return o.Of(op.Times(x, gate))
}

// findGatedNorm tries the other inputs of a norm's layer as its gate.
func findGatedNorm(g *Graph, from From, w *tensor.Tensor) (ops []Op) {
	v := from.Out
	learned := op.Spread(v.Rows, learnRows)
	if w != nil && (len(w.Shape()) != 1 || w.Len() != v.Width) || w == nil && (len(g.Scene.Weights) > 0 || len(learned) < learnLeast) {
		return nil
	}
	n := op.Norm{Width: v.Width, Weight: op.ReadAll(w)}
	for _, x := range g.Alikes(from.Out) {
		if x == from.In || !slices.ContainsFunc(x.ports, func(p *diagnose.Port) bool { return p.Layer == from.Layer && p.IsInput() }) {
			continue
		}
		for _, n.Eps = range g.epsilons() {
			for _, behind := range []bool{false, true} {
				o := &GatedNorm{From: from, Gate: x, Behind: behind, Norm: n}
				if w == nil {
					made, weight := o.Eval(g.goldenly(), learned), make([]float64, v.Width)
					for c := range weight {
						weight[c] = op.Project(op.Select(made, v.Width, []int{c}), op.Select(v.Golden(learned), v.Width, []int{c}))
					}
					o.Weight = weight
				}
				ops = append(ops, o)
			}
		}
	}
	return ops
}

// Linear is the op of that name.
type Linear struct {
	From
	Key string // of the weight; "" if it was learned
	op.Linear
}

func (o *Linear) Eval(e *Evaluation, rows []int) []float64 {
	x := e.Get(o.In, rows)
	if x == nil || !e.g.Spend(o.Work(len(rows))) {
		return nil
	}
	return o.Of(x)
}

// Table is an embedding: rows of W by index.
type Table struct {
	From
	W *tensor.Tensor
}

func (o *Table) Eval(e *Evaluation, rows []int) []float64 { return o.At(same)(e, rows) }

// At is Eval with other indices.
func (o *Table) At(index func(int) int) Eval {
	return func(e *Evaluation, rows []int) []float64 {
		ids := e.ids(o.In)
		own := make([]int, len(rows))
		for k, r := range rows {
			if r >= len(ids) {
				return nil
			}
			if own[k] = index(int(ids[r])); own[k] < 0 || own[k] >= o.W.Shape()[0] {
				return nil
			}
		}
		return op.Read(o.W, o.Out.Width, own)
	}
}

// findLeaf tries what a layer without layers inside may be: by its weights where they are given,
// else by what it does.
func findLeaf(g *Graph, v *Value) []Op {
	layer := v.Layer()
	if layer == "" || !g.IsLeaf(layer) {
		return nil
	}
	ops := findAngles(g, v, layer)
	in := g.InputOf(layer)
	if in == nil {
		return ops
	}
	base := From{Made{v}, in, layer}
	if g.Scene.IsSame(in.golden, v.golden) {
		return append(ops, &Alias{base}) // a dropout that is off, and no activation of what is positive
	}
	key, w := g.Scene.Weights.Of(layer, "weight")
	_, b := g.Scene.Weights.Of(layer, "bias")
	if w == nil && module.Head.Has(layer) {
		key, w = g.embedding(v.Width, in.Width) // tied
	}
	switch {
	case w != nil && len(w.Shape()) > 2 && in.IsFloat():
		ops = append(ops, findConv(base, key, w, b)...)
	case w != nil && len(w.Shape()) == 2 && !in.IsFloat():
		if w.Shape()[1] == v.Width && in.golden.Len() == v.Rows {
			ops = append(ops, &Table{base, w})
		}
	case w != nil && len(w.Shape()) == 2 && in.Rows == v.Rows:
		kept := op.NewMatrix(w).Kept()
		for _, conv := range []bool{false, true} { // a square weight tells by its golden output
			m := op.Linear{W: kept, B: op.ReadAll(b), Biases: 1, Conv: conv}
			if from, to := m.Size(); from == in.Width && to == v.Width {
				ops = append(ops, &Linear{base, key, m})
			}
		}
	case in.IsFloat() && in.IsLike(v):
		ops = append(ops, findNorm(g, base, w, b)...)
		ops = append(ops, findGatedNorm(g, base, w)...)
		ops = append(ops, findColumns(g, base)...)
		ops = append(ops, findGroupNorm(g, base, w, b)...)
		if w == nil {
			ops = append(ops, unaries(base)...)
		}
	}
	if w == nil && in.IsFloat() && in.Rows == v.Rows {
		ops = append(ops, learn(g, base)...)
		ops = append(ops, learnConv(g, base)...)
	}
	return ops
}

// embedding is the table of tokens: the weight of the first embedding whose shape is that of a
// head.
func (g *Graph) embedding(vocab, width int) (string, *tensor.Tensor) {
	keys := g.Scene.Weights.Keys(func(key string, t *tensor.Tensor) bool {
		return slices.Equal(t.Shape(), []int{vocab, width}) && module.Table.Has(label.Parent(key))
	})
	if len(keys) == 0 {
		return "", nil
	}
	key := keys[0]
	return key, g.Scene.Weights[key]
}

// epsilons are that of the config, and the usual ones.
func (g *Graph) epsilons() []float64 {
	if e, ok := g.Scene.Config.Float("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps",
		"norm_epsilon", "layernorm_epsilon"); ok {
		return append([]float64{e}, op.Epsilons...)
	}
	return op.Epsilons
}

// Columns is out = in·Factors, a factor for each column: the layer scale of a vision model.
type Columns struct {
	From
	Factors []float64
	Others  map[string][]float64 // of other layers, by their names
}

func (o *Columns) Eval(e *Evaluation, rows []int) []float64 {
	x := e.Get(o.In, rows)
	if x == nil {
		return nil
	}
	out, w := make([]float64, len(x)), o.Out.Width
	for i := range out {
		out[i] = x[i] * o.Factors[i%w]
	}
	return out
}

// findColumns tries a layer's weights of one axis, or what the golden tensors show.
func findColumns(g *Graph, from From) (ops []Op) {
	v := from.Out
	if strings.Contains(from.Layer, "norm") {
		return nil
	}
	layer := "." + strings.TrimPrefix(label.Name(from.Layer), "model.") + "."
	own, others := []float64(nil), map[string][]float64{}
	for _, key := range g.Scene.Weights.Keys(func(key string, w *tensor.Tensor) bool { return w.Len() == v.Width && strings.Contains(key, "scale") }) {
		x := op.ReadAll(g.Scene.Weights[key])
		if strings.Contains("."+key, layer) && strings.Count("."+key, ".") == strings.Count(layer, ".") {
			own = x
		} else if len(others) < mostBiases {
			others[label.Parent(key)] = x
		}
	}
	if own != nil {
		return []Op{&Columns{from, own, others}}
	}
	rows := op.Spread(v.Rows, learnRows)
	if len(g.Scene.Weights) > 0 || len(rows) < learnLeast {
		return nil
	}
	x, y, own := from.In.Golden(rows), v.Golden(rows), make([]float64, v.Width)
	for c := range own {
		var xx, xy float64
		for i := c; i < len(x); i += v.Width {
			xx, xy = xx+x[i]*x[i], xy+x[i]*y[i]
		}
		own[c] = xy / xx
	}
	return []Op{&Columns{from, own, nil}}
}

// findNorm tries the kinds of norm with the weights, or with those that the golden tensors show.
func findNorm(g *Graph, from From, w, b *tensor.Tensor) []Op {
	v := from.Out
	if w != nil && (len(w.Shape()) != 1 || w.Len() != v.Width) {
		return nil
	}
	if b != nil && b.Len() != v.Width {
		b = nil
	}
	all := g.epsilons()
	learned := op.Spread(v.Rows, learnRows)
	var ops []Op
	for _, center := range []bool{false, true} {
		for _, eps := range all {
			n := op.Norm{Width: v.Width, Center: center, Eps: eps, Weight: op.ReadAll(w), Bias: op.ReadAll(b)}
			ops = append(ops, &Norm{from, n})
			if n.OnePlus = true; w != nil {
				ops = append(ops, &Norm{from, n})
			} else if n.OnePlus = false; len(learned) >= learnLeast {
				ops = append(ops, &Norm{from, n.Fitted(from.In.Golden(learned), v.Golden(learned))})
			}
		}
	}
	return ops
}

// LearnedNorms are the weights of the other norms of the width of a norm, by their layers, as the golden
// tensors show them; nil where the weights are given.
func (o *Norm) LearnedNorms() map[string]op.Norm {
	s := o.Scene()
	if len(s.Weights) > 0 {
		return nil
	}
	out := map[string]op.Norm{}
	for _, p := range s.Pass() {
		in := s.Input(p.Layer)
		if !module.IsNorm(p.Layer) || label.Name(p.Layer) == label.Name(o.Layer) || s.Output(p.Layer) != p || in == nil || p.Width() != o.Width ||
			in.Golden.Len() != p.Golden.Len() || len(out) == normsLearned {
			continue
		}
		rows := op.Spread(p.Rows(), learnRows)
		if len(rows) < learnLeast {
			continue
		}
		n := op.Norm{Width: o.Width, Center: o.Center, Eps: o.Eps}
		x, y := op.Read(in.Golden, o.Width, rows), op.Read(p.Golden, o.Width, rows)
		if n = n.Fitted(x, y); op.Relative(n.Of(x), y) <= max(p.Floor.RelL2, o.Out.Rounding()) {
			out[p.Layer] = n
		}
	}
	return out
}

// learn finds W and B by least squares of the golden rows, where there are clearly more of them
// than unknowns in an equation.
func learn(g *Graph, from From) []Op {
	in, v := from.In, from.Out
	k := in.Width
	n := min(v.Rows, 2*k+32)
	if v.Rows < k+k/4+8 || k > learnInputs || v.Width > learnOutputs ||
		!g.Spend(2*float64(n)*float64(k)*float64(k+v.Width)) {
		return nil
	}
	rows := op.Spread(v.Rows, n)
	l, ok := op.FitLinear(in.Golden(rows), v.Golden(rows), n, k, v.Width)
	if !ok {
		return nil
	}
	return []Op{&Linear{from, "", l}}
}
