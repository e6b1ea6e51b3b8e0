package pattern

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/vec"
)

// Values is what is done to every element alike: one value everywhere, or a factor, an offset,
// another sign.
func Values(p *Pair) []diagnose.Prediction {
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
	if f := vec.Project(p.Right, p.Actual); f != 0 && math.Abs(f-1) > sameScale {
		out = append(out, p.says("value/scale", vec.Scaled(p.Right, f), 1, 0, "every element is multiplied by %.6g", f))
	}
	if o := floats.Sum(vec.Minus(p.Actual, p.Right)) / float64(len(p.Actual)); o != 0 {
		added := vec.Map(p.Right, func(x float64) float64 { return x + o })
		out = append(out, p.says("value/offset", added, 1, 0, "%.6g is added to every element", o))
	}
	return out
}

func (p *Pair) constant(k float64) diagnose.Prediction {
	id, params, text := "value/constant", 1, fmt.Sprintf("every element is %.6g", k)
	if k == 0 {
		params, text = 0, "every element is 0: is a weight missing? MAX reads a missing one as zeros"
		if p.Target.IsOutput() && module.Types.Has(p.Target.Layer) {
			id, text = "embedding/type", "token types are not embedded: every element is 0"
		}
	}
	return p.says(id, vec.Map(p.Right, func(float64) float64 { return k }), params, 0, "%s", text)
}
