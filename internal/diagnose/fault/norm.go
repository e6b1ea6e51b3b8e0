package fault

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/op"
)

// NormEps is a norm with another eps, or with eps in another place.
func NormEps(o *rebuild.Norm) (out List) {
	for _, e := range append([]float64{0}, op.Epsilons...) {
		if e != o.Eps {
			out.add(with(o, func(n *rebuild.Norm) { n.Eps = e }), 0, "eps is %g and not %g", e, o.Eps)
		}
	}
	out.add(with(o, func(n *rebuild.Norm) { n.Outside = true }), 1, "eps is added to the root and not below it")
	return append(out, o.Out.Searched(fmt.Sprintf("eps is another number than %g", o.Eps), leastEps, mostEps, nil,
		func(x float64) rebuild.Eval { return with(o, func(n *rebuild.Norm) { n.Eps = x }) }))
}

// NormKind is an RMS norm for a layer norm, or the other way round.
func NormKind(o *rebuild.Norm) (out List) {
	out.add(with(o, func(n *rebuild.Norm) { n.Unbiased = true }), 1, "the squares are divided by one less than the width")
	if o.Center {
		out.add(with(o, func(n *rebuild.Norm) { n.Center = false }), 0, "an RMS norm in place of a layer norm")
		out.add(with(o, func(n *rebuild.Norm) { n.Center, n.Bias = false, nil }), 0,
			"an RMS norm without bias in place of a layer norm")
	} else {
		out.add(with(o, func(n *rebuild.Norm) { n.Center = true }), 0, "a layer norm in place of an RMS norm")
	}
	if heads := o.Heads(); heads > 1 {
		out.add(func(e *rebuild.Evaluation, rows []int) []float64 {
			y, x := o.Eval(e, rows), e.Get(o.In, rows)
			for i, r := range rows {
				own, all := op.RootMeanSquare(x[i*o.Width:(i+1)*o.Width]), 0.0
				for h := range heads {
					row := e.Get(o.In, []int{r - r%heads + h})
					if row == nil {
						return nil
					}
					all += floats.Dot(row, row) / float64(heads*o.Width)
				}
				floats.Scale(math.Sqrt((own*own+o.Eps)/(all+o.Eps)), y[i*o.Width:(i+1)*o.Width])
			}
			return y
		}, 1, "the norm goes over all heads of a token together, and not over each")
	}
	return out
}

// NormWeight is a norm with another weight or bias, or without.
func NormWeight(o *rebuild.Norm) (out List) {
	if o.Weight != nil {
		out.add(with(o, func(n *rebuild.Norm) { n.Weight = nil }), 0, "the weight is missing")
		out.add(with(o, func(n *rebuild.Norm) { n.Weight, n.Bias = nil, nil }), 1, "weight and bias are missing")
		if o.OnePlus {
			out.add(with(o, func(n *rebuild.Norm) { n.OnePlus = false }), 0, "the weight is w and not 1 + w")
			out.add(with(o, func(n *rebuild.Norm) {
				n.Weight = op.Map(n.Weight, func(w float64) float64 { return w + 1 })
			}), 0, "the weight is 2 + w and not 1 + w: 1 is added twice")
		} else {
			out.add(with(o, func(n *rebuild.Norm) { n.OnePlus = true }), 0, "the weight is 1 + w and not w")
			out.add(with(o, func(n *rebuild.Norm) { n.Norm = n.WithoutOne() }), 0,
				"the weight is w − 1 and not w: it is kept as w − 1, and 1 is not added")
		}
	}
	if o.Bias != nil {
		out.add(with(o, func(n *rebuild.Norm) { n.Bias = nil }), 0, "the bias is missing")
	}
	learned := o.LearnedNorms()
	for _, layer := range slices.Sorted(maps.Keys(learned)) {
		out.add(with(o, func(n *rebuild.Norm) { n.Weight, n.Bias, n.OnePlus = learned[layer].Weight, learned[layer].Bias, false }), 1,
			"the weights are those of %s", layer)
	}
	others := weights(o.Made, []int{o.Width}, func(_, m string) bool {
		return !strings.HasSuffix("."+label.Name(o.Layer), "."+m)
	})
	for _, key := range others[:min(len(others), otherNorms)] {
		w := op.ReadAll(o.Scene().Weights[key])
		if slices.Equal(w, o.Weight) {
			continue
		}
		b := o.Bias
		if t := bias(o.Made, key); t != nil && t.Len() == o.Width && b != nil {
			b = op.ReadAll(t)
		}
		m := label.Parent(key)
		out.add(with(o, func(n *rebuild.Norm) { n.Weight, n.Bias = w, b }), 1, "the weights are those of %s", m)
		if o.Bias != nil {
			out.add(with(o, func(n *rebuild.Norm) { n.Weight = w }), 1, "the weight is that of %s, with the right bias", m)
		}
	}
	return out
}

