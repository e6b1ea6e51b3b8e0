// Package fault has the causes that are an op done wrong. Each is a function from an op that the
// reference does to what a candidate may do in its place; the catalogue, in package cause, has
// its id.
//
// A new one is a function in a file of its own, or beside its like, and a line in the catalogue. It
// changes a copy of the op:
//
//	// NormEps is a norm with another eps than the reference's.
//	func NormEps(o *rebuild.Norm) (out List) {
//		for _, eps := range op.Epsilons {
//			out.add(with(o, func(n *rebuild.Norm) { n.Eps = eps }), 0, "eps is %g and not %g", eps, o.Eps)
//		}
//		return out
//	}
package fault

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/tensor"
)

// List is what may go wrong with an op. A fault without an id has that of its row in the catalogue.
type List []rebuild.Fault

// add appends a fault, and returns it for what is unusual.
func (l *List) add(eval rebuild.Eval, rank int, format string, args ...any) *rebuild.Fault {
	*l = append(*l, rebuild.Fault{Text: fmt.Sprintf(format, args...), Rank: rank, Eval: eval})
	return &(*l)[len(*l)-1]
}

// unrecorded names the first of some values that the candidate did not record; "" if there is none.
func unrecorded(values ...*rebuild.Value) string {
	for _, v := range values {
		if !v.IsRecorded() {
			return v.String()
		}
	}
	return ""
}

// changeable is a pointer to an op.
type changeable[O any] interface {
	*O
	Eval(e *rebuild.Evaluation, rows []int) []float64
}

// with is the calculation of a changed copy of an op.
func with[O any, P changeable[O]](o P, change func(P)) rebuild.Eval {
	c := *o
	change(&c)
	return P(&c).Eval
}

// exchangeID names what it is if one layer has the place of another; "" if they have nothing in
// common.
func exchangeID(a, b string) string {
	switch qa, qb := module.QKV(a), module.QKV(b); {
	case qa != 0 && qb != 0 && qa != qb:
		return "linear/qkv-order"
	case module.Gate.Has(a) && module.Up.Has(b), module.Up.Has(a) && module.Gate.Has(b):
		return "linear/gate-up"
	}
	return ""
}

// exchanged lists the outputs of a layer's siblings that may be taken for its own, by what that is.
func exchanged(o rebuild.Made, v *rebuild.Value, layer string, do func(id string, other *rebuild.Value)) {
	for _, x := range o.Graph().Siblings(layer) {
		if id := exchangeID(layer, x.Layer()); id != "" && x.IsLike(v) {
			do(id, x)
		}
	}
}

// weights lists the keys of other weights of a shape, in order.
func weights(o rebuild.Made, shape []int, is func(key, module string) bool) []string {
	return o.Scene().Weights.Keys(func(key string, w *tensor.Tensor) bool {
		return slices.Equal(w.Shape(), shape) && label.Last(key) == "weight" && is(key, label.Parent(key))
	})
}

// bias is the bias beside a weight; nil if there is none.
func bias(o rebuild.Made, key string) *tensor.Tensor {
	return o.Scene().Weights[label.Parent(key)+".bias"]
}
