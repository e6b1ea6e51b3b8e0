package rebuild

import (
	"slices"

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
		if w == nil {
			ops = append(ops, unaries(base)...)
		}
	}
	if w == nil && in.IsFloat() && in.Rows == v.Rows {
		ops = append(ops, learn(g, base)...)
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

// findNorm tries the kinds of norm with the weights, or with those that the golden tensors show.
func findNorm(g *Graph, from From, w, b *tensor.Tensor) []Op {
	v := from.Out
	if w != nil && (len(w.Shape()) != 1 || w.Len() != v.Width) {
		return nil
	}
	if b != nil && b.Len() != v.Width {
		b = nil
	}
	all := op.Epsilons
	if e, ok := g.Scene.Config.Float("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps",
		"norm_epsilon", "layernorm_epsilon"); ok {
		all = append([]float64{e}, all...)
	}
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