// NormLeftOut is no norm at all.
func NormLeftOut(o *rebuild.Norm) (out List) {
	out.add(rebuild.Same(o.In), 1, "the norm is left out")
	return out
}

// NormRounded is a norm of which a part is kept in a type of fewer bits.
func NormRounded(o *rebuild.Norm) (out List) {
	t := o.Scene().Target
	if !o.Out.IsTarget() {
		return nil
	}
	plain := o.Norm
	plain.Weight, plain.Bias, plain.OnePlus = nil, nil, false
	for _, n := range op.NarrowerThan(t.Golden.DType(), t.Actual.DType()) {
		round := func(x []float64) []float64 { return op.Map(x, n.Round) }
		add := func(text string, of func(x []float64) []float64) {
			out.add(rebuild.Same(o.In).Then(of), 2, "%s rounded to %s", text, n.Name)
		}
		weighed := func(x []float64, w []float64) []float64 {
			y := slices.Clone(x)
			for i := range y {
				switch c := i % o.Width; {
				case w != nil && o.OnePlus:
					y[i] *= 1 + w[c]
				case w != nil:
					y[i] *= w[c]
				}
				if o.Bias != nil {
					y[i] += o.Bias[i%o.Width]
				}
			}
			return y
		}
		add("the input is", func(x []float64) []float64 { return o.Of(round(x)) })
		add("input and result are", func(x []float64) []float64 { return round(o.Of(round(x))) })
		add("what is multiplied by the weight is", func(x []float64) []float64 { return weighed(round(plain.Of(x)), o.Weight) })
		add("what is multiplied by the weight, and the result, are", func(x []float64) []float64 { return round(weighed(round(plain.Of(x)), o.Weight)) })
		if o.Weight == nil {
			continue
		}
		w := round(o.Weight)
		add("the weight is", func(x []float64) []float64 { return weighed(plain.Of(x), w) })
		add("input, weight and result are", func(x []float64) []float64 { return round(weighed(plain.Of(round(x)), w)) })
		add("input, what is multiplied by the weight, weight and result are", func(x []float64) []float64 {
			return round(weighed(round(plain.Of(round(x))), w))
		})
		add("input and what is multiplied by the weight are", func(x []float64) []float64 {
			return weighed(round(plain.Of(round(x))), o.Weight)
		})
	}
	return out
}

// NormOverflow is a norm in float16: the squares of some rows are too large, their sum becomes
// infinite, and the row divided by it zero.
func NormOverflow(o *rebuild.Norm) (out List) {
	if !o.Out.IsTarget() && !o.Out.BecomesTarget() {
		return nil
	}
	sample, _ := o.Scene().Rows()
	given := o.Graph().With(o.Out, nil).Get(o.In, sample)
	for _, way := range []struct {
		text string
		of   func(row []float64) float64
	}{
		{"a square", func(row []float64) float64 { return op.MaxAbs(row) * op.MaxAbs(row) }},
		{"the sum of the squares", func(row []float64) float64 { return floats.Dot(row, row) }},
		{"the mean of the squares", func(row []float64) float64 { return floats.Dot(row, row) / float64(len(row)) }},
	} {
		n := 0
		for i := 0; i < len(given); i += o.Width {
			if way.of(given[i:i+o.Width]) >= halfInfinity {
				n++
			}
		}
		for _, rounded := range []bool{false, true} {
			if n == 0 {
				break
			}
			out.add(func(e *rebuild.Evaluation, rows []int) []float64 {
				x, y := e.Get(o.In, rows), o.Eval(e, rows)
				for i := 0; i < len(y); i += o.Width {
					in, f := x[i:i+o.Width], 1.0
					if way.of(in) >= halfInfinity {
						f = 0
					} else if rounded {
						f = roundedSquares(in)
					}
					floats.Scale(f, y[i:i+o.Width])
				}
				return y
			}, -2, "%s overflows float16 in %d of %d rows, which become zero", way.text, n, len(sample))
		}
	}
	return out
}

// roundedSquares is by what factor an RMS norm of a row is off if the squares are kept in float16.
func roundedSquares(row []float64) float64 {
	kept := floats.Sum(op.Map(row, func(x float64) float64 { return op.Half.Round(x * x) }))
	if kept == 0 {
		return 1
	}
	return math.Sqrt(floats.Dot(row, row) / kept)
}
