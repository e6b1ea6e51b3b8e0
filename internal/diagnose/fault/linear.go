package fault

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/op"
)

// made is a calculation with a weight that is made when it is needed: it may be large.
func made(o *rebuild.Linear, weight func() *op.Matrix) rebuild.Eval {
	return func(e *rebuild.Evaluation, rows []int) []float64 {
		return with(o, func(l *rebuild.Linear) { l.W = weight() })(e, rows)
	}
}

// Transposed is a linear layer whose weight is read the other way.
func Transposed(o *rebuild.Linear) (out List) {
	shape := o.W.Shape()
	if shape[0] == shape[1] {
		out.add(with(o, func(l *rebuild.Linear) { l.Conv = !l.Conv }), 0, "W is used where Wᵀ should be: x·W + b")
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
	out.add(with(o, func(l *rebuild.Linear) { l.W, l.Conv = op.NewMatrix(turned), !l.Conv }), 0,
		"the memory of W is read as %s and not as %s", is, not)
	return out
}

// Bias is a linear layer without its bias, or with its bias twice.
func Bias(o *rebuild.Linear) (out List) {
	if o.B != nil {
		out.add(with(o, func(l *rebuild.Linear) { l.B = nil }), 0, "the bias is missing")
		out.add(with(o, func(l *rebuild.Linear) { l.Biases = 2 }), 0, "the bias is added twice").ID = "linear/bias-twice"
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
		w, b, m := op.NewMatrix(o.Scene().Weights[key]), op.ReadAll(bias(o.Made, key)), label.Parent(key)
		id, rank := "", 1
		if label.Beside(m, own) {
			if id = exchangeID(own, m); id != "" {
				rank = 0
			}
		}
		if (b == nil) == (o.B == nil) {
			out.add(with(o, func(l *rebuild.Linear) { l.W, l.B = w, b }), rank, "the weights are those of %s", m).ID = id
		}
		if o.B != nil {
			out.add(with(o, func(l *rebuild.Linear) { l.W = w }), rank+1,
				"the weights are those of %s, with the right bias", m).ID = id
		}
	}
	return out
}

// unlike reports whether the candidate's rows are nothing like the golden ones, as those that other
// weights give.
func unlike(v *rebuild.Value, rows []int) bool {
	g, a := v.Golden(rows), v.Wrong(rows)
	return math.Abs(floats.Dot(g, a)) <= otherHead*floats.Norm(g, 2)*floats.Norm(a, 2)
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
		out.add(with(o, func(l *rebuild.Linear) { l.W = w }), 0, "the weights of the head are those of %s", label.Parent(key))
	}
	if tied {
		if unlike(o.Out, op.Spread(o.Out.Rows, rebuild.ProbeRows)) {
			out.add(nil, 0, "the head, which is tied to the embeddings, has other weights")
		}
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

// rounding is what of x·Wᵀ + b = y a linear layer rounds to a type of fewer bits.
type rounding struct {
	text, of string
	after    bool // b is added to the rounded product
}

var roundings = []rounding{
	{text: "input and weight are rounded to %s", of: "xW"},
	{text: "input, weight and result are rounded to %s", of: "xWy"},
	{text: "the weight is rounded to %s", of: "W"},
	{text: "the input is rounded to %s", of: "x"},
	{text: "input, weight, bias and result are rounded to %s", of: "xWby"},
	{text: "it is computed in %s, the bias added after the product was rounded", of: "xWby", after: true},
}

// Operands is a linear layer whose operands are rounded to a type of fewer bits.
func Operands(o *rebuild.Linear) (out List) {
	if o.Key == "" || o.Conv || !o.Out.IsTarget() || o.W.Len() > roundedWeight {
		return nil
	}
	var weight *op.Matrix // of the type that is being tried
	var of string
	for _, n := range op.NarrowerThan(o.Scene().Target.Golden.DType(), o.Scene().Target.Actual.DType()) {
		for _, r := range roundings {
			if strings.Contains(r.of, "b") && o.B == nil {
				continue
			}
			out.add(func(e *rebuild.Evaluation, rows []int) []float64 {
				x := e.Get(o.In, rows)
				if x == nil || !o.Graph().Spend(o.Work(len(rows))) {
					return nil
				}
				if of != n.Name {
					of, weight = n.Name, op.MatrixOf(op.Map(op.ReadAll(o.W.Tensor), n.Round), o.Out.Width, o.In.Width)
				}
				return r.compute(o.Linear, n, x, weight)
			}, 2, r.text, n.Name)
		}
	}
	return out
}

// ScaledOperands is a linear layer of which the weight, or the input too, is kept in 8 bits with scales
// that bring the largest number of a tensor, a row or a block to the largest one of the type.
func ScaledOperands(o *rebuild.Linear) (out List) {
	if o.Key == "" || o.Conv || !o.Out.IsTarget() || o.W.Len() > changedWeight {
		return nil
	}
	in := o.In.Width
	for _, n := range op.NarrowerThan(o.Scene().Target.Golden.DType(), o.Scene().Target.Actual.DType()) {
		if n.Limit > math.MaxUint16 || !n.Saturate {
			continue
		}
		for _, w := range []struct {
			text string
			size int
		}{{"the whole weight", 0}, {"each row", in}, {"each 128 inputs", 128}, {"each 32 inputs", 32}} {
			if w.size > in || w.size > 0 && in%w.size != 0 {
				continue
			}
			for i, input := range []string{"", ", and so is the input, with a scale for all of it", ", and so is the input, with a scale for each row"} {
				out.add(func(e *rebuild.Evaluation, rows []int) []float64 {
					x := e.Get(o.In, rows)
					if x == nil || !o.Graph().Spend(o.Work(len(rows))) {
						return nil
					}
					if i > 0 {
						all := 0
						if i == 2 {
							all = in
						}
						x = n.Scaled(x, all)
					}
					l := o.Linear
					l.W = op.MatrixOf(n.Scaled(op.ReadAll(o.W.Tensor), w.size), o.Out.Width, in)
					return l.Of(x)
				}, 2, "the weight is rounded to %s with a scale for %s%s", n.Name, w.text, input)
			}
		}
	}
	return out
}

func (r rounding) compute(l op.Linear, n op.Narrow, x []float64, weight *op.Matrix) []float64 {
	round := func(what string, x []float64) []float64 {
		if strings.Contains(r.of, what) {
			return op.Map(x, n.Round)
		}
		return x
	}
	if strings.Contains(r.of, "W") {
		l.W = weight
	}
	l.B = round("b", l.B)
	bias := l.B
	if r.after {
		l.B = nil
	}
	y := round("y", l.Of(round("x", x)))
	if r.after {
		for i := 0; i < len(y); i += len(bias) {
			floats.Add(y[i:i+len(bias)], bias)
		}
		y = round("y", y)
	}
	return y
}

// FusedLinear is a fused projection whose parts stand in another order.
func FusedLinear(o *rebuild.Linear) List {
	out := fused(o.From, o.Eval)
	if o.B == nil {
		return out
	}
	plain, b := with(o, func(l *rebuild.Linear) { l.B = nil }), op.Scaled(o.B, o.Biases)
	for _, f := range fused(o.From, plain) {
		f.Text += ", the bias as it should"
		f.Rank++
		f.Eval = f.Eval.Then(func(x []float64) []float64 {
			for i := 0; i < len(x); i += len(b) {
				floats.Add(x[i:i+len(b)], b)
			}
			return x
		})
		out = append(out, f)
	}
	return out
}

// FusedGiven is FusedLinear of a layer without weights.
func FusedGiven(o *rebuild.Given) List { return fused(o.From, o.Eval) }

func fused(o rebuild.From, right rebuild.Eval) (out List) {
	w, layer := o.Out.Width, o.Layer
	add := func(id, text string, from []int) {
		out.add(right.Then(func(x []float64) []float64 { return op.Select(x, w, from) }), 0, "%s", text).ID = id
	}
	switch {
	case o.In != nil && !o.In.IsFloat():
	case module.FusedGateUp.Has(layer) && w%2 == 0:
		const id = "linear/gate-up"
		add(id, "the halves gate and up of "+layer+" are exchanged", op.Blocks([]int{w / 2, w / 2}, []int{1, 0}))
		add(id, "gate and up are read from alternate columns of "+layer, op.Interleaved(w, 2))
		add(id, "gate and up, which alternate in the columns of "+layer+", are read as halves", op.Interleaved(w, w/2))
	case module.FusedQKV.Has(layer):
		const id = "linear/qkv-order"
		q, kv := fusedParts(o)
		if q+2*kv != w {
			break
		}
		for _, p := range permutations {
			add(id, fmt.Sprintf("the parts of %s stand in the order %c, %c, %c", layer, "qkv"[p[0]], "qkv"[p[1]], "qkv"[p[2]]),
				op.Blocks([]int{q, kv, kv}, p))
		}
		if q != kv {
			break
		}
		for _, h := range o.Graph().HeadCounts(q) {
			d := q / h
			from, back := make([]int, w), make([]int, w)
			for c := range w {
				part, head, i := c/q, c%q/d, c%d
				from[c] = (head*3+part)*d + i
				back[from[c]] = c
			}
			add(id, fmt.Sprintf("%s is read as [%d heads, 3, %d] and not as [3, heads, %d]", layer, h, d, d), from)
			add(id, fmt.Sprintf("%s is read as [3, %d heads, %d] and not as [heads, 3, %d]", layer, h, d, d), back)
		}
	}
	return out
}

// fusedParts is the widths of q and of k and v in a fused projection: by the config, else a third
// each.
func fusedParts(o rebuild.From) (q, kv int) {
	heads, kvHeads := o.Scene().Config.Heads(), o.Scene().Config.KVHeads()
	if n := heads + 2*kvHeads; n > 0 && o.Out.Width%n == 0 {
		return o.Out.Width / n * heads, o.Out.Width / n * kvHeads
	}
	return o.Out.Width / 3, o.Out.Width / 3
}

// Sibling is a layer that puts out what its sibling should: q and k exchanged, gate and up.
func Sibling(o *rebuild.Given) (out List) {
	if o.In != nil && !o.In.IsFloat() {
		return nil
	}
	exchanged(o.Made, o.Out, o.Layer, func(id string, x *rebuild.Value) {
		out.add(func(_ *rebuild.Evaluation, rows []int) []float64 { return x.Golden(rows) }, 1,
			"%s has the weights of %s", label.Last(o.Layer), label.Last(x.Layer())).ID = id
	})
	return out
}
