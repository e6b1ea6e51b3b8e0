package fault

import (
	"cmp"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/diagnose/module"
	"github.com/goparity/goparity/internal/diagnose/op"
	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
)

// linear is a calculation of a changed layer.
func linear(o *rebuild.Linear, change func(l *op.Linear)) rebuild.Eval {
	l := *o
	change(&l.Linear)
	return l.Eval
}

// made is a calculation with a weight that is made when it is needed: it may be large.
func made(o *rebuild.Linear, weight func() *op.Matrix) rebuild.Eval {
	return func(e *rebuild.Evaluation, rows []int) []float64 {
		return linear(o, func(l *op.Linear) { l.W = weight() })(e, rows)
	}
}

// Transposed is a linear layer whose weight is read the other way.
func Transposed(o *rebuild.Linear) (out List) {
	shape := o.W.Shape()
	if shape[0] == shape[1] {
		out.add(linear(o, func(l *op.Linear) { l.Conv = !l.Conv }), 0, "W is used where Wᵀ should be: x·W + b")
		return out
	}
	turned, err := o.W.Reshape(shape[1], shape[0])
	if err != nil {
		return nil
	}
	is, not := "[in, out]", "[out, in]"
	if o.Conv {
		is, not = not, is
	}
	if o.W.Len() <= changedWeight {
		out.add(made(o, func() *op.Matrix {
			columns := op.Transposition(shape, 0, 1)
			all := op.ReadAll(o.W.Tensor)
			data := make([]float64, len(all))
			for i := range data {
				data[i] = all[columns(i)]
			}
			return op.MatrixOf(data, shape[0], shape[1])
		}), 0, "W was transposed in memory, and is read as %s as before", not)
	}
	out.add(linear(o, func(l *op.Linear) { l.W, l.Conv = op.NewMatrix(turned), !l.Conv }), 0,
		"the memory of W is read as %s and not as %s", is, not)
	return out
}

// BiasMissing is a linear layer without its bias.
func BiasMissing(o *rebuild.Linear) (out List) {
	if o.B != nil {
		out.add(linear(o, func(l *op.Linear) { l.B = nil }), 0, "the bias is missing")
	}
	return out
}

// BiasTwice is a linear layer that adds its bias twice.
func BiasTwice(o *rebuild.Linear) (out List) {
	if o.B != nil {
		out.add(linear(o, func(l *op.Linear) { l.Biases = 2 }), 0, "the bias is added twice")
	}
	return out
}

// OtherLayer is a linear layer with the weights of another one, with its bias or with the own.
func OtherLayer(o *rebuild.Linear) (out List) {
	if o.Key == "" {
		return nil
	}
	own := label.Parent(o.Key)
	keys := weights(o.Made, o.W.Shape(), func(key, m string) bool { return key != o.Key && !module.Table.Has(m) })
	distance := func(key string) int {
		switch m := label.Parent(key); {
		case label.Beside(m, own):
			return 0
		case label.Last(m) == label.Last(own):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	for _, key := range keys[:min(len(keys), otherLayers)] {
		w, m := op.NewMatrix(o.Scene().Weights[key]), label.Parent(key)
		id, rank := "", 1
		if label.Beside(m, own) {
			if id = exchangeID(own, m); id != "" {
				rank = 0
			}
		}
		if b := bias(o.Made, key); (b == nil) == (o.B == nil) {
			out.add(linear(o, func(l *op.Linear) {
				if l.W = w; b != nil {
					l.B = op.ReadAll(b)
				}
			}), rank, "the weights are those of %s", m).ID = id
		}
		if o.B != nil {
			out.add(linear(o, func(l *op.Linear) { l.W = w }), rank+1,
				"the weights are those of %s, with the right bias", m).ID = id
		}
	}
	return out
}

// Tied is an output layer whose weights are tied to the embeddings, or should not be.
func Tied(o *rebuild.Linear) (out List) {
	tied := o.Key != "" && module.Table.Has(label.Parent(o.Key))
	if !tied && !module.Head.Has(o.Layer) {
		return nil
	}
	for _, key := range weights(o.Made, o.W.Shape(), func(key, m string) bool {
		return key != o.Key && (module.Table.Has(m) || module.Head.Has(m))
	}) {
		w := op.NewMatrix(o.Scene().Weights[key])
		out.add(linear(o, func(l *op.Linear) { l.W = w }), 0, "the weights of the head are those of %s", label.Parent(key))
	}
	if tied {
		out.guess("", 0, "the head, which is tied to the embeddings, has other weights")
		out.add(func(_ *rebuild.Evaluation, rows []int) []float64 {
			return make([]float64, len(rows)*o.Out.Width)
		}, -1, "the head, which is tied to the embeddings, has no weights: zeros")
		root := math.Sqrt(float64(o.In.Width))
		for _, f := range []float64{root, 1 / root} {
			out.add(rebuild.Eval(o.Eval).Times(f), 2, "the tied head is scaled by %.6g, as the embeddings are", f)
		}
	}
	return out
}
