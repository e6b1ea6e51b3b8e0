package diagnose

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/vec"
)

// values is what is done to every element alike: one value everywhere, or a factor, an offset,
// another sign.
func values(s *Scene) []prediction {
	switch {
	case allSame(s.actual):
		return []prediction{s.constant(s.actual[0])}
	case !vec.All(s.actual, vec.IsFinite):
		return nil
	}
	const sign = "value/sign"
	size := vec.Map(s.right, math.Abs)
	out := []prediction{
		s.says(sign, vec.Scaled(s.right, -1), 0, 0, "the sign is wrong: −x"),
		s.says(sign, size, 0, 0, "the sign is lost: |x|"),
		s.says(sign, vec.Scaled(size, -1), 0, 0, "the sign is lost: −|x|"),
	}
	if f := vec.Project(s.right, s.actual); f != 0 && math.Abs(f-1) > sameScale/10 {
		id, params := "value/scale", 1
		name, exact := s.nameOf(f)
		if exact != 0 {
			f, params = exact, 0
			if s.isEmbedded() {
				id = "embedding/scale"
			}
		}
		out = append(out, s.says(id, vec.Scaled(s.right, f), params, 0, "every element is multiplied by %s", name))
	}
	if o := floats.Sum(vec.Minus(s.actual, s.right)) / float64(len(s.actual)); o != 0 {
		added := vec.Map(s.right, func(x float64) float64 { return x + o })
		out = append(out, s.says("value/offset", added, 1, 0, "%.6g is added to every element", o))
	}
	return out
}

// isEmbedded reports whether the target is what a layer makes of whole numbers, as a table of embeddings does, or stands
// directly after that.
func (s *Scene) isEmbedded() (is bool) {
	for _, x := range s.pass {
		if s.Target.IsInput() && label.Within(x.Layer, s.Target.Layer) {
			return is
		}
		if x.IsOutput() && slices.Equal(x.Golden.Shape(), s.Target.Golden.Shape()) {
			in := s.input(x.Layer)
			is = in != nil && !in.IsFloat()
		}
		if x == s.Target {
			return is
		}
	}
	return false
}

func (s *Scene) constant(k float64) prediction {
	id, params, text := "value/constant", 1, fmt.Sprintf("every element is %.6g", k)
	if k == 0 {
		params, text = 0, "every element is 0: is a weight missing? MAX reads a missing one as zeros"
		if s.Target.IsOutput() && module.Types.Has(s.Target.Layer) {
			id = "embedding/type"
		}
	}
	return s.says(id, vec.Map(s.right, func(float64) float64 { return k }), params, 0, "%s", text)
}

// nameOf says where a factor may come from: the sizes of the model, their roots, or a small whole
// number. exact is that factor, 0 for none.
func (s *Scene) nameOf(f float64) (text string, exact float64) {
	hidden := s.Config.Hidden()
	sizes := []int{s.width, hidden, hidden / max(s.Config.Heads(), 1)}
	names := []string{", the width", ", the hidden size", ", the size of a head"}
	for n := 2; n <= wholeFactors; n++ {
		sizes = append(sizes, n)
	}
	for i, n := range sizes {
		size, name := float64(n), fmt.Sprint(n)
		forms := []string{"%s", "1/%s", "√%s", "1/√%s"}
		factors := []float64{size, 1 / size, math.Sqrt(size), 1 / math.Sqrt(size)}
		if i < len(names) {
			name += names[i]
		} else {
			factors = factors[:2]
		}
		for k, is := range factors {
			if text := fmt.Sprintf(forms[k], name); n > 0 && math.Abs(f/is-1) < sameScale {
				if k > 1 { // who reads a root sees no number
					text = fmt.Sprintf("%.6g, ", f) + text
				}
				return text, is
			}
		}
	}
	return fmt.Sprintf("%.6g", f), 0
}

// dropout is zeros strewn over the tensor, with the rest scaled by 1/(1−p): a dropout that is still
// on. The zeros must come at the rate that the factor of the others tells, within some standard
// deviations of a binomial share.
func dropout(s *Scene) []prediction {
	zeros, n := 0, 0
	var xy, xx float64
	scale := vec.RootMeanSquare(s.right)
	isZero := func(i int) bool { return math.Abs(s.actual[i]) < droppedBelow*scale }
	for i, x := range s.right {
		switch {
		case math.Abs(x) < tellsNothing*scale:
			continue
		case isZero(i):
			zeros++
		default:
			xy, xx = xy+x*s.actual[i], xx+x*x
		}
		n++
	}
	if n < PerParam || zeros == 0 || zeros == n || xx == 0 {
		return nil
	}
	factor, share, each := xy/xx, float64(zeros)/float64(n), 1/float64(n)
	rate := 1 - 1/factor
	if !(rate > 0 && rate < 1 && math.Abs(share-rate) <= deviations*math.Sqrt(rate*(1-rate)*each)+each) {
		return nil
	}
	value := make([]float64, len(s.right))
	for i, x := range s.right {
		if !isZero(i) {
			value[i] = factor * x
		}
	}
	return []prediction{s.says("dropout", value, 1, 0, "dropout is on: %.3g of the elements are 0, the others are multiplied by %.4g", rate, factor)}
}
