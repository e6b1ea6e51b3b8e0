package pattern

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/vec"
)

// values is what is done to every element alike: one value everywhere, or a factor, an offset,
// another sign.
func values(p *pair) []diagnose.Prediction {
	k := p.Actual[0]
	switch {
	case vec.All(p.Actual, func(x float64) bool { return x == k }):
		return []diagnose.Prediction{p.constant(k)}
	case !vec.All(p.Actual, vec.IsFinite):
		return nil
	}
	const sign = "value/sign"
	out := []diagnose.Prediction{
		p.says(sign, vec.Scaled(p.Right, -1), 0, 0, "the sign is wrong: −x"),
		p.says(sign, vec.Map(p.Right, math.Abs), 0, 0, "the sign is lost: |x|"),
		p.says(sign, vec.Scaled(vec.Map(p.Right, math.Abs), -1), 0, 0, "the sign is lost: −|x|"),
	}
	if f := vec.Project(p.Right, p.Actual); f != 0 && math.Abs(f-1) > sameScale/10 {
		id, params := "value/scale", 1
		name, exact := nameOf(f, p)
		if exact != 0 {
			f, params = exact, 0
			if p.isEmbedded() {
				id = "embedding/scale"
			}
		}
		out = append(out, p.says(id, vec.Scaled(p.Right, f), params, 0, "every element is multiplied by %s", name))
	}
	if o := floats.Sum(vec.Minus(p.Actual, p.Right)) / float64(len(p.Actual)); o != 0 {
		added := vec.Map(p.Right, func(x float64) float64 { return x + o })
		out = append(out, p.says("value/offset", added, 1, 0, "%.6g is added to every element", o))
	}
	return out
}

// isEmbedded reports whether the target is what a layer makes of whole numbers, as a table of embeddings does, or stands
// directly after that.
func (p *pair) isEmbedded() (is bool) {
	for _, x := range p.Pass() {
		if p.Target.IsInput() && label.Within(x.Layer, p.Target.Layer) {
			return is
		}
		if x.IsOutput() && slices.Equal(x.Golden.Shape(), p.Target.Golden.Shape()) {
			in := p.Input(x.Layer)
			is = in != nil && !in.IsFloat()
		}
		if x == p.Target {
			return is
		}
	}
	return false
}

func (p *pair) constant(k float64) diagnose.Prediction {
	id, params, text := "value/constant", 1, fmt.Sprintf("every element is %.6g", k)
	if k == 0 {
		params, text = 0, "every element is 0: is a weight missing? MAX reads a missing one as zeros"
		if p.Target.IsOutput() && module.Types.Has(p.Target.Layer) {
			id, text = "embedding/type", "token types are not embedded: every element is 0"
		}
	}
	return p.says(id, vec.Map(p.Right, func(float64) float64 { return k }), params, 0, "%s", text)
}

// nameOf says where a factor may come from: the sizes of the model, their roots, or a small whole
// number. exact is that factor, 0 for none.
func nameOf(f float64, p *pair) (text string, exact float64) {
	type number struct {
		is   float64
		text string
	}
	var known []number
	hidden := p.Config.Hidden()
	for _, size := range []struct {
		n    int
		what string
	}{{p.Width, "the width"}, {hidden, "the hidden size"}, {hidden / max(p.Config.Heads(), 1), "the size of a head"}} {
		n, root := float64(size.n), math.Sqrt(float64(size.n))
		known = append(known, number{root, fmt.Sprintf("%.6g, √%v, %s", f, n, size.what)},
			number{1 / root, fmt.Sprintf("%.6g, 1/√%v, %s", f, n, size.what)},
			number{1 / n, fmt.Sprintf("%.6g, 1/%v", f, n)}, number{n, fmt.Sprint(n)})
	}
	for n := 2.0; n <= wholeFactors; n++ {
		known = append(known, number{n, fmt.Sprint(n)}, number{1 / n, fmt.Sprintf("1/%g", n)})
	}
	for _, k := range known {
		if k.is != 0 && math.Abs(f/k.is-1) < sameScale {
			return k.text, k.is
		}
	}
	return fmt.Sprintf("%.6g", f), 0
}
