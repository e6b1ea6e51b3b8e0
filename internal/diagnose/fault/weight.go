package fault

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/diagnose/rebuild"
	"github.com/goparity/goparity/internal/op"
)

// WeightZero is a linear layer whose weight was read as zeros: its bias is all that it returns. No
// number is fitted.
func WeightZero(o *rebuild.Linear) (out List) {
	if o.B == nil || !anyOf(o.B) {
		return nil // zeros tell nothing of their cause
	}
	out.add(func(_ *rebuild.Evaluation, rows []int) []float64 {
		y := make([]float64, 0, len(rows)*o.Out.Width)
		for range rows {
			y = append(y, o.B...)
		}
		return y
	}, 0, "the weight is zero: the layer returns its bias, whatever it is given")
	return out
}

// WeightScale is a linear layer whose weight was multiplied by a number s, and its bias not:
//
//	y' − b = s · (y − b)
//
// A number of a closed list counts as none that is fitted, so that a head of two outputs is told, too.
func WeightScale(o *rebuild.Linear) (out List) {
	if o.B == nil || !anyOf(o.B) {
		return nil // without a bias the output is multiplied: value/scale
	}
	if !o.Out.IsTarget() { // no number can be fitted
		for _, f := range weightScales(o.In.Width) {
			if f.usual {
				out.add(scaledWeight(o, f.value), 0, weightScaled, f.text)
			}
		}
		return out
	}
	some := op.Spread(o.Out.Rows, damageRows)
	right, actual := o.Eval(o.Graph().With(o.Out, nil), some), o.Out.Wrong(some)
	if right == nil || len(actual) != len(right) {
		return nil
	}
	var dot, square float64
	for i, y := range right {
		b := o.B[i%len(o.B)]
		dot += (y - b) * (actual[i] - b)
		square += (y - b) * (y - b)
	}
	s := dot / square
	if s-s != 0 || math.Abs(s) < sameFactor || math.Abs(s-1) < sameFactor {
		return nil
	}
	text, params := fmt.Sprintf("%.6g", s), 1
	for _, f := range weightScales(o.In.Width) {
		if math.Abs(s/f.value-1) < sameFactor {
			s, text, params = f.value, f.text, 0
			break
		}
	}
	out.add(scaledWeight(o, s), 0, weightScaled, text).Params = params
	return out
}

const weightScaled = "the weight is multiplied by %s, the bias is not"

func scaledWeight(o *rebuild.Linear, s float64) rebuild.Eval {
	return func(e *rebuild.Evaluation, rows []int) []float64 {
		y := o.Eval(e, rows)
		if y == nil {
			return nil
		}
		out := make([]float64, len(y))
		for i := range y {
			b := o.B[i%len(o.B)]
			out[i] = b + s*(y[i]-b)
		}
		return out
	}
}

// namedScale is a number with which weights are multiplied by mistake.
type namedScale struct {
	text  string
	value float64
	usual bool // worth a look where it cannot be fitted
}

// weightScales are powers of two, and those of the number of inputs, with both signs.
func weightScales(in int) (out []namedScale) {
	add := func(text string, v float64, usual bool) {
		out = append(out, namedScale{text, v, usual}, namedScale{"−" + text, -v, false})
	}
	out = append(out, namedScale{"−1", -1, true})
	for k := 1; k <= 8; k++ {
		v := float64(int(1) << k)
		add(fmt.Sprintf("%g", v), v, k == 1)
		add(fmt.Sprintf("1/%g", v), 1/v, k == 1)
	}
	root := math.Sqrt(float64(in))
	add(fmt.Sprintf("√%d", in), root, true)
	add(fmt.Sprintf("1/√%d", in), 1/root, true)
	return out
}

func anyOf(b []float64) bool { return floats.Norm(b, math.Inf(1)) > 0 }
